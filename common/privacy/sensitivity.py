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
from dataclasses import dataclass
from fractions import Fraction

import gmpy2

from common.errors import LocalError

_PRECISION_BITS = 128
_ROOT_UNITS = 10**6


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one replaced row can move an exact answer.

    Attributes:
        l1: the largest sum of the absolute changes of its counts.
        l2_squared: the largest sum of their squares.
    """

    l1: Fraction
    l2_squared: Fraction

    @classmethod
    def moving(cls, counts: int) -> Sensitivity:
        """Of an answer of which at most so many counts move, each by at most one."""
        return cls(Fraction(counts), Fraction(counts))

    def __add__(self, other: Sensitivity) -> Sensitivity:
        """Return that of two answers side by side."""
        return Sensitivity(self.l1 + other.l1, self.l2_squared + other.l2_squared)

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


def agreements(attributes: int) -> Sensitivity:
    """Return that of the counts of agreeing rows of all pairs of attributes in two halves.

    A row agrees for a pair if both attributes are in their first half or both in their second. A
    replaced row that changes sides in k of d attributes moves the count of a pair, by one, where
    exactly one of the two changed: k (d - k) pairs, at most floor(d / 2) ceil(d / 2).
    """
    if attributes < 0:
        raise LocalError(f"there are no {attributes} attributes")
    return Sensitivity.moving(attributes * attributes // 4)


def mutual_information(rows: int, *, binary: bool) -> Fraction:
    """Sensitivity of n * I(X; P), in bits, rounded up by less than 1e-30 of itself.

    [Zhang17, Lemma 4.1] times n: if X or P has two values,

        log n + (n - 1) log(n / (n - 1)),

    attained for every n; otherwise

        2 log((n + 1) / 2) + (n - 1) log((n + 1) / (n - 1)),

    attained for odd n, an upper bound for even n. One row carries no information: both are 0 there.

    Args:
        rows: the public number of rows, n.
        binary: the public domain of X, or the whole joint domain of P, has exactly two values. One
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
    |c_0p - c_0 c_p / n|, and docs/privacy.md goes through the three ways a row can change.

    Args:
        rows: the public number of rows, n.
        binary: the public domain of X, or the whole joint domain of P, has exactly two values.
        printed: the paper's own, larger bound, for comparison with it.
    """
    _check_rows(rows)
    if printed:
        return 3 + Fraction(2, rows)
    return 2 - Fraction(2, rows) if binary else Fraction(3)


def _check_rows(rows: int) -> None:
    if rows < 1:
        raise LocalError(f"a score of {rows} rows has no sensitivity: give a table with rows")
