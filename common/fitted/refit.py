"""A study's script run again on rows drawn from its model: how far would a release scatter?

The rows are dealt out to the parties, every sum is counted and gets fresh noise of its law, and the
script goes on to its model. The script, the requests, the mechanisms and
the noise are those of the study; only the cryptography, which changes no sum, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count as count_from
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from common.crypto.sums.plan import Aggregation, Noise, draw_noise
from common.crypto.sums.replacement import ShareKeeper
from common.errors import LocalError
from common.methods.criteria import CriteriaRequest
from common.methods.registry import run_of
from common.methods.subn_plus.latent import fitting_near
from common.privacy.randomness import RandomSource
from common.schema import Codes
from common.schema.codes import concatenate
from common.study.document import Study
from common.study.history import NO_HISTORY
from common.study.prior import Prior
from common.study.requests import RowsInMemory
from common.study.script import Result
from common.study.steps import ChoiceStep, Model, ReplaceStep, Step, SumStep
from common.study.sums import in_the_clear, sum_plan_of


def refit_study(
    study: Study,
    rows: Codes,
    source: RandomSource,
    missing: Mapping[str, int] = MappingProxyType({}),
    prior: Prior | None = None,
    near: Model | None = None,
) -> Model:
    """Take the study's script to its model on these rows, dealt out to the parties in their order.

    Parties go `missing` as they did, each before a step. The fit may start `near` a model, if the
    rows were drawn from it.
    """
    if rows.rows != study.rows:
        raise LocalError(f"the study has {study.rows} rows, not {rows.rows}")
    run, answer = run_of(study, prior), _Answers(study, rows, source)
    for number in count_from(0):
        run.leave_out([name for name, first in missing.items() if first <= number])
        if (step := run.step()) is None:
            break
        run.advance(answer(step))
    with fitting_near(near):
        return run.model()


class _Answers:
    """Answers steps one after the other."""

    def __init__(self, study: Study, rows: Codes, source: RandomSource) -> None:
        # How a sum is added up changes neither its counts nor its noise; in the clear it needs no
        # key. The signature is of the study as it was agreed.
        ring = study.aggregation is Aggregation.PAILLIER
        self._study = in_the_clear(study) if ring else study
        self._source = source
        ends = np.cumsum([0, *study.rows_of.values()]).tolist()
        self._tables = {
            name: rows.take(slice(ends[i], ends[i + 1])) for i, name in enumerate(study.parties)
        }
        self._replacement = _Replacement(source)
        self._number = 0

    def __call__(self, step: Step) -> Result:
        number, self._number = self._number, self._number + 1
        match step:
            case SumStep(request=CriteriaRequest()):  # nothing of the model follows from it
                return np.zeros(step.cells, np.int64)
            case SumStep():
                return self._sum(step, number)
            case ReplaceStep():
                return self._replacement.answer(step, self._rows(step.release.party))
            case ChoiceStep():
                return step.choice.run(self._rows(*step.parties), self._source)

    def _rows(self, *parties: str) -> RowsInMemory:
        return RowsInMemory(concatenate([self._tables[party] for party in parties]))

    def _sum(self, step: SumStep, number: int) -> NDArray[np.int64]:
        total = step.request.answer(self._rows(*step.parties))
        plan = sum_plan_of(self._study, number, step, None, history=NO_HISTORY)
        shares = 1 if plan.noise is Noise.ONE_SHARE else len(plan.parties)
        for _ in range(shares):
            total = total + draw_noise(plan, self._source)
        return total


@dataclass(slots=True)
class _Replacement:
    """The parties' shares in running statistics [Su16, section VI-A]."""

    source: RandomSource
    keepers: dict[str, ShareKeeper] = field(default_factory=dict)
    turns: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)

    def answer(self, step: ReplaceStep, rows: RowsInMemory) -> NDArray[np.int64]:
        """Return the sum of one group: the party's counts and share, less the older share."""
        release, group = step.release, step.group
        place = release.groups.index(group)
        if place == 0:
            keeper = self.keepers.setdefault(release.party, ShareKeeper(release.party))
            self.turns[release.party] = keeper.answer(release, step.counts(rows), self.source)
        total = self.turns[release.party][place]
        return (
            total if group.holder is None else total + self.keepers[group.holder].hand_over(group)
        )
