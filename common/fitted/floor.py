"""Would independent columns be closer to the truth? A forecast from what was released.

A network pays for its dependences with noise: its tables are larger and more of them share the
budget. Where the noise it adds to the single attributes exceeds the dependence it shows, the noisy
one-way marginals alone, the method `floor`, are expected to be closer to the truth, and the report
says so. No row is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from common.bayes.form import Model
from common.marginals import count
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.privacy.promise import Promise
from common.release.measured import noise_distance
from common.schema import Codes
from common.schema.codes import binarise
from common.study.steps import Step


@dataclass(frozen=True, slots=True)
class FloorForecast:
    """Average distances of two-way marginals: what noise adds, and what dependence is worth."""

    noise: float  # that this method's tables add to a pair's two margins
    floor_noise: float  # that noisy one-way marginals would add to them
    dependence: float  # how far the released pairs are from independent pairs

    @property
    def below_floor(self) -> bool:
        """Whether independent columns are expected to be closer to the truth."""
        return self.noise - self.floor_noise > self.dependence

    def words(self) -> str:
        return (
            "Below the floor: at this budget, noisy one-way marginals alone (method floor) are "
            "expected to be closer to the truth than this release. On average the noise of this "
            f"release moves a pair by {self.noise:.2f}, that of the floor by "
            f"{self.floor_noise:.2f}, and the dependence in this release is worth "
            f"{self.dependence:.2f}. A larger epsilon, more rows or subn+ would help."
        )


def floor_forecast(
    model: Model,
    steps: Sequence[Step],
    synthetic: Codes,
    *,
    rows: int,
    promise: Promise,
    in_bits: bool,
) -> FloorForecast | None:
    """Forecast for a network learnt from noisy tables; return None for any other model."""
    last = steps[-1] if steps else None
    if model.arrows is None or last is None or last.law is None or synthetic.width < 2:
        return None
    law = last.law
    shown = binarise(synthetic) if in_bits else synthetic
    # The first variable of a family's table is the one that is drawn.
    noise = [_margin_noise(table.shape[0], table.cells, law, rows) for table in last.tables]
    moved = sensitivity.histograms(synthetic.width)
    alone = promise.law(promise.budget, moved)
    floor = [_margin_noise(size, size, alone, rows) for size in synthetic.sizes]
    return FloorForecast(
        noise=2 * float(np.mean(noise)),
        floor_noise=2 * float(np.mean(floor)),
        dependence=_distance_from_independence(shown),
    )


def _margin_noise(size: int, cells: int, law: NoiseLaw, rows: int) -> float:
    """Return the expected distance of an attribute's margin, summed out of a noisy table."""
    return noise_distance(size * math.sqrt(law.variance() * cells / size), rows)


def _distance_from_independence(codes: Codes) -> float:
    distances = []
    for counts in count(codes, list(combinations(range(codes.width), 2))):
        law = counts / max(1, codes.rows)
        product = law.sum(axis=1, keepdims=True) * law.sum(axis=0, keepdims=True)
        distances.append(float(np.abs(law - product).sum() / 2))
    return float(np.mean(distances))
