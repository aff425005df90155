"""Sensitivities and noise scales, by moving every row to every cell."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.wavelet.decisions import make_plan
from common.wavelet.mechanism import add_noise, noisy_cells
from tests.harness.audit import audit
from tests.unit.wavelet.blocks import (
    FIG3,
    MIXED,
    alone,
    haar,
    integer_coefficients,
    no_noise,
    nominal,
    rows_of,
)

BALANCED = [
    (haar(8),),
    (haar(5),),
    (haar(1),),
    (nominal((0, 1)),),
    (nominal(FIG3),),
    (haar(8), haar(8)),
    (haar(4), haar(4), haar(4)),
    (haar(8), nominal(FIG3)),
    (alone(3), haar(8)),
    (alone(3), nominal(FIG3), haar(3)),
]
UNBALANCED = [(nominal(MIXED),), (nominal(((0, 1), 2)), haar(4)), (nominal((0, (1, (2, (3, 4))))),)]


def _scales(plan):
    """The noise scale of every integer coefficient, in the order of the plan's own axes."""
    scales = np.empty(plan.sub_matrix_shape, dtype=object)
    for scale, where in plan.noise_classes:
        index = np.ix_(
            *(np.arange(n)[w] for n, w in zip(plan.sub_matrix_shape, where, strict=True))
        )
        scales[index] = scale
    return scales


def _losses(axes, epsilon=Fraction(1)):
    """sum |change of c~| / scale for one row more in each cell, exactly, and the changes."""
    plan = make_plan(
        axes, epsilon, "privelet+", [i for i, a in enumerate(axes) if a.kind == "untransformed"]
    )
    inner = plan.transformed
    scales = _scales(plan)
    shape = tuple(axis.size for axis in plan.stored_axes)
    outer = len(shape) - len(inner)
    units = []
    for cell in np.ndindex(shape):
        unit = np.zeros(shape[outer:], dtype=np.int64)
        unit[cell[outer:]] = 1
        moved = integer_coefficients(unit, inner)
        change = np.zeros((*shape[:outer], *moved.shape), dtype=object)
        change[cell[:outer]] = moved
        units.append(change / scales)
    return plan, units


@pytest.mark.parametrize("axes", BALANCED)
def test_every_cell_attains_the_generalised_sensitivity(axes):
    plan, units = _losses(axes)
    assert {sum(abs(u).ravel()) for u in units} == {Fraction(plan.sensitivity) / plan.scale}


