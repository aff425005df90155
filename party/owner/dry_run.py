"""A dry run of a study: what its script will ask of a party and cost it, found without any data.

`common.study.dry_run` finds the steps without any rows, so an owner sees them before approving
them, and what is approved is what will be charged. No study may ask for more than
`common.schema.limits` allows: what a node does before an approval is a function of the study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from common.errors import LocalError, PolicyError
from common.release.measured import ExpectedError, expected_errors, tables_of
from common.study.document import Study
from common.study.dry_run import steps_without_rows
from common.study.script import ScriptRun
from common.study.steps import Step

_MOST_FORECAST = 10_000  # tables of a step, of which the noise is forecast


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
    # What noise will do to each column that it counts in the rows of all owners.
    errors: tuple[ExpectedError, ...] = ()


def dry_run(study: Study, party: str, *, begin: Callable[[Study], ScriptRun]) -> list[PlannedStep]:
    """Return the steps of a study as they concern a party; PolicyError if they cannot be made.

    A dry run is a function of the study: one that failed would fail again.
    """
    try:
        steps = steps_without_rows(study, begin(study), party=party)
        return [
            replace(planned(step, party, may_miss=study.may_miss), errors=_errors(study, step))
            for step in steps
        ]
    except (LocalError, ArithmeticError, ValueError, RecursionError) as error:
        raise PolicyError(f"study {study.name!r} cannot be carried out: {error}") from error


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


def _errors(study: Study, step: Step) -> tuple[ExpectedError, ...]:
    """Forecast the noise in single columns; not of a step whose tables are very many."""
    few = step.counts_all and len(step.links) <= _MOST_FORECAST
    return tuple(expected_errors(tables_of(study, step), 1)) if few else ()


def by_phase(steps: Iterable[PlannedStep]) -> tuple[PlannedStep, ...]:
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
