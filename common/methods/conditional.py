"""Rows of a model given a condition: exact for every model, however rare the condition is.

The rules of a schema are a condition that always holds.

A model says which networks of variables it consists of (`Model.form`), and a condition becomes
weights of their variables (`common.bayes.weighting`).

Where the variables hang together too much for that, or the model is no network, rows are drawn
until enough satisfy the condition: exact as well, but a rare condition is refused. Rows that break
a rule are then replaced by the nearest possible ones.

[Csiszar75] Csiszar: I-divergence geometry of probability distributions and minimization problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from common.bayes.form import Model, NetworkForm
from common.bayes.weighting import Floats, TooManyCells
from common.errors import InputError
from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import Codes, concatenate
from common.schema.conditions import CellWeights
from common.schema.rules import Possible

Draw = Callable[[int, RandomSource], Codes]

_MOST_FITTINGS = 50
_CLOSE = 1e-4
_MOST_TRIES = 400
_TRY_ROWS = 1 << 14
NO_MASS = (
    "the condition: no row of this model satisfies it. Ask for values that occur in the release"
)


@dataclass(frozen=True, eq=False)
class ConditionalModel:
    """The rows of a model that its schema's rules allow, and those that satisfy a condition."""

    model: Model
    possible: Possible

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """Return what draws the rows that satisfy a condition, at no cost to privacy.

        Rows have exactly the distribution of the model given the condition.

        Raises:
            InputError: no row satisfies the condition. What is returned raises it if too few do
                to be found.
        """
        try:
            forms = [form.weighted(condition) for form in self._forms]
        except TooManyCells:
            forms = []
        if not forms:
            return partial(_kept, self._repaired, condition)
        masses = np.array([form.rows * math.exp(form.net.log_mass) for form in forms])
        if masses.sum() > 0:
            return partial(_shared_out, [form.sample for form in forms], masses)
        if condition:
            raise InputError(NO_MASS)
        return self._repaired  # the model gives nothing but rows that break a rule

    @cached_property
    def sample(self) -> Draw:
        return self.given(()) if self.possible.rules else self.model.sample

    @cached_property
    def _forms(self) -> list[NetworkForm]:
        """The networks of the model, whose rows are possible."""
        return [within(form, self.possible) for form in self.model.form()]

    def _repaired(self, rows: int, source: RandomSource) -> Codes:
        return self.possible.repaired(self.model.sample(rows, source))


def within(form: NetworkForm, possible: Possible) -> NetworkForm:
    """Return the nearest distribution that rules allow and that keeps the attributes' margins.

    It is the model times the rules times a weight for each value of the attributes that rules are
    about: of all distributions without an impossible cell and with these margins, the one of least
    Kullback-Leibler divergence from the model [Csiszar75]. Leaving out the impossible cells alone
    would take their mass from values that were measured well. Iterative proportional fitting finds
    the weights; where rules and margins contradict each other, it stops, and the rules hold.
    """
    if not possible.rules:
        return form
    rules = possible.weights()
    margins = {a: form.weighted(()).marginal(a) for a in possible.attributes}
    weights = {a: np.ones(form.sizes[a]) for a in possible.attributes}
    weighted = form.weighted(rules)
    for _ in range(_MOST_FITTINGS):
        off = 0.0
        for a, target in margins.items():
            if math.isinf(weighted.net.log_mass):
                return form.weighted(rules)
            marginal = weighted.marginal(a)
            off = max(off, float(np.abs(marginal - target).sum()))
            weights[a] *= np.divide(
                target, marginal, out=np.ones_like(marginal), where=marginal > 0
            )
            weights[a] /= weights[a].max()
            weighted = form.weighted([*rules, *(CellWeights((b,), w) for b, w in weights.items())])
        if off < _CLOSE:
            break
    return weighted


def _shared_out(draws: Sequence[Draw], masses: Floats, rows: int, source: RandomSource) -> Codes:
    """Draw rows of several distributions in proportion to their masses, in random order."""
    if len(draws) == 1:
        return draws[0](rows, source)
    edges = np.cumsum(masses) / masses.sum()
    which = np.searchsorted(edges, uniforms(rows, source), side="right").clip(max=len(draws) - 1)
    counts = np.bincount(which, minlength=len(draws))
    parts = [draw(int(n), source) for draw, n in zip(draws, counts, strict=True) if n]
    return concatenate(parts).take(np.argsort(source.words(rows))) if parts else draws[0](0, source)


def _kept(draw: Draw, condition: Sequence[CellWeights], rows: int, source: RandomSource) -> Codes:
    """Draw rows until enough of them satisfy the condition."""
    parts, accepted, blocks = [draw(0, source)], 0, 0
    while accepted < rows:
        if blocks == _MOST_TRIES:
            raise InputError(
                f"the condition: {accepted:,} of {blocks * _TRY_ROWS:,} rows of this model satisfy "
                f"it, too few to draw {rows:,}. Ask for fewer rows or a wider condition"
            )
        block = draw(_TRY_ROWS, source)
        inside = np.ones(block.rows, dtype=np.bool_)
        for part in condition:
            inside &= part.of(block) > 0
        parts.append(block.take(np.flatnonzero(inside)))
        accepted, blocks = accepted + parts[-1].rows, blocks + 1
    return concatenate(parts).take(slice(0, rows))
