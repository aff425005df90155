"""Would independent columns have been closer? A forecast from what was released, no row looked at.

A network pays for its dependences with noise: its tables are larger and more of them share the
budget. Where the noise it adds to the single attributes exceeds the dependence it shows, the noisy
one-way marginals alone, the method `floor`, are expected to be closer to the truth, and the report
of such a release says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from common.marginals import count
from common.methods.network_model import NetworkModel
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.privacy.promise import Promise
from common.release.diagnostics import noise_distance
from common.schema import Codes
from common.schema.codes import binarise
from common.study.steps import Model, Step


@dataclass(frozen=True, slots=True)
class FloorForecast:
    """Average distances of two-way marginals: what noise adds, and what dependence is worth."""

    noise: float  # that this method's tables add to a pair's two margins
    floor_noise: float  # that noisy one-way marginals would add to them
    dependence: float  # how far the released pairs are from independent ones

    @property
    def below_floor(self) -> bool:
        """Whether independent columns are expected to be closer to the truth."""
        return self.noise - self.floor_noise > self.dependence

    def words(self) -> str:
        return (
            "Below the floor: at this budget noisy one-way marginals alone (method floor) are "
            "expected to be closer to the truth than this release: its noise moves a pair by "
            f"{self.noise:.2f} on average, theirs by {self.floor_noise:.2f}, and the dependence it "
            f"shows is worth {self.dependence:.2f}. More epsilon, more rows or subn+ would help."
        )


def floor_forecast(
    model: Model, steps: tuple[Step, ...], synthetic: Codes, *, rows: int, promise: Promise
) -> FloorForecast | None:
    """The forecast for a network learnt from noisy tables; None for any other model."""
    last = steps[-1] if steps else None
    if not (isinstance(model, NetworkModel) and last and last.law and synthetic.width > 1):
        return None
    law = last.law
    shown = binarise(synthetic) if model.variables.in_bits else synthetic
    # The first variable of a family's table is the one that is drawn.
    noise = [_margin_noise(own.shape[0], own.cells, law, rows) for own in last.tables]
    moved = sensitivity.histograms(synthetic.width)
    alone = promise.law(promise.budget, moved)
    floor = [_margin_noise(size, size, alone, rows) for size in synthetic.sizes]
    return FloorForecast(
        noise=2 * float(np.mean(noise)),
        floor_noise=2 * float(np.mean(floor)),
        dependence=_distance_from_independence(shown),
    )


def _margin_noise(size: int, cells: int, law: NoiseLaw, rows: int) -> float:
    """Expected distance of an attribute's margin that is summed out of a noisy table."""
    return noise_distance(size * math.sqrt(law.variance() * cells / size), rows)


def _distance_from_independence(codes: Codes) -> float:
    pairs = list(combinations(range(codes.width), 2))
    distances = []
    for table in count(codes, pairs):
        law = table / max(1, codes.rows)
        product = law.sum(axis=1, keepdims=True) * law.sum(axis=0, keepdims=True)
        distances.append(float(np.abs(law - product).sum() / 2))
    return float(np.mean(distances))
