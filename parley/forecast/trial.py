"""A study tried in the clear, on rows that stand in for the owners'.

Where the owners have more rows than a quick run can take, the stand-in has fewer, and the noise is
made smaller in the same proportion: what counts for the error is noise relative to rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from statistics import fmean
from typing import TypeAlias

import numpy as np

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.errors import InputError
from common.methods.registry import run_of
from common.privacy.concentrated import epsilon_of
from common.privacy.promise import promise_of
from common.privacy.randomness import SeededRandomSource
from common.release.evaluation import marginal_sets, total_variation
from common.schema import Codes
from common.study.document import Member, Study
from common.wording import many
from parley.simulation.in_process import Run, run_study

ORDERS = (2, 3)
_QUIET = 10  # of epsilon, for each attribute: the noise of a count is less than a row
_MOST_SYNTHETIC = 300_000

Distances: TypeAlias = Mapping[int, float]


class Trial:
    """Stand-in rows dealt out to the parties of a study, and runs on them.

    Args:
        study: of its parties only names and row counts are used.
        stand_in: rows that need no protection; as many as the study has, or fewer.
        seed: of the dealing and of the noise.
    """

    def __init__(self, study: Study, stand_in: Codes, seed: int) -> None:
        self.study, self._whole, self._seed = study, stand_in, seed
        if stand_in.rows < len(study.members):
            raise InputError(
                f"a stand-in of {many(stand_in.rows, 'row')} is too short for "
                f"{many(len(study.members), 'party')}"
            )
        self._tables = _dealt_out(study, stand_in, seed)
        source = SeededRandomSource(f"{seed}/identities")
        self._identities = {name: Identity.generate(source) for name in self._tables}
        self._sets = {
            order: marginal_sets(stand_in.width, order)
            for order in ORDERS
            if order <= stand_in.width
        }

    @property
    def ratio(self) -> Fraction:
        """Rows of the owners for each of the stand-in."""
        return Fraction(self.study.rows, self._whole.rows)

    @property
    def _quiet(self) -> Fraction:
        """An epsilon that adds no noise to speak of."""
        return Fraction(_QUIET * self._whole.width)

    def scaled(self, epsilon: Fraction) -> Fraction:
        """How many times less noise the stand-in gets than the owners' rows would."""
        return min(epsilon * self.ratio, max(epsilon, self._quiet)) / epsilon

    def dearer(self, epsilon: Fraction) -> Fraction:
        """How many times more a step on the stand-in costs than one on the owners' rows.

        Epsilon is paid in proportion to the inverse of the noise, rho to that of its square.
        """
        scaled = self.scaled(epsilon)
        return scaled**2 if self.study.delta else scaled

    def _epsilon(self, epsilon: Fraction, dearer: Fraction) -> Fraction:
        """An epsilon whose budget is so many times that of another."""
        if not epsilon:
            return epsilon
        budget = promise_of(epsilon, self.study.delta).budget * dearer
        return epsilon_of(budget, self.study.delta) if self.study.delta else budget

    def run(self, method: str, epsilon: Fraction, number: int = 0) -> Run:
        """One run, with noise that is to the stand-in what the study's is to the owners' rows."""
        members = tuple(
            Member(name=name, rows=table.rows, identity=self._identities[name].public)
            for name, table in self._tables.items()
        )
        tried = replace(
            self.study,
            members=members,
            method=method,
            settings=self.study.settings if method == self.study.method else (),
            epsilon=self._epsilon(epsilon, self.dearer(epsilon)),
            criteria_epsilon=self._epsilon(self.study.criteria_epsilon, self.dearer(epsilon)),
            aggregation=Aggregation.CLEAR,
            signature=None,  # of the study as proposed, not of this one
        )
        source = SeededRandomSource(f"{self._seed}/{method}/{epsilon}/{number}")
        return run_study(tried, run_of, self._tables, self._identities, source=source)

    def distances(self, runs: list[Run]) -> Distances:
        """Average distance of the marginals of each order, over some runs."""
        rows = min(self.study.output_rows or self.study.rows, _MOST_SYNTHETIC)
        found: dict[int, list[float]] = {order: [] for order in self._sets}
        for number, run in enumerate(runs):
            source = SeededRandomSource(f"{self._seed}/rows/{number}")
            synthetic = run.model.sample(rows, source)
            for order, sets in self._sets.items():
                found[order].append(fmean(total_variation(self._whole, synthetic, sets)))
        return {order: fmean(values) for order, values in found.items()}

    def without_noise(self, method: str) -> Distances:
        """What is left of the distance when there is no noise."""
        return self.distances([self.run(method, self._quiet / self.ratio)])


def _dealt_out(study: Study, rows: Codes, seed: int) -> dict[str, Codes]:
    """Every party its share of the stand-in, at random, at least one row each."""
    order = np.random.default_rng(seed).permutation(rows.rows)
    spare = rows.rows - len(study.members)
    bounds, before = [0], 0
    for place, member in enumerate(study.members, start=1):
        before += member.rows
        bounds.append(place + round(Fraction(spare * before, study.rows)))
    return {
        member.name: rows.take(np.sort(order[bounds[i] : bounds[i + 1]]))
        for i, member in enumerate(study.members)
    }
