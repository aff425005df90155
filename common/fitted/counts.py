"""How many rows satisfy a condition, by rows drawn from a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from common.privacy.laws.discrete_laplace import KURTOSIS
from common.schema import Codes, Schema
from common.schema.conditions import Condition, cells_of, parse
from common.wavelet.noisy_matrix import half_widths

_HARDLY_ANY = 1e-6  # a variance to divide by where there is none

Noise = Mapping[str, float]  # by attribute: the deviation of the count of one value, in rows


@dataclass(frozen=True, slots=True)
class ModelCount:
    """How many rows a model expects to satisfy a query.

    Attributes:
        value: the expected number, of as many rows as the model was fitted to.
        share: that number as a share of the rows.
        attributes: those that the query is about.
        rows: as many as the model was fitted to.
        sampling_deviation: the standard deviation of `value` that comes from answering with a
            sample of the model.
        noise_deviation: about the deviation that comes from the noise in the released tables; None
            if it is not known, and for conditions on several attributes.
    """

    value: float
    share: float
    attributes: tuple[str, ...]
    rows: int
    sampling_deviation: float
    noise_deviation: float | None

    @property
    def standard_deviation(self) -> float | None:
        """Of noise and drawing together; None if the noise is not known."""
        if self.noise_deviation is None:
            return None
        return math.hypot(self.sampling_deviation, self.noise_deviation)

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Return an interval for the true count; None without a standard deviation."""
        deviation = self.standard_deviation
        if deviation is None:
            return None
        variance = np.array([max(deviation**2, _HARDLY_ANY)])
        # The tails of a single draw of Laplace noise: longer than those of any sum of draws.
        half = float(half_widths(variance, KURTOSIS * variance**2, confidence)[0])
        return max(0.0, self.value - half), min(float(self.rows), self.value + half)


def model_count(
    query: str, schema: Schema, sample: Iterable[Codes], *, rows: int, noise: Noise
) -> ModelCount:
    """Answer a query with rows of a model.

    Two errors are known. The rows are a sample of the model: the share that satisfies the condition
    has the deviation of a sample. And the model was made of noisy counts: for each attribute, the
    released table that tells most about it says how noisy the count of one of its values is. For
    conditions on several attributes neither error says how well the model holds them together:
    those take the intervals of `estimate`.
    """
    condition = parse(query, schema)
    drawn, matches = 0, 0
    for block in sample:
        drawn += block.rows
        matches += condition.matching(block)
    share = matches / max(1, drawn)
    return ModelCount(
        value=share * rows,
        share=share,
        attributes=condition.attributes,
        rows=rows,
        sampling_deviation=math.sqrt(share * (1 - share) / max(1, drawn)) * rows,
        noise_deviation=_noise(condition, schema, noise),
    )


def _noise(condition: Condition, schema: Schema, noise: Noise) -> float | None:
    """Return the noise in the count of a set of values of one attribute; of all rows, 0.

    The counts of an attribute are made to add up to the public number of rows, so a set of m of its
    s values has the noise of m (s - m) / s of them.
    """
    if not condition.attributes:
        return 0.0
    per_value = noise.get(condition.attributes[0])
    if len(condition.attributes) > 1 or per_value is None:
        return None
    _, values = cells_of(condition.root, schema.sizes)
    inside, size = int(values.sum()), len(values)
    return per_value * math.sqrt(inside * (size - inside) / size)
