"""Groups of values, and what is asked of them: tables, agreements of halves, and contrasts."""

from fractions import Fraction
from itertools import combinations, pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError
from common.methods.subn_plus.dependence import departure, depends
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.requests import (
    Agreements,
    Contrasts,
    GroupedTables,
    TablesTogether,
    contrast,
    even_groups,
    groups_within,
    halves,
    without_noise_floor,
)
from common.methods.subn_plus.script import measure
from common.privacy import sensitivity
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift, contrasts
from common.schema import limits
from common.schema.codes import Codes
from common.schema.limits import MOST_STEP_CELLS
from common.study.requests import split_tables
from common.study.script import ScriptRun
from parley.simulation.in_process import RowsInMemory

counts = st.lists(st.integers(-50, 400), min_size=1, max_size=9).map(np.array)


@given(counts, st.integers(0, 1000))
def test_the_noise_floor_leaves_at_most_the_rows_and_no_less_than_needed(values, rows):
    left = without_noise_floor(values, rows)
    assert (left >= 0).all()
    assert left.sum() <= rows
    taken = int(values.max()) - int(left.max())
    if taken > 0:
        assert np.maximum(values - (taken - 1), 0).sum() > rows or taken == values.max()


@settings(deadline=None)
@given(counts)
def test_halves_are_the_first_of_the_most_even_cuts(values):
    chosen = halves(values, 500)
    size = len(values)
    weights = without_noise_floor(values, 500)
    cost = {cut: abs(int(weights[:cut].sum() - weights[cut:].sum())) for cut in range(1, size)}
    first = min((cut for cut in cost if cost[cut] == min(cost.values())), default=1)
    assert chosen == (0,) * first + (1,) * (size - first)


def test_billions_of_rows_do_not_overflow():
    rows = 10**4 * limits.MOST_ROWS
    values = np.array([4, 1, 1, 3]) * (rows // 9)
    assert halves(values, rows) == (0, 1, 1, 1)
    assert even_groups(values, rows, groups=3) == (0, 1, 1, 2)
    many = np.full(1000, rows // 1000)
    assert even_groups(many, rows, groups=64) == tuple(
        (2 * v + 1) * 64 // 2000 for v in range(1000)
    )


def test_grouped_tables_are_the_tables_summed_over_the_groups_and_add_up_over_parties():
    rng = np.random.default_rng(2)
    table = Codes.from_columns([rng.integers(0, s, 300) for s in (4, 2, 5)], (4, 2, 5))
    request = GroupedTables(((2, 0), (1,), (0, 1, 2)), ((0, 0, 1, 1), (0, 1), (0, 1, 1, 1, 2)))
    assert (request.sizes, request.cells) == ((2, 2, 3), 6 + 2 + 12)
    whole = request.answer(RowsInMemory(table))
    parts = [table.take(slice(0, 100)), table.take(slice(100, 300))]
    assert (whole == sum(request.answer(RowsInMemory(part)) for part in parts)).all()
    first, second, _ = split_tables(request.tables, whole)
    expected = np.zeros((3, 2), dtype=int)
    for x, z in zip(table.columns[0], table.columns[2], strict=True):
        expected[request.groups[2][z], request.groups[0][x]] += 1
    assert (first == expected).all()
    assert (second == np.bincount(table.columns[1])).all()
    assert request.map_of(1) is None
    assert list(request.map_of(0)) == [0, 0, 1, 1]
    other = GroupedTables(request.sets, request.groups[::-1])
    assert other.canonical != request.canonical
    assert request.limit(300) == 300


def test_ungrouped_tables_are_plain_counts():
    table = Codes.from_columns([np.array([0, 1, 1])], (2,))
    request = GroupedTables(((0,),), ((0, 1),))
    assert list(request.answer(RowsInMemory(table))) == [1, 2]


@given(
    st.lists(st.integers(-50, 1000), min_size=1, max_size=30),
    st.integers(1, 3000),
    st.integers(2, 12),
)
def test_even_groups_are_runs_and_at_least_two(counts, rows, groups):
    found = even_groups(np.array(counts), rows, groups=groups)
    assert len(found) == len(counts)
    assert all(b - a in (0, 1) for a, b in pairwise(found))
    assert found[0] == 0
    assert min(2, len(counts)) <= max(found) + 1 <= max(groups, min(2, len(counts)))


def test_rare_values_are_joined_only_where_that_is_asked_for():
    counts = np.array([500, 480, 5, 5, 5, 5])
    assert even_groups(counts, 1000, groups=6) == tuple(range(6))
    assert even_groups(counts, 1000, groups=6, join_rare=True) == (0, 1, 2, 2, 2, 2)
    assert even_groups(counts[:2], 980, groups=6, join_rare=True) == (0, 1)


def test_tables_together_are_their_parts_one_after_the_other():
    rows = RowsInMemory(Codes.from_columns([np.array([0, 1, 2]), np.array([1, 0, 1])], (3, 2)))
    parts = (GroupedTables(((0,),), ((0, 0, 1), (0, 1))),
             GroupedTables(((0, 1),), ((0, 1, 2), (0, 1))))  # fmt: skip
    request = TablesTogether(parts)
    assert request.answer(rows).tolist() == [2, 1, 0, 1, 1, 0, 0, 1]
    assert request.cells == 8
    assert request.links == ((0,), (0, 1))
    assert [table.grouped for table in request.tables] == [(True,), (False, False)]
    assert request.limit(7) == 7
    assert request.canonical != TablesTogether(parts[::-1]).canonical


def test_one_frequent_value_leaves_few_groups():
    assert even_groups(np.array([9000, 100, 100, 100, 100, 100]), 9500, groups=5) == (
        0,
        1,
        1,
        1,
        1,
        1,
    )
    assert even_groups(np.array([10] * 6), 60, groups=3) == (0, 0, 1, 1, 2, 2)


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
    agreed = [int(np.trace(table))]
    (found,) = request.departures(agreed, weights, [variance], rows).values()
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
            weights, variances = request.weights(noisy, rows), [Fraction(2 * 400**2)] * 28
            found = request.departures(noisy[:28].tolist(), weights, variances, rows)
            seen += depends(found, rows, DiscreteLaplace(Fraction(400)))
        return seen / 100

    assert dependent(exact) < 0.1
    assert dependent(related) > 0.9


def test_departures_are_exact():
    request = Agreements(((0, 1), (0, 1)))
    (found,) = request.departures([7], [(1, 2), (2, 1)], [Fraction(1, 3)], 10).values()
    # Of ten rows 40/9 agree by chance.
    assert found.squares == (7 - Fraction(40, 9)) ** 2 - Fraction(1, 3)


def vector(group: int, groups: int) -> np.ndarray:
    """A row's contrast of one attribute, by its definition."""
    own = np.full(groups, -contrast_shift(groups))
    own[group] += CONTRAST_UNIT
    return own


def row_contrasts(row, widths, order) -> np.ndarray:
    """All sets' outer products, one after the other."""
    parts = []
    for own in combinations(range(len(widths)), order):
        table = np.ones(1, dtype=np.int64)
        for a in own:
            table = np.multiply.outer(table, vector(row[a], widths[a]))
        parts.append(table.ravel())
    return np.concatenate(parts)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(2, 4), min_size=2, max_size=4), st.sampled_from([2, 3]))
