from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError
from common.methods.subn_plus import latent
from common.methods.subn_plus.latent import LatentModel, estimated_margins, fit
from common.methods.subn_plus.losses import Measurement, Moments
from common.privacy.randomness import SeededRandomSource
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift

SIZES = (3, 2, 4, 2)
ROWS = 10_000


def dependent_joint(seed: int = 3) -> np.ndarray:
    """A joint distribution with strong dependence and no particular structure."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(int(np.prod(SIZES)), 0.3)).reshape(SIZES)


def marginal(joint: np.ndarray, attributes: tuple[int, ...]) -> np.ndarray:
    return joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in attributes))


def exact(joint: np.ndarray, sets, variance: float = 1.0) -> list[Measurement]:
    return [Measurement(s, (None,) * len(s), ROWS * marginal(joint, s), variance) for s in sets]


def distance(p: np.ndarray, q: np.ndarray) -> float:
    return 0.5 * float(np.abs(p - q).sum())


def fit_to(sizes, rows, tables, **more) -> LatentModel:
    return fit(estimated_margins(sizes, rows, tables), rows, tables, **more)


def some_model(components: int = 5, seed: int = 0) -> LatentModel:
    rng = np.random.default_rng(seed)
    return LatentModel(
        rng.dirichlet(np.ones(components)),
        tuple(rng.dirichlet(np.ones(size), components) for size in SIZES),
    )


def test_marginals_are_those_of_the_brute_force_joint():
    model = some_model()
    joint = np.einsum("m,ma,mb,mc,md->abcd", model.weights, *model.columns)
    for size in range(1, 5):
        for attributes in combinations(range(4), size):
            np.testing.assert_allclose(model.marginal(attributes), marginal(joint, attributes))
    np.testing.assert_allclose(model.marginal((2, 0)), marginal(joint, (0, 2)).T)


def test_precise_tables_are_reproduced():
    joint = dependent_joint()
    pairs = list(combinations(range(4), 2))
    model = fit_to(SIZES, ROWS, exact(joint, pairs), penalty=1.0)
    for pair in pairs:
        assert distance(model.marginal(pair), marginal(joint, pair)) < 0.01
    whole = fit_to(SIZES, ROWS, exact(joint, [(0, 1, 2, 3)]), penalty=1.0)
    assert distance(whole.marginal((0, 1, 2, 3)), joint) < 0.02


def test_worthless_tables_leave_independent_columns():
    joint = dependent_joint()
    noise = np.random.default_rng(0)
    tables = exact(joint, [(a,) for a in range(4)], variance=1.0)
    for pair in combinations(range(4), 2):
        counts = ROWS * marginal(joint, pair)
        counts = counts + noise.laplace(0, ROWS, counts.shape)
        tables.append(Measurement(pair, (None, None), counts, 2.0 * ROWS**2))
    model = fit_to(SIZES, ROWS, tables)
    for pair in combinations(range(4), 2):
        product = np.outer(*(marginal(joint, (a,)) for a in pair))
        assert (
            distance(model.marginal(pair), product)
            < 0.03
            < distance(marginal(joint, pair), product)
        )


def test_all_tables_count_by_their_variance():
    precise = Measurement((0,), (None,), np.array([8000.0, 2000.0]), 100.0)
    vague = Measurement((0,), (None,), np.array([2000.0, 8000.0]), 900.0)
    (margin,) = estimated_margins((2,), ROWS, [precise, vague])
    np.testing.assert_allclose(margin, [0.74, 0.26])
    assert fit_to((2,), ROWS, [precise, vague]).marginal((0,))[0] == pytest.approx(0.74, abs=0.002)


def test_the_fit_is_repeatable():
    tables = exact(dependent_joint(), [(0, 1), (2, 3)])
    first, second = (fit_to(SIZES, ROWS, tables, iterations=20) for _ in range(2))
    assert first.as_json() == second.as_json()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([1e-3, 1.0, 1e6, 1e12]),
    st.sampled_from([1e-6, 1.0, 1e12]),
    st.integers(1, 10**7),
)
def test_no_measurement_breaks_the_numerics(seed, magnitude, variance, rows):
    rng = np.random.default_rng(seed)
    sizes = (1, 3, 2)
    tables = [
        Measurement((1,), (None,), magnitude * rng.normal(size=3), variance),
        Measurement((0, 1), (None, np.array([0, 0, 1])), magnitude * rng.normal(size=(1, 2)), 1.0),
        Measurement((2, 1, 0), (None,) * 3, np.zeros((2, 3, 1)), variance),
    ]
    model = fit_to(sizes, rows, tables, iterations=60, components=8)
    for array in (model.weights, *model.columns):
        assert np.isfinite(array).all()
        assert (array >= 0).all()
        np.testing.assert_allclose(array.sum(axis=-1), 1.0)


def test_without_measurements_everything_is_uniform():
    np.testing.assert_allclose(fit_to((2, 5), 100, []).marginal((1,)), 0.2, atol=0.01)


def objective(weights, columns, tables, moments, margins, penalty) -> float:
    """What the module says it minimises, term by term."""
    model, total = LatentModel(weights, tuple(columns)), 0.0
    for table in tables:
        seen = model.marginal(table.attributes)
        for axis, grouping in enumerate(table.groupings):
            if grouping is not None:
                seen = np.moveaxis(np.tensordot(seen, np.eye(2)[grouping], (axis, 0)), -1, axis)
        total += float(((ROWS * seen - table.counts) ** 2).sum()) / (2 * table.variance)
    for (a, b), target in zip(combinations(range(4), 2), moments.contrasts, strict=True):
        eyes = [np.eye(w) - contrast_shift(w) / CONTRAST_UNIT for w in (SIZES[a], SIZES[b])]
        seen = eyes[0].T @ model.marginal((a, b)) @ eyes[1]
        total += float(((seen - target) ** 2).sum()) / (2 * moments.variance)
    told = sum((c * np.log(c / m)).sum(axis=1) for c, m in zip(columns, margins, strict=True))
    return total + penalty * float(weights @ told)


def test_the_gradient_is_that_of_the_whole_objective():
    rng, joint = np.random.default_rng(9), dependent_joint()
    margins = [rng.dirichlet(np.ones(size)) for size in SIZES]
    alone = [Measurement((a,), (None,), ROWS * margins[a], 50.0) for a in range(4)]
    halves = Measurement((2, 0), (np.array([0, 0, 1, 1]), None), rng.normal(size=(2, 3)), 9e4)
    tables = [*alone, *exact(joint, [(0, 1, 2), (1, 3)], variance=7e3), halves]
    sums = [rng.normal(size=(SIZES[a], SIZES[b])) for a, b in combinations(range(4), 2)]
    own = tuple(np.arange(size) for size in SIZES)
    moments = Moments(tuple(range(4)), own, sums, 1e-3)
    atoms = latent._Atoms(margins, tables[4:], [moments])
    loss = latent._Loss(atoms, ROWS, tables, [moments], (), 30.0)
    logits, weight_logits = rng.normal(size=(sum(SIZES), 5)), rng.normal(size=5)
    ends = np.cumsum(SIZES)[:-1]

    def at(logits, weight_logits):
        columns = [latent.softmax(own.T) for own in np.split(logits, ends)]
        weights = latent.softmax(weight_logits)
        return objective(weights, columns, tables, moments, margins, 30.0) * 50.0 / ROWS**2

    slopes, weight_slopes = (
        own.copy() for own in loss.gradients(latent.softmax(weight_logits), logits, [])
    )
    step = 1e-5
    for place in [(0, 0), (2, 3), (4, 1), (8, 4), (10, 2)]:
        moved = np.zeros_like(logits)
        moved[place] = step
        measured = (at(logits + moved, weight_logits) - at(logits - moved, weight_logits)) / 2
        assert slopes[place] == pytest.approx(measured / step, rel=1e-5, abs=1e-9)
    for place in range(5):
        moved = np.eye(5)[place] * step
        measured = (at(logits, weight_logits + moved) - at(logits, weight_logits - moved)) / 2
        assert weight_slopes[place] == pytest.approx(measured / step, rel=1e-5, abs=1e-9)


def test_no_rows_cannot_be_modelled():
    with pytest.raises(LocalError, match="0 rows"):
        fit([np.ones(2) / 2], 0, [])


def test_samples_follow_the_model_and_margins_hardly_vary():
    model, rows = some_model(seed=5), 20_000
    table = model.sample(rows, SeededRandomSource("sample"))
    assert table.rows == rows
    assert table.sizes == SIZES
    for attribute in range(4):
        share = np.bincount(table.columns[attribute], minlength=SIZES[attribute]) / rows
        assert distance(share, model.marginal((attribute,))) < 10 / rows  # a few rows of rounding
    for a, b in combinations(range(4), 2):
        drawn = np.zeros((SIZES[a], SIZES[b]))
        np.add.at(drawn, (table.columns[a], table.columns[b]), 1 / rows)
        assert distance(drawn, model.marginal((a, b))) < 0.02
    # Rows are in random order: the first half looks like the whole.
    half = np.bincount(table.columns[2][: rows // 2], minlength=4) / (rows // 2)
    assert distance(half, model.marginal((2,))) < 0.02


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_small_samples_have_the_number_of_rows_asked_for(rows):
    assert some_model().sample(rows, SeededRandomSource(1)).rows == rows


@pytest.mark.parametrize(
    ("counts", "variance", "message"),
    [(np.zeros((2, 2)), 1.0, "dimensions"), (np.zeros(2), 0.0, "positive variance")],
)
def test_a_malformed_measurement_is_refused(counts, variance, message):
    with pytest.raises(LocalError, match=message):
        Measurement((0,), (None,), counts, variance)


def test_a_third_of_the_steps_from_a_near_start_leads_to_the_same_place():
    noise, joint = np.random.default_rng(4), dependent_joint()
    pairs = list(combinations(range(4), 2))

    def tables():
        return [
            replace(own, counts=own.counts + noise.normal(0, 30, own.counts.shape))
            for own in exact(joint, pairs, variance=900.0)
        ]

    first, second = tables(), tables()
    start = fit_to(SIZES, ROWS, first)
    fresh, near = fit_to(SIZES, ROWS, second), fit_to(SIZES, ROWS, second, start=start)
    for pair in pairs:
        moved = distance(start.marginal(pair), fresh.marginal(pair))
        assert distance(near.marginal(pair), fresh.marginal(pair)) < 0.35 * moved + 5e-4


def test_a_mixture_of_other_columns_or_classes_is_no_start():
    tables = exact(dependent_joint(), [(0, 1), (2, 3)])
    fresh = fit_to(SIZES, ROWS, tables, iterations=9, components=5)
    other = LatentModel(np.ones(5) / 5, tuple(np.full((5, size), 1 / size) for size in (3, 2, 4)))
    for start in (some_model(components=6), other):
        again = fit_to(SIZES, ROWS, tables, iterations=9, components=5, start=start)
        assert again.as_json() == fresh.as_json()
    near = fit_to(SIZES, ROWS, tables, iterations=9, components=5, start=some_model())
    assert near.as_json() != fresh.as_json()
