"""How large a table may be and still rise above its noise: theta-usefulness [Zhang17, Def. 4.7].

The usefulness of a released table is the average probability of its cells divided by the expected
size of the noise on them. Everything here is computed from public quantities and costs no budget.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

from common.errors import LocalError


def usefulness(
    *, rows: int, attributes: int, degree: int, epsilon: Fraction, tables: int | None = None
) -> Fraction:
    """U(k) = n eps2 / (m 2^(k+2)): m released tables of k+1 binary attributes [Zhang17, L. 4.8].

    A network of degree k releases d-k, the first k+1 attributes sharing one, if m is not given.
    """
    if not 0 <= degree < attributes:
        raise LocalError(f"a degree is in 0..{attributes - 1}, not {degree}")
    return Fraction(rows) * epsilon / ((tables or attributes - degree) << (degree + 2))


def choose_degree(
    *, rows: int, attributes: int, epsilon: Fraction, theta: Fraction, tables: int | None = None
) -> int:
    """The largest degree whose tables are theta-useful; 0 if none is.

    Usefulness never rises with the degree, so the scan stops at the first failure.
    """

    def useful(degree: int) -> bool:
        found = usefulness(
            rows=rows, attributes=attributes, degree=degree, epsilon=epsilon, tables=tables
        )
        return found >= theta

    degree = 0
    while degree + 1 < attributes and useful(degree + 1):
        degree += 1
    return degree


def affordable_degree(*, attributes: int, degree: int, max_cells: int) -> int:
    """The largest degree, up to `degree`, whose candidate tables have at most `max_cells` cells.

    Learning scores C(d, k+1) tables of 2^(k+1) cells; the limit is a public constant.
    """
    while degree > 1 and comb(attributes, degree + 1) << (degree + 1) > max_cells:
        degree -= 1
    return degree


def cell_limit(*, rows: int, attributes: int, epsilon: Fraction, theta: Fraction) -> int:
    """The most cells a theta-useful table may have: n eps2 / (2 d theta) [Zhang17, Alg. 4].

    Rounded down: cells are whole, and floor(floor(x) / q) = floor(x / q) keeps the recursion over
    parent sets exact.
    """
    limit = Fraction(rows) * epsilon / (2 * attributes * theta)
    return int(limit)
