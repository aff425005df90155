"""A dry run of a study: what its script will ask of a party and cost it, found without any data.

The script runs once without rows: tables full of zeros take the place of sums, and any outcome that
a party's choice can have takes the place of that choice. So an owner sees the steps before
approving them, nothing depends on the real rows, and a dry run takes no longer for more rows. No
step may ask for more than `common.schema.limits` allows.

Which tables a later step asks for depends on what the earlier ones find; how many, and at what
noise, hardly does. What a step costs depends on no result, so what is approved is what will be
charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from common.errors import InputError, PolicyError
from common.privacy.randomness import KeyedRandomSource
from common.schema.limits import MOST_PLAN_CELLS, check_most
from common.study.document import Study
from common.study.script import ScriptRun
from common.study.steps import ChoiceStep, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step as it concerns this party, or several steps of one phase together."""

    phase: str  # what it belongs to
    cost: Fraction  # what it costs our rows, in the currency of the study's promise
    tables: int = 0  # how many tables of counts it asks of us
    cells: int = 0  # how many integers they are, together
    choices: int = 0  # how many outcomes of mechanisms it asks of us
    # How many owners' rows, ours included, are in a sum or a joint choice that ours are in; 0 if
    # ours are in none. Of several steps, the fewest.
    owners: int = 0


def dry_run(study: Study, party: str, *, begin: Callable[[Study], ScriptRun]) -> list[PlannedStep]:
    """Return the steps of a study as they concern a party; PolicyError if they cannot be made."""
    try:
        steps = steps_without_rows(study, begin(study))
        return [planned(step, party, may_miss=study.may_miss) for step in steps]
    except InputError as error:
        raise PolicyError(f"study {study.name!r} cannot be carried out: {error}") from None


def costs_without_rows(study: Study, run: ScriptRun) -> dict[str, Fraction]:
    """Return what a study will charge each party, in the currency of its promise."""
    costs = dict.fromkeys(study.parties, Fraction(0))
    for step in steps_without_rows(study, run):
        for party, cost in step.costs.items():
            costs[party] += cost
    return costs


def steps_without_rows(study: Study, run: ScriptRun) -> Iterator[Step]:
    """Take a script through its steps with results that no row is behind."""
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


def planned(step: Step, party: str, *, may_miss: int = 0) -> PlannedStep:
    """Return a step as it concerns a party, where so many others may go missing."""
    cost = step.costs.get(party, Fraction(0))
    if party not in step.parties:
        return PlannedStep(phase=step.phase, cost=cost)
    return PlannedStep(
        phase=step.phase,
        cost=cost,
        tables=len(step.links),
        cells=step.cells,
        choices=step.choices,
        owners=max(0, step.owners_with(party) - may_miss),  # the rest of a sum
    )


def by_phase(steps: Iterable[PlannedStep]) -> tuple[PlannedStep, ...]:
    """Add up the steps of every phase."""
    phases: dict[str, PlannedStep] = {}
    for step in steps:
        sofar = phases.get(step.phase, PlannedStep(phase=step.phase, cost=Fraction(0)))
        phases[step.phase] = PlannedStep(
            phase=step.phase,
            cost=sofar.cost + step.cost,
            tables=sofar.tables + step.tables,
            cells=sofar.cells + step.cells,
            choices=sofar.choices + step.choices,
            owners=fewest_owners((sofar, step)) or 0,
        )
    return tuple(phases.values())


def fewest_owners(steps: Iterable[PlannedStep]) -> int | None:
    """Return how many owners are in the smallest sum that our rows are in; None if in none."""
    return min((step.owners for step in steps if step.owners), default=None)
