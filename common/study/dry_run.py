"""The steps of a study and what they cost, found without any rows.

The script runs once on results that no row is behind: tables full of zeros take the place of sums,
and any outcome that a party's choice can have takes the place of that choice. So nothing depends on
real rows, and it takes no longer for more of them.

A proposer that no owner has approved yet can ask every invited node for a dry run. So its work is
bounded by the study alone: the steps may have no more tables and integers than
`common.schema.limits` allows, all together, and of choices that shape no later step only one
party's are gone through.

Which tables a later step asks for depends on what the earlier ones find; how many, and at what
noise, hardly does. What a step costs depends on no result, so what is found here is what will be
charged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from fractions import Fraction

from common.privacy.randomness import KeyedRandomSource
from common.schema.limits import MOST_PLAN_CELLS, MOST_PLAN_TABLES, check_most
from common.study.document import Study
from common.study.script import ScriptRun
from common.study.steps import Step

_TABLES = "the tables that all its steps ask for"


def require_runnable(study: Study, run: ScriptRun) -> None:
    """Refuse, with InputError, a study that every node would decline."""
    deque(steps_without_rows(study, run, party=study.parties[0]), maxlen=0)


def costs_without_rows(study: Study, run: ScriptRun) -> dict[str, Fraction]:
    """Return what a study will charge each party, in the currency of its promise."""
    costs = dict.fromkeys(study.parties, Fraction(0))
    for step in steps_without_rows(study, run):
        for party, cost in step.costs.items():
            costs[party] += cost
    return costs


def steps_without_rows(study: Study, run: ScriptRun, *, party: str | None = None) -> Iterator[Step]:
    """Take a script through its steps; InputError if they ask for more than the limits allow.

    Choices that shape no later step are gone through for one party, if one is named.
    """
    check_most(_TABLES, run.tables, most=MOST_PLAN_TABLES)
    source = KeyedRandomSource(study.digest, private=False)  # the same study, the same dry run
    tables = cells = 0
    while (step := run.step()) is not None:
        tables += len(step.links)
        check_most(_TABLES, tables, most=MOST_PLAN_TABLES)
        yield step
        if not step.exchange.shapes_steps and party not in step.parties:
            run.pass_over()
            continue
        result = step.exchange.without_rows(step, source)
        cells += len(result)
        check_most("the integers that all its steps ask for", cells, most=MOST_PLAN_CELLS)
        run.advance(result)
        run.drop_steps()
