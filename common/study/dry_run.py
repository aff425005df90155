"""The steps of a study and what they cost, found without any rows.

The script runs once on results that no row is behind: tables full of zeros take the place of sums,
and any outcome that a party's choice can have takes the place of that choice. So nothing depends on
real rows, and it takes no longer for more of them.

Which tables a later step asks for depends on what the earlier ones find; how many, and at what
noise, hardly does. What a step costs depends on no result, so what is found here is what will be
charged.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from common.privacy.randomness import KeyedRandomSource
from common.schema.limits import MOST_PLAN_CELLS, check_most
from common.study.document import Study
from common.study.script import ScriptRun
from common.study.steps import ChoiceStep, Step


def costs_without_rows(study: Study, run: ScriptRun) -> dict[str, Fraction]:
    """Return what a study will charge each party, in the currency of its promise."""
    costs = dict.fromkeys(study.parties, Fraction(0))
    for step in steps_without_rows(study, run):
        for party, cost in step.costs.items():
            costs[party] += cost
    return costs


def steps_without_rows(study: Study, run: ScriptRun) -> Iterator[Step]:
    """Take a script through its steps; InputError if they ask for more than the limits allow."""
    source = KeyedRandomSource(study.digest, private=False)  # the same study, the same dry run
    cells = 0
    while (step := run.step()) is not None:
        yield step
        result = (
            step.choice.without_rows(source)
            if isinstance(step, ChoiceStep)
            else np.zeros(step.cells, np.int64)
        )
        cells += len(result)
        check_most("the integers that all its steps ask for", cells, most=MOST_PLAN_CELLS)
        run.advance(result)
