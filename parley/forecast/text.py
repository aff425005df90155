"""A forecast for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction

from common.crypto.sums.plan import Aggregation
from common.privacy.budget import shown
from common.study.document import Study
from common.wording import many, plural
from parley.forecast.forecast import AnalysisForecast, EpsilonForecast, Forecast, PhaseForecast
from parley.forecast.trial import TRIPLES, Distances

_BEYOND_NOISE = 1.05  # times: what a few runs cannot tell apart
_SECOND_UNITS = ((3600.0, "h"), (60.0, "min"))
_BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def as_lines(forecast: Forecast, stand_in: str) -> Iterator[str]:
    study, row = forecast.study, forecast.study.schema.row
    events = ""
    if (declared := study.schema.events) is not None:
        events = f"; {declared.name}, {many(len(declared.attributes), 'attribute')}"
    yield (
        f"Study {study.name!r}: {study.method}, "
        f"{many(len(study.members), 'party')}, {many(study.rows, row)}, "
        f"{many(len(study.schema.names), 'attribute')}{events}, aggregation "
        f"{study.aggregation.value}"
    )
    yield f"A forecast on {forecast.stand_in_rows:,} {stand_in}: of the stand-in, not of your data."
    if forecast.stand_in_rows < study.rows:
        repeated = study.rows / forecast.stand_in_rows
        yield f"Each stands for about {repeated:,.1f} {plural(row)} of the study."
    proposed = next(line for line in forecast.lines if line.epsilon == study.epsilon)
    if forecast.analyses:
        yield ""
        yield "What it answers: half the width of a 95 % interval, by public facts alone"
        yield from _table(
            ["analysis", "within", "of", "half of that at epsilon", "or with rows"],
            [_analysis_words(analysis) for analysis in forecast.analyses],
        )
        yield from (
            f"  {analysis.prospect.analysis}: {analysis.prospect.how}"
            for analysis in forecast.analyses
        )
    yield from forecast.advice
    yield ""
    promise = study.promise
    delta = f" and delta, {shown(study.delta):g}" if study.delta else ""
    yield f"What it measures at its own epsilon, {shown(proposed.epsilon):g}{delta}"
    yield from _table(
        ["phase", "steps", "tables", "cells", "size of a table", "sensitivity",
         "noise variance" if study.delta else "noise scale",
         "noise per cell", "of the rows", promise.currency],
        [_phase_words(phase, study.rows) for phase in proposed.phases],
    )  # fmt: skip
    yield from _distances(forecast, proposed) if proposed.distances else ()
    yield ""
    yield "What it takes of each party"
    yield from _table(
        ["party", "sends", "receives", "computes"],
        [
            [name, _bytes(party.bytes_sent), _bytes(party.bytes_received), _seconds(party.seconds)]
            for name, party in proposed.parties.items()
        ],
    )
    yield (
        f"{_seconds(proposed.seconds)} from the first step to the last if all compute at once, "
        "without the network. Times were measured on this machine, just now."
    )
    if study.aggregation is Aggregation.CLEAR:
        yield "Aggregation clear is NOT PRIVATE: for experiments only."


def _distances(forecast: Forecast, proposed: EpsilonForecast) -> Iterator[str]:
    yield ""
    yield (
        f"Expected average distance of marginals (0 is perfect, 1 is disjoint; "
        f"{many(forecast.runs, 'run')})"
    )
    yield from _table(
        ["epsilon", "costs", *_headings(proposed.distances), *_headings(proposed.floor, "floor ")],
        [
            *(
                [f"{shown(line.epsilon):g}", f"{shown(line.cost):g}",
                 *_distance_words(line.distances), *_distance_words(line.floor)]
                for line in forecast.lines
            ),
            ["no noise", "", *_distance_words(forecast.without_noise),
             *_distance_words(forecast.floor_without_noise)],
        ],
    )  # fmt: skip
    yield "floor: every column by itself, all of the epsilon spent on histograms."
    worse = [line for line in forecast.lines if _below_floor(line)]
    if worse:
        yield (
            f"WORSE THAN INDEPENDENT COLUMNS at epsilon "
            f"{', '.join(f'{shown(line.epsilon):g}' for line in worse)}: do not run "
            f"{forecast.study.method} there. More epsilon, more rows, fewer columns or another "
            "method would help."
        )


def _analysis_words(analysis: AnalysisForecast) -> list[str]:
    prospect = analysis.prospect
    epsilon = "none" if analysis.epsilon is None else f"{shown(analysis.epsilon):.3g}"
    rows = "none" if analysis.rows is None else f"{analysis.rows:,}"
    return [prospect.analysis, f"+-{prospect.within:.2g}", prospect.unit, epsilon, rows]


def _analysis_json(analysis: AnalysisForecast) -> dict[str, object]:
    return asdict(analysis.prospect) | {
        "epsilon_that_halves": None if analysis.epsilon is None else shown(analysis.epsilon),
        "rows_that_halve": analysis.rows,
    }


def _below_floor(line: EpsilonForecast) -> bool:
    """Return whether pairs of columns are expected to be further off than those of the floor."""
    method, floor = (
        sum(distance for kind, distance in distances.items() if kind != TRIPLES)
        for distances in (line.distances, line.floor)
    )
    return method > _BEYOND_NOISE * floor


def as_json(forecast: Forecast, stand_in: str) -> dict[str, object]:
    """Return plain values; exact fractions are texts beside numbers."""
    return {
        "study": forecast.study.digest.hex(),
        "rows": forecast.study.rows,
        "delta": shown(forecast.study.delta) if forecast.study.delta else 0,
        "stand_in": stand_in,
        "stand_in_rows": forecast.stand_in_rows,
        "forecast_is_of": "the stand-in, not the owners' rows",
        "runs": forecast.runs,
        "times_are": "measured on this machine by a run on the stand-in",
        "epsilons": [_line_json(line, forecast.study) for line in forecast.lines],
        "without_noise": _distance_json(forecast.without_noise),
        "floor_without_noise": _distance_json(forecast.floor_without_noise),
        "analyses": [_analysis_json(analysis) for analysis in forecast.analyses],
        "advice": list(forecast.advice),
    }


def _line_json(line: EpsilonForecast, study: Study) -> dict[str, object]:
    return {
        "epsilon": shown(line.epsilon),
        "epsilon_exact": str(line.epsilon),
        "cost": shown(line.cost),
        **_distance_json(line.distances),
        "below_floor": _below_floor(line),
        **{f"floor_{key}": value for key, value in _distance_json(line.floor).items()},
        "seconds": line.seconds,
        "phases": [_phase_json(phase, study.rows, study.promise.currency) for phase in line.phases],
        "parties": {name: asdict(party) for name, party in line.parties.items()},
    }


def _phase_json(phase: PhaseForecast, rows: int, currency: str) -> dict[str, object]:
    values = {k: str(v) if isinstance(v, Fraction) else v for k, v in asdict(phase).items()}
    noise = phase.noise_per_cell
    return values | {
        "noise_variance" if currency == "rho" else "noise_scale": values.pop("scale"),
        "noise_per_cell_of_rows": None if noise is None else noise / rows,
        currency: values.pop("cost"),
    }


def _distance_json(distances: Distances) -> dict[str, float]:
    return {
        f"tvd_{kind.removesuffix('-way').replace(' ', '_')}": distance
        for kind, distance in distances.items()
    }


def _phase_words(phase: PhaseForecast, rows: int) -> list[str]:
    size = ""
    if phase.largest_table_cells is not None:
        cells = many(phase.largest_table_cells, "cell")
        size = f"up to {cells}, {phase.largest_table_attributes} wide"
    elif phase.tables:
        per_table = round(phase.cells / phase.tables)
        size = "one count" if per_table == 1 else f"about {per_table:,} cells"
    words, noise = ["", "", "", ""], phase.noise_per_cell
    if phase.sensitivity is not None and phase.scale is not None and noise is not None:
        words = [
            f"{float(phase.sensitivity):g}", f"{float(phase.scale):,.4g}", f"{noise:,.3g}",
            f"{noise / rows:.2%}",
        ]  # fmt: skip
    tables = f"{phase.tables:,}" if not phase.choices else many(phase.choices, "choice")
    return [
        phase.phase, str(phase.steps), tables, f"{phase.cells:,}", size, *words,
        f"{shown(phase.cost):.4g}",
    ]  # fmt: skip


def _headings(distances: Distances, before: str = "") -> list[str]:
    return [f"{before}{kind}" for kind in distances]


def _distance_words(distances: Distances) -> list[str]:
    return [f"{distance:.4f}" for distance in distances.values()]


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align columns: the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    for line in (headings, *lines):
        first, *rest = line
        cells = [first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]
        yield "  " + "  ".join(cells).rstrip()


def _bytes(count: int) -> str:
    return _in_units(count, _BYTE_UNITS) or f"{count} B"


def _seconds(seconds: float) -> str:
    return _in_units(seconds, _SECOND_UNITS) or f"{seconds:.1f} s"


def _in_units(number: float, units: Sequence[tuple[float, str]]) -> str:
    """Write a number in the largest unit that it reaches; empty if it reaches none."""
    return next((f"{number / size:,.1f} {unit}" for size, unit in units if number >= size), "")
