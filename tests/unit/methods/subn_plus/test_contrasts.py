from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError
from common.methods.subn_plus.budget import PublicFacts
from common.methods.subn_plus.contrasts import Contrasts
from common.methods.subn_plus.script import measure
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift, contrasts
from common.schema.codes import Codes
from common.schema.limits import MOST_STEP_CELLS
from common.study.script import ScriptRun
from parley.simulation.in_process import RowsInMemory


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
    expected = sum(row_contrasts(row, request.counted.sizes, order) for row in grouped)
    answer = request.answer(data)
    np.testing.assert_array_equal(answer, expected)
    squares = sum(row_contrasts(row, request.counted.sizes, order) ** 2 for row in grouped)
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
