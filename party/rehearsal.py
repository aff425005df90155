"""What a study will ask of a party and cost it, found by going through its plan without any data.

The plan is run once with parties that have no rows of their own: tables full of zeros in place of
sums, and choices made on rows that are all alike. So an owner sees the steps before approving them,
and nothing depends on the real rows. Which tables a later step asks for depends on what the earlier
ones find; how many, and at what noise, hardly does. Where the cost itself depends on it, in the
paper's noise replacement, the most that it can be is shown: what is approved is then enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.marginals import count
from common.privacy.randomness import KeyedRandomSource, RandomSource
from common.schema.codes import Codes
from common.study import Study
from common.subn.steps import ChoiceStep, Plan, ReplaceStep, Step, SumStep
from party.review import PlannedStep, planned


@dataclass(frozen=True, slots=True)
class AlikeRows:
    """As many rows as a party has, every cell the first value of its domain."""

    rows: int
    sizes: tuple[int, ...]

    def count(self, sets: Sequence[tuple[int, ...]]) -> list[NDArray[np.int64]]:
        """The contingency table of every attribute set."""
        return count(self.codes(), sets)

    def codes(self) -> Codes:
        """All rows at once."""
        return Codes.from_columns([np.zeros(self.rows, np.int64) for _ in self.sizes], self.sizes)


def rehearse(study: Study, party: str, *, make_plan: Callable[[Study], Plan]) -> list[PlannedStep]:
    """The steps of a study as they concern a party, in order."""
    plan = make_plan(study)
    rows = {member.name: member.rows for member in study.members}
    source = KeyedRandomSource(study.digest, private=False)  # the same study, the same rehearsal
    steps = []
    while (step := plan.step()) is not None:
        steps.append(_at_most(planned(step, party), step, party, list(rows)))
        plan.advance(_result(step, rows, study.schema.sizes, source))
    return steps


def _at_most(shown: PlannedStep, step: Step, party: str, turns: Sequence[str]) -> PlannedStep:
    """A replacement costs everybody who had a turn as if all its tables held their rows already."""
    if not isinstance(step, ReplaceStep):
        return shown
    if turns.index(party) > turns.index(step.release.party):
        return shown
    return replace(shown, epsilon=2 * len(step.group.marginals) / step.release.noise_scale)


def _result(
    step: Step, rows: dict[str, int], sizes: tuple[int, ...], source: RandomSource
) -> NDArray[np.int64] | bytes:
    if isinstance(step, ChoiceStep):
        return step.choice.run(AlikeRows(rows[step.party], sizes), source)
    cells = step.request.cells if isinstance(step, SumStep) else step.group.cells
    return np.zeros(cells, np.int64)