@pytest.mark.parametrize("axes", UNBALANCED)
def test_the_deepest_cell_attains_the_generalised_sensitivity(axes):
    plan, units = _losses(axes)
    assert max(sum(abs(u).ravel()) for u in units) == Fraction(plan.sensitivity) / plan.scale


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 3), Fraction(7, 2)])
@pytest.mark.parametrize("axes", [*BALANCED, *UNBALANCED])
def test_a_replaced_row_costs_at_most_epsilon(axes, epsilon):
    _, units = _losses(axes, epsilon)
    sample = units[:: max(1, len(units) // 20)]
    for one, other in itertools.combinations(sample, 2):
        assert sum(abs(one - other).ravel()) <= epsilon


@pytest.mark.parametrize(
    ("axes", "distance"),
    [
        ((haar(8),), 6),
        ((haar(101),), 14),
        ((nominal(FIG3),), 4),
        ((haar(8), haar(8)), 28),
        ((haar(4), haar(4), haar(4)), 46),
        ((haar(8), nominal(FIG3)), 20),
        ((alone(3), haar(8)), 8),
    ],
)
def test_largest_weighted_distance_of_neighbours(axes, distance):
    plan, units = _losses(axes)
    # In float for speed: the exact values are small integers.
    rows = np.array([u.ravel() * plan.scale for u in units], dtype=np.float64)
    largest = max(np.abs(rows - row).sum(axis=1).max() for row in rows)
    assert largest == pytest.approx(distance, abs=1e-9)
    assert distance <= 2 * plan.sensitivity


def test_padding_counts_and_leftover_room_is_free():
    scale = {n: make_plan((haar(n),), Fraction(1), "privelet").scale for n in (64, 65, 101, 128)}
    assert scale[64] == 14
    assert scale[65] == scale[101] == scale[128] == 16


class RecordingSampler:
    def __init__(self):
        self.calls = []
        self.given = []

    def __call__(self, scale, count, source):
        start = sum(count for _, count in self.calls)
        self.calls.append((scale, count))
        self.given.append(np.arange(start + 1, start + count + 1))
        return self.given[-1]


@pytest.mark.parametrize(
    "axes", [*BALANCED, *UNBALANCED, (nominal(((0, 1, 2), (3, 4), 5)), haar(3))]
)
def test_every_coefficient_gets_one_draw_of_its_own_scale(axes):
    plan = make_plan(axes, Fraction(1, 2), "privelet")
    sampler = RecordingSampler()
    block = np.zeros((2, *plan.sub_matrix_shape), dtype=np.int64)
    add_noise(block, plan, sampler, SeededRandomSource(0))
    assert sorted(block.ravel()) == list(range(1, block.size + 1))  # all of them, each once
    scale_of_draw = np.repeat([s for s, _ in sampler.calls], [n for _, n in sampler.calls])
    used = scale_of_draw[block - 1]
    multiplier = np.ones(())
    for axis in plan.transformed:
        multiplier = np.multiply.outer(multiplier, axis.multipliers)
    assert plan.scale == 2 * plan.sensitivity * 2  # 2 * sensitivity / (1/2)
    for row in used:
        assert np.array_equal(row, plan.scale * multiplier.astype(int))


def test_the_pipeline_draws_for_every_padded_coefficient_of_every_slab(monkeypatch):
    monkeypatch.setattr("common.wavelet.decisions.SLAB_COEFFICIENTS", 200)
    axes = (alone(7), haar(5), nominal(FIG3))
    plan = make_plan(axes, Fraction(1), "privelet+", [0])
    sampler = RecordingSampler()
    noisy_cells(rows_of(np.ones((7, 5, 6), dtype=int)), plan, sampler, SeededRandomSource(0))
    assert sum(count for _, count in sampler.calls) == 7 * 8 * 9
    assert plan.slab == 2


def test_large_blocks_are_drawn_in_pieces(monkeypatch):
    monkeypatch.setattr("common.wavelet.mechanism._DRAWS_AT_ONCE", 10)
    plan = make_plan((haar(8), nominal(MIXED), haar(3)), Fraction(1), "privelet")
    sampler = RecordingSampler()
    block = np.zeros((3, *plan.sub_matrix_shape), dtype=np.int64)
    add_noise(block, plan, sampler, SeededRandomSource(0))
    assert sorted(block.ravel()) == list(range(1, block.size + 1))
    assert max(count for _, count in sampler.calls) <= 10


def test_the_exact_rule_leaves_haar_domains_alone_up_to_159():
    for size in range(2, 260):
        plan = make_plan((haar(size),), Fraction(1), "privelet+", "exact")
        assert (plan.axes[0].kind == "untransformed") == (size <= 159), size


@pytest.mark.parametrize(("size", "left"), [(512, True), (726, True), (727, False), (1001, False)])
def test_the_bound_rule_leaves_haar_domains_alone_up_to_726(size, left):
    plan = make_plan((haar(size),), Fraction(1), "privelet+", "bound")
    assert (plan.axes[0].kind == "untransformed") == left


@pytest.mark.parametrize(("height", "limit"), [(2, 16), (3, 36), (4, 64)])
def test_the_bound_rule_for_hierarchies_is_four_times_the_height_squared(height, limit):
    for size in (limit, limit + 1):
        nested = tuple(range(size - height + 2))
        for extra in range(size - height + 2, size):
            nested = (nested, extra)
        axis = nominal(nested)
        assert axis.sensitivity == height
        plan = make_plan((axis,), Fraction(1), "privelet+", "bound")
        assert (plan.axes[0].kind == "untransformed") == (size <= limit)


def test_the_rules_minimise_the_worst_variance_over_all_choices():
    axes = (haar(200), nominal(FIG3), haar(16), nominal(tuple(range(40))))
    for rule, factor in (("bound", "variance_bound"), ("exact", "worst_variance")):

        def worst(plan, factor=factor):
            product = math.prod(Fraction(getattr(axis, factor)) for axis in plan.axes)
            return plan.sensitivity**2 * product

        chosen = worst(make_plan(axes, Fraction(1), "privelet+", rule))
        every = [
            worst(make_plan(axes, Fraction(1), "privelet+", subset))
            for count in range(5)
            for subset in itertools.combinations(range(4), count)
        ]
        assert chosen == min(every)


def test_a_domain_of_one_value_is_left_alone():
    plan = make_plan((haar(1), nominal((0, 1))), Fraction(1), "privelet")
    assert plan.axes[0].kind == "untransformed"
    assert plan.sensitivity == 2


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1)])
def test_a_budget_that_protects_nothing_is_refused(epsilon):
    with pytest.raises(InputError, match="above 0"):
        make_plan((haar(4),), epsilon, "privelet")


