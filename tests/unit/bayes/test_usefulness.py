"""The degree and the table size follow from public numbers as the papers' tables say."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.bayes.usefulness import affordable_degree, cell_limit, choose_degree, usefulness
from common.errors import LocalError

EPSILONS = [Fraction(n, 20) for n in (1, 2, 4, 8, 16, 32)]
DEGREES = {  # (rows, attributes): degrees over the epsilons at beta = .3, .5, 0
    (21574, 16): ([1, 2, 3, 5, 6, 7], [1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 8]),
    (17259, 16): ([1, 2, 3, 4, 5, 7], [0, 1, 3, 4, 5, 6], [1, 3, 4, 5, 6, 7]),
    (47461, 23): ([2, 3, 4, 5, 6, 7], [1, 2, 3, 5, 6, 7], [2, 3, 5, 6, 7, 8]),
    (37968, 23): ([1, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7]),
    (45222, 52): ([0, 1, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]),
    (38000, 32): ([1, 2, 3, 4, 5, 6], [0, 1, 3, 4, 5, 6], [1, 3, 4, 5, 6, 7]),
    (40000, 77): ([0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
}


def degrees(rows, attributes, beta):
    return [
        choose_degree(
            rows=rows, attributes=attributes, epsilon=(1 - beta) * epsilon, theta=Fraction(4)
        )
        for epsilon in EPSILONS
    ]


@pytest.mark.parametrize(("rows", "attributes"), DEGREES)
def test_degrees_equal_the_table_of_the_specification(rows, attributes):
    for beta, expected in zip(
        (Fraction(3, 10), Fraction(1, 2), Fraction(0)), DEGREES[rows, attributes], strict=True
    ):
        assert degrees(rows, attributes, beta) == expected


@given(st.integers(2, 60), st.integers(1, 10**6), st.fractions(Fraction(1, 100), 4))
def test_degrees_are_the_largest_useful_ones(attributes, rows, epsilon):
    def useful(k, tables, theta):
        return rows * epsilon / (tables * 2 ** (k + 2)) >= theta

    public = {"rows": rows, "attributes": attributes, "epsilon": epsilon}
    k = choose_degree(**public, theta=Fraction(6))
    assert k == 0 or useful(k, attributes - k, 6)
    assert k == attributes - 1 or not useful(k + 1, attributes - k - 1, 6)
    frontier = choose_degree(**public, theta=Fraction(2), tables=attributes - 1)
    assert frontier == 0 or useful(frontier, attributes - 1, 2)
    assert frontier == attributes - 1 or not useful(frontier + 1, attributes - 1, 2)


def test_a_large_share_for_learning_leaves_degree_zero():
    assert degrees(47461, 23, Fraction(9, 10)) == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("rows", "attributes", "epsilon", "degree", "expected"),
    [
        (21574, 16, Fraction(7, 10), 3, 36.3024),
        (21574, 16, Fraction(7, 100), 2, 6.741875),
        (1000, 10, Fraction(1, 2), 1, 6.9444),
    ],
)
def test_usefulness_spot_values(rows, attributes, epsilon, degree, expected):
    found = usefulness(rows=rows, attributes=attributes, degree=degree, epsilon=epsilon)
    assert float(found) == pytest.approx(expected, abs=5e-5)


def test_the_degree_never_reaches_the_number_of_attributes():
    for attributes in range(1, 6):
        huge = choose_degree(
            rows=10**9, attributes=attributes, epsilon=Fraction(10**6), theta=Fraction(4)
        )
        assert huge == attributes - 1
    with pytest.raises(LocalError, match="degree"):
        usefulness(rows=10, attributes=3, degree=3, epsilon=Fraction(1))


def test_usefulness_never_rises_with_the_degree():
    values = [usefulness(rows=1000, attributes=9, degree=k, epsilon=Fraction(1)) for k in range(9)]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    ("rows", "attributes", "expected"),
    [
        (45222, 15, [13.2, 26.4, 52.8, 105.5, 211.0, 422.1]),
        (38000, 14, [11.9, 23.8, 47.5, 95.0, 190.0, 380.0]),
        (21574, 16, [5.9, 11.8, 23.6, 47.2, 94.4, 188.8]),
        (47461, 23, [9.0, 18.1, 36.1, 72.2, 144.4, 288.9]),
    ],
)
def test_cell_limits_equal_the_specification(rows, attributes, expected):
    share = Fraction(7, 10)
    found = [
        cell_limit(rows=rows, attributes=attributes, epsilon=share * e, theta=Fraction(4))
        for e in EPSILONS
    ]
    assert found == [int(value) for value in expected]


def test_candidate_tables_are_kept_within_a_public_limit():
    assert affordable_degree(attributes=52, degree=6, max_cells=1 << 23) == 3
    assert affordable_degree(attributes=16, degree=7, max_cells=1 << 23) == 7
    assert affordable_degree(attributes=2000, degree=3, max_cells=1 << 20) == 1
