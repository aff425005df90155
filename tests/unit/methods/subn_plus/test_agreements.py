from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.methods.subn_plus.agreements import Agreements
from common.methods.subn_plus.dependence import departure
from common.privacy import sensitivity
from common.schema.codes import Codes
from parley.simulation.in_process import RowsInMemory

HALVES = ((0, 0, 1), (0, 1), (0,), (1, 0, 1, 0))  # the third attribute has one value


def some_rows(rows: int, seed: int = 0) -> Codes:
    rng = np.random.default_rng(seed)
    sizes = tuple(map(len, HALVES))
    return Codes.from_columns([rng.integers(0, size, rows) for size in sizes], sizes)


def test_a_count_is_the_number_of_rows_in_which_a_pair_is_in_the_same_half():
    table = some_rows(500)
    request = Agreements(HALVES)
    assert request.pairs == ((0, 1), (0, 3), (1, 3))
    assert request.cells == 3
    by_hand = [
        sum(
            HALVES[a][x] == HALVES[b][y]
            for x, y in zip(table.columns[a].tolist(), table.columns[b].tolist(), strict=True)
        )
        for a, b in request.pairs
    ]
    answer = request.answer(RowsInMemory(table))
    assert answer.tolist() == by_hand
    assert answer.max() <= request.limit(table.rows)


def test_answers_of_parties_add_up():
    table = some_rows(300)
    request = Agreements(HALVES)
    parts = [request.answer(RowsInMemory(table.take(slice(i, None, 3)))) for i in range(3)]
    assert np.array_equal(sum(parts), request.answer(RowsInMemory(table)))


@pytest.mark.parametrize("attributes", range(2, 7))
def test_no_replaced_row_moves_the_counts_by_more_than_the_sensitivity_and_one_does(attributes):
    request = Agreements(((0, 1),) * attributes)

    def counted(bits: tuple[int, ...]) -> np.ndarray:
        row = [np.array([bit]) for bit in bits]
        return request.answer(RowsInMemory(Codes.from_columns(row, (2,) * attributes)))

    counts = {bits: counted(bits) for bits in product((0, 1), repeat=attributes)}
    moved = [np.abs(one - other).sum() for one, other in product(counts.values(), repeat=2)]
    assert max(moved) == sensitivity.agreements(attributes).l1


tables = st.lists(st.integers(1, 10**6), min_size=4, max_size=4).map(
    lambda cells: np.array(cells, dtype=np.int64).reshape(2, 2)
)


@given(tables, st.fractions(0, 1000))
def test_a_pair_departs_from_independence_as_its_table_does(table, variance):
    rows = int(table.sum())
    weights = [table.sum(axis=1).tolist(), table.sum(axis=0).tolist()]
    request = Agreements(((0, 1), (0, 1)))
    agreed = np.array([np.trace(table)])
    (found,) = request.departures(agreed, weights, variance, rows).values()
    assert found == departure(table, *weights, variance, rows)


@given(tables, st.integers(-(10**5), 10**5))
def test_measured_tables_have_the_published_margins_and_the_counted_agreement(table, noise):
    rows = int(table.sum())
    weights = [table.sum(axis=1).tolist(), table.sum(axis=0).tolist()]
    request = Agreements(((0, 1), (0, 1)))
    exact, noisy = (
        request.measurements(np.array([np.trace(table) + off]), weights, 3.0, rows)[0]
        for off in (0, noise)
    )
    assert exact.counts == pytest.approx(table.astype(float), rel=1e-9, abs=1e-3)
    assert noisy.counts.sum(axis=0) == pytest.approx(weights[1], rel=1e-9)
    assert noisy.counts.sum(axis=1) == pytest.approx(weights[0], rel=1e-9)
    assert np.trace(noisy.counts) == pytest.approx(np.trace(table) + noise, rel=1e-9, abs=1e-3)
    # So the squared error of a table that meets the margins is that of the count.
    squares = ((noisy.counts - exact.counts) ** 2).sum()
    assert squares == pytest.approx(noise**2, rel=1e-6, abs=1e-3)
    assert noisy.variance == 3.0


def test_groupings_tell_the_fit_which_half_a_value_is_in():
    request = Agreements(HALVES)
    weights = [[1, 1]] * 4
    found = request.measurements(np.array([5, 6, 7]), weights, 1.0, 12)
    assert [table.attributes for table in found] == list(combinations((0, 1, 3), 2))
    assert found[1].groupings[0].tolist() == [0, 0, 1]
    assert found[1].groupings[1].tolist() == [1, 0, 1, 0]
    assert found[0].groupings[1] is None


def test_departures_are_exact():
    request = Agreements(((0, 1), (0, 1)))
    (found,) = request.departures(np.array([7]), [(1, 2), (2, 1)], Fraction(1, 3), 10).values()
    # Of ten rows 40/9 agree by chance.
    assert found.squares == (7 - Fraction(40, 9)) ** 2 - Fraction(1, 3)
