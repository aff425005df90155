"""A mixture of product distributions, fitted to every noisy table at once.

The model: a hidden class m with weight w_m, and given the class all attributes are independent.
Any set of low-order tables can be fitted, whether or not the sets form a junction tree, so all
measurements of a run are used together, each weighted by its inverse variance:

    minimise  sum over tables of |model counts - noisy counts|^2 / (2 variance)
              + penalty * sum over classes and attributes of w_m KL(class m's column | the margin).

The second term is the information that the class has about the columns. It is what keeps noise out:
a dependence enters the model only if it explains more squared error (in units of the noise's
variance) than it costs, so with worthless measurements the model falls back to independent columns.

The result depends on the noisy tables only; it costs no privacy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.methods.dp_subn.correlation import onto_simplex
from common.methods.subn_plus.table_loss import Floats, Measurement, TableLoss
from common.privacy.randomness import KeyedRandomSource, RandomSource, uniforms
from common.schema.codes import Codes

COMPONENTS = 64
ITERATIONS = 500
PENALTY = 30.0
_STEP = 0.1
_SPREAD = 0.9  # how far the classes start from the margins, in logits
_TINY = 1e-12
_FORMAT = "parley latent class model 1"
# A start, not a secret: everyone gets the same model.
_START = hashlib.sha256(b"parley latent classes").digest()


@dataclass(frozen=True, slots=True)
class LatentModel:
    """Class weights (m,) and, per attribute, its values' distribution in each class (m, s)."""

    weights: Floats
    columns: tuple[Floats, ...]

    arrows: ClassVar[None] = None

    def marginal(self, attributes: Sequence[int]) -> Floats:
        """The model's probabilities of the attributes' values, in the order given."""
        shape = tuple(self.columns[a].shape[1] for a in attributes)
        joint = _outer([self.weights[:, None], *(self.columns[a] for a in attributes)])
        return np.asarray(joint.sum(axis=0).reshape(shape), dtype=np.float64)

    def as_json(self) -> dict[str, object]:
        """The model as plain values."""
        return {
            "format": _FORMAT,
            "weights": self.weights.tolist(),
            "columns": [column.tolist() for column in self.columns],
        }

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Rows of the model, stratified.

        Every class gets its expected number of rows and every value in it its expected share, up
        to rounding; only the pairing of the columns within a class is left to chance. Margins then
        carry next to no sampling error.
        """
        classes = systematic(self.weights, rows, source)
        sizes = tuple(column.shape[1] for column in self.columns)
        out = [np.zeros(rows, dtype=np.int64) for _ in self.columns]
        # The classes' rows lie side by side; who comes first must not tell the class.
        place = np.argsort(source.words(rows))
        start = 0
        for component, count in enumerate(np.bincount(classes, minlength=len(self.weights))):
            own = place[start : start + count]
            start += int(count)
            for values, column in zip(out, self.columns, strict=True):
                drawn = systematic(column[component], int(count), source)
                values[own] = drawn[np.argsort(source.words(int(count)))]
        return Codes.from_columns(out, sizes)


def systematic(weights: Floats, count: int, source: RandomSource) -> NDArray[np.intp]:
    """`count` ordered indices, index i about weights[i] * count times, unbiased."""
    if count == 0:
        return np.zeros(0, dtype=np.intp)
    edges = np.cumsum(weights)
    points = (np.arange(count) + uniforms(1, source)[0]) / count * edges[-1]
    drawn: NDArray[np.intp] = np.searchsorted(edges, points, side="right")
    return drawn.clip(max=len(weights) - 1)


def _outer(factors: Sequence[Floats]) -> Floats:
    """Row by row, the flattened outer product of the factors: (m, a), (m, b) -> (m, a*b)."""
    return reduce(lambda u, v: (u[:, :, None] * v[:, None, :]).reshape(len(u), -1), factors)


def _softmax(logits: Floats) -> Floats:
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True), dtype=np.float64)


def estimated_margins(
    sizes: Sequence[int], rows: int, measurements: Sequence[Measurement]
) -> tuple[Floats, ...]:
    """Each attribute's distribution, by inverse variance over the tables that show its values."""
    sums = [np.zeros(size) for size in sizes]
    weights = [0.0] * len(sizes)
    for table in measurements:
        for axis, (attribute, grouping) in enumerate(
            zip(table.attributes, table.groupings, strict=True)
        ):
            if grouping is None:
                others = tuple(other for other in range(table.counts.ndim) if other != axis)
                weight = sizes[attribute] / (table.counts.size * table.variance)
                sums[attribute] += weight * table.counts.sum(axis=others)
                weights[attribute] += weight
    return tuple(
        onto_simplex(total / weight, rows) / rows if weight else np.full(len(total), 1 / len(total))
        for total, weight in zip(sums, weights, strict=True)
    )


