"""The loss of moments: its gradients are those of the squared error."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.moment_loss import MomentLoss, Moments
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift


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
