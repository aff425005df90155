"""A study in one copy of its script: the law of its results, without its protocol.

In a deployment the curator and every party run a copy of the script, and sums travel between them.
Here one copy is asked, and every step is answered with what the roles would publish: exact counts
of all rows together, under noise of the same law. So a study of ten owners costs what one costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from common.crypto.sums.plan import Noise
from common.crypto.sums.replacement import ShareKeeper
from common.methods.registry import run_of
from common.privacy.randomness import RandomSource
from common.schema.codes import Codes, concatenate
from common.study.document import Study
from common.study.prior import Prior
from common.study.requests import Counts
from common.study.script import Result
from common.study.steps import ChoiceStep, Model, ReplaceStep, Step, SumStep
from parley.simulation.in_process import RowsInMemory


@dataclass
class OneCopy:
    """All owners of a study at once.

    Attributes:
        study: what they agreed on.
        tables: for each owner its rows.
        source: of all noise and choices.
        prior: the release that the study names as its prior.
        steps: those taken so far.
        results: theirs, as published.
    """

    study: Study
    tables: Mapping[str, Codes]
    source: RandomSource
    prior: Prior | None = None
    steps: list[Step] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._keepers = {name: ShareKeeper(name) for name in self.tables}
        self._vectors: list[Counts] = []
        self._pooled: dict[tuple[str, ...], RowsInMemory] = {}

    def run(self) -> Model:
        """Take the script to its end."""
        run = run_of(self.study, self.prior)
        while (step := run.step()) is not None:
            run.advance(self._answer(step))
        return run.model()

    def _answer(self, step: Step) -> Result:
        match step:
            case ChoiceStep():
                result = self.choose(step)
            case ReplaceStep():
                result = self._replaced(step)
            case SumStep():
                exact = step.request.answer(self.rows(step.parties))
                result = exact + self.noise(step)
        self.steps.append(step)
        self.results.append(result)
        return result

    def choose(self, step: ChoiceStep) -> Result:
        """One party's choice."""
        return step.choice.run(self.rows(step.parties), self.source)

    def rows(self, parties: tuple[str, ...]) -> RowsInMemory:
        """The rows of some owners together."""
        if parties not in self._pooled:
            self._pooled[parties] = RowsInMemory(concatenate([self.tables[p] for p in parties]))
        return self._pooled[parties]

    def noise(self, step: SumStep) -> Counts:
        """One share, or a distributed share of every party."""
        parties, cells = len(step.parties), step.cells
        if self.study.noise is Noise.ONE_SHARE:
            return step.law.draw(cells, self.source)
        makers = max(1, parties - min(self.study.colluders, parties - 1))
        total = np.zeros(cells, np.int64)
        for _ in range(parties):
            total += step.law.draw_share(cells, makers=makers, source=self.source)
        return total

    def _replaced(self, step: ReplaceStep) -> Counts:
        release, group = step.release, step.group
        if group is release.groups[0]:
            counts = step.counts(self.rows((release.party,)))
            self._vectors = self._keepers[release.party].answer(release, counts, self.source)
        total = self._vectors.pop(0)
        if group.holder is None:
            return total
        return total + self._keepers[group.holder].hand_over(group)
