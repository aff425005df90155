"""What a study would measure, how well, and what it would take: before anything is spent.

The study is run as it is, with its parties, steps, encryption and noise, but on stand-in rows
(`parley.forecast.trial`). What comes out says nothing about the owners' rows, and costs them
nothing. It is as good a forecast as the stand-in is like them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from common.errors import InputError
from common.methods.registry import method_of
from common.methods.subn_plus.totals import NAME as TOTALS
from common.privacy.noise_law import NoiseLaw
from common.schema import Codes
from common.study.document import Study
from common.study.method import Prospect
from common.study.steps import Step
from common.wording import Reporter, silent
from parley.forecast.trial import Distances, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseForecast:
    """Steps of one phase that are alike."""

    phase: str  # what they belong to
    steps: int  # how many
    tables: int  # of counts, in all of them
    cells: int  # of those tables
    largest_table_cells: int | None  # None where tables are not asked for one by one
    largest_table_attributes: int | None  # of the widest one
    choices: int  # mechanisms that parties run on their own rows
    # Of one step's whole vector, in the norm of its law; None of a choice.
    sensitivity: Fraction | None
    scale: Fraction | None  # the parameter of the noise law; None of a choice
    cost: Fraction  # of all of them to whom they cost most, in the currency of the study's promise
    # Expected, absolute, in what a row adds to a cell at most: 1 to a count, and to a total of
    # places half of the widest bin. None of a choice.
    noise_per_cell: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyForecast:
    """What a party will send, receive and compute."""

    bytes_sent: int
    bytes_received: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonForecast:
    """One line of the table to choose from."""

    epsilon: Fraction  # that the study would be run with
    cost: Fraction  # the epsilon of the party that pays most; more in the paper's profile
    phases: tuple[PhaseForecast, ...]  # what would be measured
    distances: Distances  # average total variation distance by order of the marginals
    floor: Distances  # the same, of noisy one-way marginals alone
    parties: Mapping[str, PartyForecast]  # bytes and computing of each
    seconds: float  # from the first step to the last, networks not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A study on stand-in rows."""

    study: Study  # as proposed
    stand_in_rows: int  # how many rows stood in for the owners'
    runs: int  # how many runs a distance is the average of
    lines: tuple[EpsilonForecast, ...]  # by epsilon, in the order asked for
    without_noise: Distances  # distances of the method at an epsilon that adds none
    floor_without_noise: Distances  # distances of independent columns without noise
    # What is forecast of each declared analysis, and what would halve its interval.
    analyses: tuple[AnalysisForecast, ...] = ()
    advice: tuple[str, ...] = ()  # what would make it clearer


@dataclass(frozen=True, slots=True)
class AnalysisForecast:
    """One declared analysis: its interval, and the epsilon or the rows that would halve it."""

    prospect: Prospect
    epsilon: Fraction | None
    rows: int | None


def of_analyses(study: Study) -> tuple[AnalysisForecast, ...]:
    """Forecast the interval of every analysis of a study, from public facts alone."""
    method = method_of(study)
    prospects = method.prospects(study)
    halved = method.halving(study) if prospects else ()
    return tuple(
        AnalysisForecast(prospect, *both) for prospect, both in zip(prospects, halved, strict=True)
    )


def forecast(
    study: Study,
    stand_in: Codes,
    epsilons: Sequence[Fraction],
    *,
    runs: int,
    seed: int,
    tell: Reporter = silent,
) -> Forecast:
    """Try a study at several epsilons, on rows that need no protection; see `Trial`."""
    if runs < 1:
        raise InputError(f"--runs {runs}: at least 1")
    trial = Trial(study, stand_in, seed)
    lines = []
    for number, epsilon in enumerate(epsilons):
        tell(number / (len(epsilons) + 1), f"epsilon {float(epsilon):g}")
        lines.append(_line(trial, epsilon, runs))
    tell(len(epsilons) / (len(epsilons) + 1), "without noise")
    return Forecast(
        study=study,
        stand_in_rows=stand_in.rows,
        runs=runs,
        lines=tuple(lines),
        without_noise=trial.distances([trial.run(trial.quiet, number=1)]),
        floor_without_noise=trial.distances([trial.run_floor(trial.quiet)]),
        analyses=of_analyses(study),
        advice=tuple(method_of(study).advice(study)),
    )


def _line(trial: Trial, epsilon: Fraction, runs: int) -> EpsilonForecast:
    study = replace(trial.study, epsilon=epsilon)
    outcomes = [trial.run(epsilon, number) for number in range(runs)]
    first = outcomes[0]
    dearest = max(_spent(first.steps).values(), default=Fraction(0))
    return EpsilonForecast(
        epsilon=epsilon,
        cost=study.promise.delivered(dearest),
        phases=_phases(study, first.steps),
        distances=trial.distances(outcomes),
        floor=trial.distances([trial.run_floor(epsilon, number) for number in range(runs)]),
        parties={
            name: PartyForecast(
                bytes_sent=sum(phase.sent[name] for phase in first.traffic.values()),
                bytes_received=sum(phase.received[name] for phase in first.traffic.values()),
                seconds=seconds,
            )
            for name, seconds in first.seconds.items()
        },
        seconds=max(first.seconds.values()) + first.curator_s,
    )


def _spent(steps: Sequence[Step]) -> dict[str, Fraction]:
    spent: dict[str, Fraction] = {}
    for step in steps:
        for party, cost in step.costs.items():
            spent[party] = spent.get(party, Fraction(0)) + cost
    return spent


def _phases(study: Study, steps: Sequence[Step]) -> tuple[PhaseForecast, ...]:
    """Steps put together that belong to one phase and carry the same noise."""
    alike: dict[tuple[str, NoiseLaw | None], list[Step]] = {}
    for step in steps:
        alike.setdefault((step.phase, step.law), []).append(step)
    return tuple(_phase(study, group, law) for (_, law), group in alike.items())


def _phase(study: Study, steps: Sequence[Step], law: NoiseLaw | None) -> PhaseForecast:
    tables = [table for step in steps for table in step.tables]
    first = steps[0]
    copies, unit = Fraction(1), 1
    if first.counts_all:
        copies, request = study.noise_shares(len(first.parties)), first.counted
        unit = request.limit(1) if first.name == TOTALS else request.unit
    return PhaseForecast(
        phase=first.phase,
        steps=len(steps),
        tables=sum(len(step.links) for step in steps),
        cells=sum(step.cells for step in steps),
        largest_table_cells=max((table.cells for table in tables), default=None),
        largest_table_attributes=max((len(table.variables) for table in tables), default=None),
        choices=sum(step.choices for step in steps),
        sensitivity=None
        if law is None or first.sensitivity is None
        else first.sensitivity.in_norm(law.norm),
        scale=None if law is None else law.scale,
        cost=max(_spent(steps).values(), default=Fraction(0)),
        noise_per_cell=None if law is None else law.mean_absolute(copies) / unit,
    )