def test_unknown_methods_and_rules_are_refused():
    with pytest.raises(InputError, match="privelet\\*"):
        make_plan((haar(4),), Fraction(1), "wavelet")
    with pytest.raises(InputError, match="at least one"):
        make_plan((), Fraction(1), "privelet")


def test_a_domain_too_large_is_refused_with_its_size_and_a_way_out():
    axes = tuple(haar(1000) for _ in range(5))
    plan = make_plan(axes, Fraction(1), "privelet+")
    with pytest.raises(InputError) as refusal:
        plan.check_size(list("abcde"))
    assert "1,000,000,000,000,000 cells" in str(refusal.value)
    assert "a 1,000 x b 1,000" in str(refusal.value)
    assert "PrivBayes" in str(refusal.value)


def test_padding_that_would_not_fit_is_refused_too():
    plan = make_plan((haar(520), haar(520), haar(130)), Fraction(1), "privelet")
    assert plan.cells < 1 << 26
    with pytest.raises(InputError, match="GiB"):
        plan.check_size(list("abc"), max_cells=1 << 26)


def test_an_epsilon_too_small_for_exact_arithmetic_is_refused():
    plan = make_plan((haar(8),), Fraction(1, 10**15), "privelet")
    with pytest.raises(InputError, match="too small"):
        noisy_cells(rows_of(np.ones(8, dtype=int)), plan, no_noise, SeededRandomSource(0))


@pytest.mark.statistical
@pytest.mark.parametrize("axis", [haar(2), nominal((0, 1))])
@pytest.mark.parametrize("factor", [Fraction(1), Fraction(7, 10)])
def test_an_audit_finds_epsilon_and_convicts_too_little_noise(axis, factor):
    """A row moved to another sub-matrix is the worst case: all it changes, it changes fully."""
    runs, epsilon = 200_000, Fraction(3)
    plan = make_plan((alone(2), axis), epsilon, "privelet+", [0])
    one = integer_coefficients([1, 0], (axis,))
    inputs = [np.stack([one, 0 * one]), np.stack([0 * one, one])]
    scales = _scales(plan).astype(float)

    def sampler(scale, count, source):
        return discrete_laplace(scale * factor, count, source)

    statistics = []
    for seed, exact in enumerate(inputs):
        block = np.tile(exact, (runs, 1))
        add_noise(block, plan, sampler, SeededRandomSource(f"audit {factor} {seed}"))
        block = block.reshape(runs, 2, -1)
        closer = np.abs(block - inputs[1]) - np.abs(block - inputs[0])
        statistics.append((closer / scales).sum(axis=(1, 2)))
    result = audit(*statistics)
    assert result.contradicts(epsilon) == (factor < 1)
    assert result.epsilon_lower_bound > 2  # the audit is not blind
