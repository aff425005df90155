from fractions import Fraction
from itertools import combinations, pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError
from common.methods.subn_plus.budget import PublicFacts
from common.methods.subn_plus.contrast_plan import plan_contrasts
from common.methods.subn_plus.contrasts import Contrasts
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.moment_loss import MomentLoss, Moments
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


def loss(weights, columns, moments) -> float:
    """Half the squared error, set by set, over the variance."""
    model = LatentModel(weights, tuple(columns))
    total = 0.0
    sets = combinations(range(len(moments.columns)), moments.order)
    for own, target in zip(sets, moments.contrasts, strict=True):
        held = [moments.columns[i] for i in own]
        if len(set(held)) < len(held):
            continue
        joint = model.marginal(held)
        for axis, i in enumerate(own):
            width = moments.widths[i]
            seen = np.eye(width)[moments.groupings[i]] - contrast_shift(width) / CONTRAST_UNIT
            joint = np.moveaxis(np.tensordot(joint, seen, axes=(axis, 0)), -1, axis)
        total += float(((joint - target) ** 2).sum()) / (2 * moments.variance)
    return total


@pytest.mark.parametrize("order", [2, 3])
def test_gradients_are_those_of_the_squared_error(order):
    rng = np.random.default_rng(5)
    sizes, holders = (4, 3, 6, 2), (0, 1, 2, 2, 3)  # the third column holds two attributes
    groupings = tuple(
        np.array(own)
        for own in ([0, 1, 1, 2], [0, 1, 2], [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1], [0, 1])
    )
    widths = [int(own.max()) + 1 for own in groupings]
    sums = [rng.normal(size=[widths[i] for i in own]) for own in combinations(range(5), order)]
    moments = Moments(holders, groupings, sums, 0.3)
    weights = rng.dirichlet(np.ones(3))
    columns = [rng.dirichlet(np.ones(size), 3) for size in sizes]
    wide = np.concatenate(columns, axis=1).T
    starts = [0, *np.cumsum(sizes).tolist()]
    slopes, weight_slopes = np.zeros_like(wide), np.zeros(3)
    MomentLoss(moments, groupings, starts).add_gradient(weights, wide, slopes, weight_slopes)

    def at(weights, wide):
        parts = [wide[a:b].T for a, b in pairwise(starts)]
        return loss(weights, parts, moments)

    step = 1e-6
    for own, place, other in [(0, 0, 3), (1, 5, 4), (2, 9, 7), (2, 14, 13)]:
        moved = np.zeros_like(wide)  # columns stay distributions
        moved[place, own], moved[other, own] = step, -step
        measured = (at(weights, wide + moved) - at(weights, wide - moved)) / (2 * step)
        slope = slopes[place, own] - slopes[other, own]
        assert slope == pytest.approx(measured, rel=1e-5, abs=1e-6)
    for c in range(3):
        moved = np.eye(3)[c] * step
        measured = (at(weights + moved, wide) - at(weights - moved, wide)) / (2 * step)
        assert weight_slopes[c] == pytest.approx(measured, rel=1e-5, abs=1e-6)


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


def test_the_plan_is_finer_the_more_there_is_to_spend():
    groups, triples = [], []
    for epsilon in (Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(10), Fraction(100)):
        plan = plan_contrasts(facts([16] * 12, 40_000, epsilon))
        groups.append(plan.pair_groups if plan else 0)
        triples.append(plan.triple_groups if plan else 0)
    assert groups == sorted(groups)
    assert triples == sorted(triples)
    assert (groups[0], groups[-1], triples[0]) == (0, 16, 0)
    assert triples[-1] > 4


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
