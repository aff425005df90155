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

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, PolicyError
from common.privacy.randomness import KeyedRandomSource, RandomSource
from common.schema.limits import MOST_PLAN_CELLS, check_most
from common.study.document import Study
from common.study.script import ScriptRun
from common.study.steps import ChoiceStep, Step
from party.owner.review import PlannedStep, planned


def rehearse(study: Study, party: str, *, begin: Callable[[Study], ScriptRun]) -> list[PlannedStep]:
    """The steps of a study as they concern a party; PolicyError if they cannot be made."""
    try:
        return list(_rehearsed(study, party, begin(study)))
    except InputError as error:
        raise PolicyError(f"study {study.name!r} cannot be carried out: {error}") from None


def _rehearsed(study: Study, party: str, run: ScriptRun) -> Iterator[PlannedStep]:
    turns = [member.name for member in study.members]
    source = KeyedRandomSource(study.digest, private=False)  # the same study, the same rehearsal
    cells = 0
    while (step := run.step()) is not None:
        seen = planned(step, party, order=turns)
        yield replace(seen, owners=max(0, seen.owners - study.may_miss))  # the rest of a sum
        result = _result(step, source)
        cells += len(result)
        check_most("the integers that all its steps ask for", cells, most=MOST_PLAN_CELLS)
        run.advance(result)


def _result(step: Step, source: RandomSource) -> NDArray[np.int64] | bytes:
    if isinstance(step, ChoiceStep):
        return step.choice.without_rows(source)
    return np.zeros(step.cells, np.int64)