def test_no_two_rows_are_further_apart_than_the_sensitivity(widths, order):
    if len(widths) < order:
        return
    bound = contrasts(widths, order)
    rows = [row_contrasts(row, widths, order) for row in product(*map(range, widths))]
    apart = max(int(((rows[0] - row) ** 2).sum()) for row in rows)  # alike from every row
    apart = max(apart, *(int(((a - b) ** 2).sum()) for a in rows[:40] for b in rows))
    assert apart <= bound.l2_squared
    assert order == 3 or apart == bound.l2_squared
    assert max(int(np.abs(rows[0] - row).sum()) for row in rows) <= bound.l1


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(2, 40), min_size=3, max_size=8))
def test_the_worst_set_of_changed_attributes_is_found_for_triples(widths):
    unit = CONTRAST_UNIT**2
    norms = [int((vector(0, own) ** 2).sum()) for own in widths]

    def cubes(values):
        return sum(prod(three) for three in combinations(values, 3))

    least = min(
        cubes([v - unit * bit for v, bit in zip(norms, changed, strict=True)])
        for changed in product((0, 1), repeat=len(norms))
    )
    exact = 2 * (cubes(norms) - least)
    bound = contrasts(widths, 3).l2_squared
    assert exact <= bound <= 4 * exact
    assert bound == exact or len(set(norms)) > 1


def test_contrasts_are_cheaper_than_tables():
    tables = 15 * 14
    assert contrasts([2] * 15, 2).l2_squared / CONTRAST_UNIT**4 < 0.27 * tables
    assert contrasts([4] * 15, 2).l2_squared / CONTRAST_UNIT**4 < 0.6 * tables
    assert contrasts([2] * 15, 3).l2_squared / CONTRAST_UNIT**6 < 0.3 * 2 * 455
    with pytest.raises(LocalError, match="1 groups"):
        contrasts([2, 1], 2)


