"""One function for each sensitivity that is proved, with its lemma.

The sensitivity of a vector of counts has two norms: Laplace noise is calibrated to the L1 norm,
Gaussian-like noise to the L2 norm. Where every count moves by at most one, the L1 norm and the
square of the L2 norm are both the number of counts that move.

Neighbouring tables have the same number of rows and differ in ONE row, which is replaced. Scores of
a child attribute X against its parents P are in COUNT units: the number of rows times the score of
the papers. Count units need no division, keep the score F a half-integer, and leave the exponential
mechanism's law unchanged. Logarithms are to base 2.

Here n is the number of rows, c_xp a joint count of X and P, c_x and c_p its margins.

[Zhang17] Zhang, Cormode, Procopiuc, Srivastava, Xiao: PrivBayes, ACM TODS 42(4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import gmpy2

from common.errors import LocalError

_PRECISION_BITS = 128
_ROOT_UNITS = 10**6


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one replaced row can move an exact answer."""

    l1: Fraction  # the largest sum of the absolute changes of its counts
    l2_squared: Fraction  # the largest sum of their squares

    @classmethod
    def moving(cls, counts: int) -> Sensitivity:
        """Return that of an answer in which at most so many counts move, each by at most one."""
        return cls(Fraction(counts), Fraction(counts))

    def __add__(self, other: Sensitivity) -> Sensitivity:
        """Return that of two answers side by side."""
        return Sensitivity(self.l1 + other.l1, self.l2_squared + other.l2_squared)

    def of_rows(self, rows: int) -> Sensitivity:
        """Return how far so many replaced rows can move the answer.

        They are replaced one after the other, and either norm of the sum of their changes is at
        most the sum of the norms: `rows` times the norm of one change.
        """
        return Sensitivity(rows * self.l1, rows * rows * self.l2_squared)

    def in_norm(self, norm: int) -> Fraction:
        """Return the L1 norm, or the L2 norm rounded up: for people."""
        if norm == 1:
            return self.l1
        root = math.isqrt(math.ceil(self.l2_squared * _ROOT_UNITS**2))
        return Fraction(root if root**2 == self.l2_squared * _ROOT_UNITS**2 else root + 1) / (
            _ROOT_UNITS
        )


def histograms(count: int) -> Sensitivity:
    """Return that of `count` histograms of the same rows, together: 2 * count counts move.

    A replaced row leaves one cell of each histogram and enters another. So the L1 norm is
    2 * count, and the L2 norm sqrt(2 * count).
    """
    if count < 0:
        raise LocalError(f"there are no {count} histograms")
    return Sensitivity.moving(2 * count)


def bounded(count: int, *, most: int) -> Sensitivity:
    """Return that of `count` numbers, each of which a replaced row moves by at most `most`.

    A sum over the rows of numbers from 0 to `most` is one: the replaced row takes one of them out
    and puts another in. So is `most` / 2 times the sum of |c - t| over the cells of a table c of
    counts, t being any integers: two counts move by one each, so the sum moves by at most 2. What
    is at most 2 away in every one of several such sums is at most 2 away in the k-th largest of
    them, for every k, and in the integer part of their mean.
    """
    if count < 0 or most < 0:
        raise LocalError(f"there are no {count} numbers that move by {most}")
    return Sensitivity(Fraction(count * most), Fraction(count * most * most))


def class_totals(columns: int, *, largest: int) -> Sensitivity:
    """Return that of the totals of some columns, each by classes of its values.

    In every column a row adds one integer, from -`largest` to `largest`, to the total of one class:
    that of its value; or nothing. A replaced row moves the total of one class by at most twice
    `largest`, or those of two classes by at most `largest` each. So one column moves by at most
    2 largest in the L1 norm and by at most max(4, 1 + 1) largest^2 in the square of the L2 norm:
    what a single total of all rows would move by, however many classes there are. Two rows at
    either end of one class attain both.

    A person whose events are averaged may add to several classes: a vector x of |x|_1 <= largest.
    If she is replaced by a person who adds y, then |y - x|_1 <= |x|_1 + |y|_1 <= 2 largest, and
    |y - x|_2 <= |x|_2 + |y|_2 <= |x|_1 + |y|_1: the same bounds.
    """
    if columns < 0 or largest < 0:
        raise LocalError(f"there are no {columns} columns of numbers up to {largest}")
    return Sensitivity(Fraction(2 * columns * largest), Fraction(4 * columns * largest**2))


