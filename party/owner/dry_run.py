"""What a study will ask of a party and cost it, found by going through its plan without any data.

The plan is run once without any rows: tables full of zeros in place of sums, and any outcome that a
party's choice can have. What it takes does not grow with the rows that a study says its parties
have, and no step may ask for more than `common.schema.limits` allows. So an owner sees the steps
before approving them, and nothing depends on the real rows. Which tables a later step asks for
depends on what the earlier ones find; how many, and at what noise, hardly does. Where the cost
itself depends on it, in the paper's noise replacement, the most that it can be is shown: what is
approved is then enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, PolicyError
from common.privacy.randomness import KeyedRandomSource, RandomSource
from common.schema.limits import MOST_PLAN_CELLS, check_most
from common.study.document import Study
from common.study.steps import ChoiceStep, Plan, ReplaceStep, Step
from party.owner.review import PlannedStep, planned


def rehearse(study: Study, party: str, *, make_plan: Callable[[Study], Plan]) -> list[PlannedStep]:
    """The steps of a study as they concern a party, in order.

    Raises:
        PolicyError: the study's method cannot do what the study asks of it.
    """
    try:
        return list(_rehearsed(study, party, make_plan(study)))
    except InputError as error:
        raise PolicyError(f"study {study.name!r} cannot be carried out: {error}") from None


def _rehearsed(study: Study, party: str, plan: Plan) -> Iterator[PlannedStep]:
    turns = [member.name for member in study.members]
    source = KeyedRandomSource(study.digest, private=False)  # the same study, the same rehearsal
    cells = 0
    while (step := plan.step()) is not None:
        yield _at_most(planned(step, party), step, party, turns)
        result = _result(step, source)
        cells += len(result)
        check_most("the integers that all its steps ask for", cells, MOST_PLAN_CELLS)
        plan.advance(result)


def _at_most(shown: PlannedStep, step: Step, party: str, turns: Sequence[str]) -> PlannedStep:
    """A replacement costs everybody who had a turn as if all its tables held their rows already."""
    if not isinstance(step, ReplaceStep) or party not in turns:
        return shown
    if turns.index(party) > turns.index(step.release.party):
        return shown
    return replace(shown, epsilon=2 * len(step.group.marginals) / step.release.noise_scale)


def _result(step: Step, source: RandomSource) -> NDArray[np.int64] | bytes:
    if isinstance(step, ChoiceStep):
        return step.choice.without_rows(source)
    return np.zeros(step.cells, np.int64)