@pytest.mark.parametrize("order", [2, 3])
def test_the_answer_is_the_sum_of_the_rows_contrasts(order):
    rng = np.random.default_rng(order)
    sizes, groups = (3, 5, 2, 4), ((0, 1, 2), (0, 0, 1, 2, 2), (0, 1), (0, 1, 1, 1))
    rows = np.stack([rng.integers(0, size, 50) for size in sizes], axis=1)
    data = RowsInMemory(Codes.from_columns(list(rows.T), sizes))
    request = Contrasts(tuple(combinations(range(4), order)), groups)
    grouped = [[groups[a][v] for a, v in enumerate(row)] for row in rows]
    expected = sum(row_contrasts(row, request.sizes, order) for row in grouped)
    answer = request.answer(data)
    np.testing.assert_array_equal(answer, expected)
    squares = sum(row_contrasts(row, request.sizes, order) ** 2 for row in grouped)
    np.testing.assert_array_equal(request.squares(data), squares)
    assert len(answer) == request.cells
    assert np.abs(answer).max() <= request.limit(50)
    assert [part.ndim for part in request.split(answer)] == [order] * len(request.sets)


def facts(sizes, rows, epsilon) -> PublicFacts:
    return PublicFacts(
        sizes=tuple(sizes),
        parties=("a", "b"),
        rows=rows,
        promise=Promise(epsilon, Fraction(1, 10**9)),
        noise_shares=Fraction(2),
    )


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.integers(1, 10**6),
    st.fractions(Fraction(1, 100), 8),
    st.integers(0, 2**32),
)
def test_the_steps_cost_no_more_than_rho_whatever_the_noise(sizes, rows, epsilon, seed):
    known = facts(sizes, rows, epsilon)
    plan, twin = (ScriptRun(measure(known)) for _ in range(2))
    rng = np.random.default_rng(seed)
    spent = Fraction(0)
    while (step := plan.step()) is not None:
        assert step.canonical == twin.step().canonical
        assert step.cells <= MOST_STEP_CELLS
        spent += step.costs["a"]
        noisy = rng.integers(-rows, 2 * rows + 1, step.request.cells)
        plan.advance(noisy)
        twin.advance(noisy)
    assert Fraction(999, 1000) * known.budget <= spent <= known.budget


def drawn(rows, sizes, epsilon, seed):
    """Synthetic rows of the script, noise of its laws drawn for real."""
    known = facts(sizes, len(rows), epsilon)
    data = RowsInMemory(Codes.from_columns(list(rows.T), sizes))
    source = SeededRandomSource(f"contrasts {seed}")
    run = ScriptRun(measure(known))
    while (step := run.step()) is not None:
        noise = sum(step.law.draw(step.cells, source) for _ in range(2))
        run.advance(step.request.answer(data) + noise)
    return np.stack(run.model().sample(len(rows), source).columns, axis=1)


def pair_distance(rows, other, sizes):
    found = []
    for a, b in combinations(range(len(sizes)), 2):
        one, two = (
            np.bincount(t[:, a] * sizes[b] + t[:, b], minlength=sizes[a] * sizes[b])
            for t in (rows, other)
        )
        found.append(np.abs(one - two).sum() / (2 * len(rows)))
    return float(np.mean(found))


def chained(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Six attributes, each a noisy copy of the one before."""
    columns = [rng.integers(0, 6, rows)]
    for _ in range(5):
        noise = rng.integers(0, 6, rows)
        columns.append(np.where(rng.random(rows) < 0.7, columns[-1], noise))
    return np.stack(columns, axis=1)


def test_dependence_is_kept_and_none_is_made_up():
    rng = np.random.default_rng(1)
    sizes, rows = (6,) * 6, 20_000
    real = chained(rng, rows)
    shuffled = np.stack([rng.permutation(column) for column in real.T], axis=1)
    kept = pair_distance(real, drawn(real, sizes, Fraction(1), 0), sizes)
    made_up = pair_distance(shuffled, drawn(shuffled, sizes, Fraction(1), 0), sizes)
    again = pair_distance(shuffled, np.stack([rng.permutation(c) for c in real.T], axis=1), sizes)
    assert kept < 0.05 < 0.2 < pair_distance(real, shuffled, sizes)
    assert made_up < again + 0.005  # of another sample of independent columns


def test_groups_within_halves_keep_the_cut():
    counts, cut = np.array([10, 30, 20, 40, 5, 15, 60, 20]), (0,) * 4 + (1,) * 4
    assert groups_within(cut, counts, 200, groups=8) == tuple(range(8))
    assert groups_within(cut, counts, 200, groups=3) == cut
    found = groups_within(cut, counts, 200, groups=4)
    assert max(found[:4]) < min(found[4:])
    assert sorted(set(found)) == [0, 1, 2, 3]
