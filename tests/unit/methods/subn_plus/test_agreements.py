from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.methods.subn_plus.agreements import Agreements
from common.methods.subn_plus.contrasts import contrast
from common.methods.subn_plus.dependence import departure, depends
from common.privacy import sensitivity
from common.privacy.sensitivity import CONTRAST_UNIT
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


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("attributes", range(2, 7))
def test_no_replaced_row_moves_the_counts_by_more_than_the_sensitivity_and_one_does(
    attributes, alone
):
    request = Agreements(((0, 1),) * attributes, alone)

    def counted(bits: tuple[int, ...]) -> np.ndarray:
        row = [np.array([bit]) for bit in bits]
        return request.answer(RowsInMemory(Codes.from_columns(row, (2,) * attributes)))

    counts = {bits: counted(bits) for bits in product((0, 1), repeat=attributes)}
    moved = [np.abs(one - other).sum() for one, other in product(counts.values(), repeat=2)]
    assert max(moved) == request.sensitivity.l1 == request.sensitivity.l2_squared
    assert request.sensitivity == sensitivity.agreements(attributes + alone)


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


@given(tables)
def test_the_contrast_of_a_pair_follows_from_its_agreement(table):
    rows = int(table.sum())
    made = Agreements(((0, 1), (0, 1))).moments(np.array([np.trace(table)]), 3.0, rows)
    assert made.contrasts[0] * CONTRAST_UNIT**2 * rows == pytest.approx(
        contrast(table).astype(float)
    )
    assert made.variance == 3.0 / rows**2


def test_a_miscounted_row_costs_the_fit_as_much_as_in_a_sum_of_its_own():
    exact, off = (
        Agreements(((0, 1), (0, 1))).moments(np.array([own]), 3.0, 10).contrasts[0]
        for own in (6, 9)
    )
    assert ((exact - off) ** 2).sum() == pytest.approx(3**2 / 10**2)


def test_groupings_tell_the_fit_which_half_a_value_is_in():
    found = Agreements(HALVES).moments(np.array([5, 6, 7]), 1.0, 12)
    assert found.columns == (0, 1, 3)
    assert [own.tolist() for own in found.groupings] == [[0, 0, 1], [0, 1], [1, 0, 1, 0]]
    assert len(found.contrasts) == 3


def test_rows_in_the_first_half_are_counted_after_the_pairs():
    table = some_rows(500)
    alone = Agreements(HALVES, alone=True)
    answer = alone.answer(RowsInMemory(table))
    assert answer[:3].tolist() == Agreements(HALVES).answer(RowsInMemory(table)).tolist()
    first = [int((np.array(HALVES[a])[table.columns[a]] == 0).sum()) for a in (0, 1, 3)]
    assert answer[3:].tolist() == first
    assert alone.cells == len(answer)
    assert alone.canonical != Agreements(HALVES).canonical
    weights = alone.weights(answer, table.rows)
    assert weights[0] == (first[0], 500 - first[0])
    assert weights[2] == (500, 0)


def test_chance_alone_shows_no_dependence_though_the_halves_are_only_guessed():
    rng = np.random.default_rng(1)
    rows, request = 20_000, Agreements(((0, 1),) * 8, alone=True)
    bits = [(rng.random(rows) < share).astype(int) for share in np.linspace(0.05, 0.95, 8)]
    exact = request.answer(RowsInMemory(Codes.from_columns(bits, (2,) * 8)))
    tied = [bits[0] ^ bits[4], *bits[1:]]
    related = request.answer(RowsInMemory(Codes.from_columns(tied, (2,) * 8)))

    def dependent(answer: np.ndarray) -> float:
        seen = 0
        for _ in range(100):
            noisy = answer + np.rint(rng.laplace(0, 400, len(answer))).astype(int)
            found = request.departures(
                noisy, request.weights(noisy, rows), Fraction(2 * 400**2), rows
            )
            seen += depends(found, rows)
        return seen / 100

    assert dependent(exact) < 0.2
    assert dependent(related) > 0.9


def test_departures_are_exact():
    request = Agreements(((0, 1), (0, 1)))
    (found,) = request.departures(np.array([7]), [(1, 2), (2, 1)], Fraction(1, 3), 10).values()
    # Of ten rows 40/9 agree by chance.
    assert found.squares == (7 - Fraction(40, 9)) ** 2 - Fraction(1, 3)