def agreements(attributes: int) -> Sensitivity:
    """Return that of the counts of agreeing rows of all pairs of attributes in two halves.

    A row agrees for a pair if both attributes are in their first half or both in their second. A
    replaced row that changes sides in k of d attributes moves the count of a pair, by one, where
    exactly one of the two changed: k (d - k) pairs, at most floor(d / 2) ceil(d / 2).
    """
    if attributes < 0:
        raise LocalError(f"there are no {attributes} attributes")
    return Sensitivity.moving(attributes * attributes // 4)


def chosen_agreements(pairs: int) -> Sensitivity:
    """Return that of the counts of agreeing rows of so many pairs of attributes in two halves.

    A replaced row agrees for a pair or does not, before and after: each count moves by at most one.
    Pairs without an attribute in common attain it.
    """
    if pairs < 0:
        raise LocalError(f"there are no {pairs} pairs")
    return Sensitivity.moving(pairs)


def averaged(count: int, *, unit: int) -> Sensitivity:
    """Return that of `count` tables in which every person weighs at most `unit` altogether.

    Here a row is a person with all of her events, which are averaged: each of her m events adds
    floor(unit / m) to one cell of each table, and a person without events adds nothing, or `unit`
    to a cell of her own. So what she adds to a table is a vector x >= 0 of sum at most `unit`. If
    she is replaced by a person who adds y, the table moves by |y - x|_1 <= |x|_1 + |y|_1, at most
    2 unit, and by |y - x|_2^2 <= |x|_2^2 + |y|_2^2, because no product of entries is negative, at
    most 2 unit^2, because |x|_2 <= |x|_1. One event each, in two cells, attains both. This is
    `unit` times what a replaced row moves in a histogram, however many events she has.
    """
    if count < 0 or unit < 1:
        raise LocalError(f"there are no {count} tables in units of {unit}")
    return Sensitivity(Fraction(2 * count * unit), Fraction(2 * count * unit * unit))


CONTRAST_UNIT = 8


def contrast_shift(groups: int) -> int:
    """Return what every coordinate of a contrast loses: the integer nearest to 8 / groups."""
    return (2 * CONTRAST_UNIT + groups) // (2 * groups)


def contrasts(groups: Sequence[int], order: int) -> Sensitivity:
    """Return that of the contrasts of all sets of `order` attributes, two or three, in groups.

    A row's contrast of an attribute in q >= 2 groups is the vector x = 8 e_u - c, where e_u marks
    the row's group u and c is the integer nearest to 8 / q; that of a set is the outer product of
    its attributes' vectors. Here U = 64 and v = |x|^2 = U - 16 c + q c^2, which does not depend on
    u; the vectors of two different groups have the inner product v - U. So rows that differ in the
    attributes S are apart, in the squared L2 norm and over all sets of k attributes, by

        2 (e_k(v) - e_k(t)),   t_a = v_a - U for a in S, v_a for the others,

    e_k being the elementary symmetric polynomial. Exchanging a in S for b outside of S leaves
    t_a + t_b as it is and changes t_a t_b by U (v_a - v_b). In e_2 that is all that changes: of all
    S of a size, the one of the smallest v is the worst. In e_3 it is multiplied by the sum r of all
    other t. So the worst S has the smallest v, or the largest, or there are exchanges for which r
    is not negative and others for which it is not positive: then the sum R of all t is between the
    least and the largest value of v_a + v_b - U, which is between 0 and U because U / 2 <= v <= U,
    and e_3 = (R^3 - 3 R p_2 + 2 p_3) / 6 with power sums p_2 <= sum v^2 and
    p_3 >= - sum (U - v)^3 is at least - U sum v^2 / 2 - sum (U - v)^3.

    The L1 norm is at most the sum of both rows' norms: 2 e_k of 8 - c + (q - 1) c, at most.
    """
    if order not in (2, 3) or min(groups, default=2) < 2:
        raise LocalError(f"no contrasts of {order} attributes in {min(groups, default=2)} groups")
    unit = CONTRAST_UNIT**2
    shifts = [contrast_shift(width) for width in groups]
    norms = sorted(
        unit - 2 * CONTRAST_UNIT * c + width * c * c
        for width, c in zip(groups, shifts, strict=True)
    )
    least = min(
        symmetric([v - unit for v in some[:size]] + some[size:], order)
        for some in (norms, norms[::-1])
        for size in range(len(norms) + 1)
    )
    if order == 3 and norms[0] < norms[-1]:
        between = -unit * sum(v * v for v in norms) // 2 - sum((unit - v) ** 3 for v in norms)
        least = min(least, between)
    sums = [CONTRAST_UNIT + (width - 2) * c for width, c in zip(groups, shifts, strict=True)]
    return Sensitivity(
        Fraction(2 * symmetric(sums, order)), Fraction(2 * (symmetric(norms, order) - least))
    )


def symmetric(values: Sequence[int], order: int) -> int:
    """Return the elementary symmetric polynomial: the sum of the products of `order` values."""
    polynomial = [1] + [0] * order
    for value in values:
        for size in range(order, 0, -1):
            polynomial[size] += value * polynomial[size - 1]
    return polynomial[order]


def mutual_information(rows: int, *, binary: bool) -> Fraction:
    """Sensitivity of n * I(X; P), in bits, rounded up by less than 1e-30 of itself.

    [Zhang17, Lemma 4.1] times n: if X or P has two values,

        log n + (n - 1) log(n / (n - 1)),

    attained for every n; otherwise

        2 log((n + 1) / 2) + (n - 1) log((n + 1) / (n - 1)),

    attained for odd n, an upper bound for even n. One row carries no information: both are 0 there.

    `binary`: the public domain of X, or the whole joint domain of P, has exactly two values. One
    binary parent counts; two binary parents do not (their domain has four).
    """
    _check_rows(rows)
    if rows == 1:
        return Fraction(0)
    with gmpy2.context(gmpy2.get_context(), precision=_PRECISION_BITS, round=gmpy2.RoundUp):
        # Every term is positive and every operation rounds up, so the sum is an upper bound.
        if binary:
            ratio = gmpy2.mpfr(gmpy2.mpq(rows, rows - 1))
            bound = gmpy2.log2(gmpy2.mpz(rows)) + (rows - 1) * gmpy2.log2(ratio)
        else:
            half = gmpy2.mpfr(gmpy2.mpq(rows + 1, 2))
            ratio = gmpy2.mpfr(gmpy2.mpq(rows + 1, rows - 1))
            bound = 2 * gmpy2.log2(half) + (rows - 1) * gmpy2.log2(ratio)
        exact = gmpy2.mpq(bound)
    return Fraction(int(exact.numerator), int(exact.denominator))


def score_f(rows: int) -> Fraction:
    """Sensitivity of n * F(X; P) for a binary X: exactly 1.

    [Zhang17, Theorem 4.5]: n * F = max over the splits of P's values into two groups of
    min(a, n/2) + min(b, n/2) - n, where a counts X = 0 in the first group and b counts X = 1 in the
    second. A replaced row lowers a or b by at most one and raises one of them by at most one.
    """
    _check_rows(rows)
    return Fraction(1)


def score_r(rows: int, *, binary: bool, printed: bool = False) -> Fraction:
    """Sensitivity of n * R(X; P) = half the sum of |c_xp - c_x c_p / n|.

    [Zhang17, Theorem 5.3] prints 3 + 2/n. It is at most 3: with p the law of X and q that of P
    before (1) and after (2) the replacement, p1*q1 - p2*q2 = (p1 - p2)*q1 + p2*(q1 - q2) has L1
    norm at most 2/n + 2/n, the joint law moves by 2/n, and R is half of the sum. It is at most
    2 - 2/n, and attained, if X or P has two values: n R is then the sum over the other attribute of
    |c_0p - c_0 c_p / n|, and docs/proofs.md goes through the three ways a row can change.

    `binary` is as for `mutual_information`; `printed` asks for the paper's own, larger bound.
    """
    _check_rows(rows)
    if printed:
        return 3 + Fraction(2, rows)
    return 2 - Fraction(2, rows) if binary else Fraction(3)


def _check_rows(rows: int) -> None:
    if rows < 1:
        raise LocalError(f"a score of {rows} rows has no sensitivity: give a table with rows")