class _Adam:
    """Adam on a list of arrays, step size falling linearly to zero."""

    def __init__(self, parameters: list[Floats], iterations: int) -> None:
        self._parameters = parameters
        self._mean = [np.zeros_like(p) for p in parameters]
        self._square = [np.zeros_like(p) for p in parameters]
        self._iterations = iterations
        self._done = 0

    def step(self, gradients: Sequence[Floats]) -> None:
        rate = _STEP * (1 - self._done / self._iterations)
        self._done += 1
        for i, gradient in enumerate(gradients):
            self._mean[i] += 0.1 * (gradient - self._mean[i])
            self._square[i] += 0.01 * (gradient * gradient - self._square[i])
            mean = self._mean[i] / (1 - 0.9**self._done)
            root = np.sqrt(self._square[i] / (1 - 0.99**self._done))
            self._parameters[i] -= rate * mean / (root + _TINY)


def _starting_logits(log_margins: Sequence[Floats], components: int) -> list[Floats]:
    """Every class near the margins, no two alike: equal classes would stay equal for ever."""
    source = KeyedRandomSource(_START, private=False)
    return [
        start
        + _SPREAD * (2 * uniforms(components * len(start), source) - 1).reshape(components, -1)
        for start in log_margins
    ]


class _Loss:
    """The whole objective, as a function of class weights and columns."""

    def __init__(self, tables: TableLoss, log_margins: Sequence[Floats], penalty: float) -> None:
        self._tables, self._log_margins, self._penalty = tables, log_margins, penalty

    def gradients(self, weights: Floats, columns: Sequence[Floats]) -> list[Floats]:
        """With respect to the logits of every column, then to those of the weights."""
        slopes, weight_slope = [np.zeros_like(own) for own in columns], np.zeros_like(weights)
        self._tables.add_gradient(weights, columns, slopes, weight_slope)
        for i, (column, log_margin) in enumerate(zip(columns, self._log_margins, strict=True)):
            cost = weights[:, None] * column * (np.log(np.maximum(column, _TINY)) - log_margin)
            slopes[i] += self._penalty * cost
            weight_slope += self._penalty * cost.sum(axis=1)
        return [
            slope - values * slope.sum(axis=-1, keepdims=True)
            for slope, values in zip([*slopes, weight_slope], [*columns, weights], strict=True)
        ]


def fit(
    margins: Sequence[Floats],
    rows: int,
    measurements: Sequence[Measurement],
    *,
    components: int = COMPONENTS,
    iterations: int = ITERATIONS,
    penalty: float = PENALTY,
) -> LatentModel:
    """The mixture that explains all noisy tables best; always the same for the same tables.

    Args:
        margins: every column's distribution, to which the classes are drawn: `estimated_margins`.
        rows: the public number of rows that the tables count.
        measurements: the noisy tables.
        components: how many classes.
        iterations: of gradient descent.
        penalty: what a nat of information between class and columns costs, in units of the loss.
    """
    if rows < 1:
        raise LocalError(f"a model of {rows} rows cannot be fitted")
    log_margins = [np.log(np.maximum(margin, 0.1 / rows)) for margin in margins]
    loss = _Loss(TableLoss(measurements, rows), log_margins, penalty)
    logits, weight_logits = _starting_logits(log_margins, components), np.zeros(components)
    optimiser = _Adam([*logits, weight_logits], iterations)
    for _ in range(iterations):
        columns = [_softmax(own) for own in logits]
        optimiser.step(loss.gradients(_softmax(weight_logits), columns))
    return LatentModel(_softmax(weight_logits), tuple(_softmax(own) for own in logits))
