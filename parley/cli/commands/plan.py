"""`parley plan` and `methods`: a study forecast before any owner spends anything; the methods."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError, located
from common.methods.registry import methods, run_of
from common.privacy.budget import parse_delta, parse_epsilon
from common.study.document import Study
from common.study.method import Method
from common.wording import plural
from parley.cli import console, options
from parley.cli.commands import new_app
from parley.cli.linked_tables import EventsFile
from parley.cli.result import Result, command, listed
from parley.forecast.forecast import forecast
from parley.forecast.text import as_json, as_lines
from parley.forecast.trial import DEPENDENCE, public_rows, simulated

app = new_app()
_MOST_ROWS = 100_000


@command(app)
def plan(
    study: Annotated[Path, typer.Argument(help="The study.toml.")],
    *,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            help="Epsilons to compare: 0.1,0.2,0.4. Repeatable. [default: the study's own]"
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(help="Forecast with this delta: 1e-9, or 0. [default: the study's own]"),
    ] = None,
    stand_in: Annotated[
        Path | None,
        typer.Option(help="A PUBLIC table like the owners': CSV or Parquet. [default: simulated]"),
    ] = None,
    second: EventsFile,
    dependence: Annotated[
        float, typer.Option(help="How far simulated columns depend on each other, 0 to 1.")
    ] = DEPENDENCE,
    rows: Annotated[
        int,
        typer.Option(
            min=10, help="The most stand-in rows; each counts as several if there are more."
        ),
    ] = _MOST_ROWS,
    runs: Annotated[int, typer.Option(min=1, max=100, help="Averaged, for each epsilon.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the stand-in and its noise.")] = 1,
) -> Result:
    """Forecast a study: what each phase measures, noise, error, bytes and time; spends nothing.

    The study is run on stand-in rows: simulated from the schema, or a public table. No private row
    is touched, and nothing is said about private rows: the forecast is of the stand-in. Expected
    error is the average total variation distance of all 2- and 3-way marginals, or of every kind of
    pairs of linked tables, beside the floor (independent noisy columns) and the same without noise.
    """
    proposed = Study.load(study)
    if delta is not None:  # no one signed that one
        with located("--delta"):
            proposed = replace(proposed, delta=parse_delta(delta), signature=None)
    if proposed.prior:
        console.note("the forecast leaves the prior out: with it, errors are the same or smaller")
        proposed = replace(proposed, prior="", signature=None)
    run_of(proposed)  # refuses a study that could never be run
    epsilons = _epsilons(proposed, epsilon or [])
    number, noun = min(rows, proposed.rows), plural(proposed.schema.row)
    with console.progress("forecasting") as tell:
        tell(0.0, "preparing the stand-in")
        if stand_in is None:
            if second.events is not None:
                raise InputError("--events: they belong to the people of --stand-in. Name both")
            table = simulated(proposed.schema, number, seed=seed, dependence=dependence)
            what = f"simulated {noun} (dependence {dependence:g}, seed {seed})"
        else:
            reading = options.Reading()
            files = second.linked(stand_in, proposed.schema, reading)
            read = reading.table(stand_in, proposed.schema) if files is None else files
            table = public_rows(read.encode(proposed.schema), number, seed=seed)
            what = f"{noun} of {stand_in}, which must be public"
        expected = forecast(proposed, table, epsilons, runs=runs, seed=seed, tell=tell)
    return Result(as_json(expected, what), as_lines(expected, what))


def _epsilons(study: Study, written: list[str]) -> list[Fraction]:
    """Return the epsilons asked for and the study's own, from small to large."""
    words = [word.strip() for option in written for word in option.split(",")]
    if not all(words):
        raise InputError("--epsilon: one of the values is empty. Write them like 0.1,0.2,0.4")
    return sorted({study.epsilon, *map(parse_epsilon, words)})


@command(app, "methods")
def list_methods() -> Result:
    """List the methods of studies with every setting, its default and what it means.

    A setting is given as `--set KEY=VALUE` to `parley simulate` and `parley curator study new`, or
    in the table of study.toml that has the method's name.
    """
    return listed(map(_method, methods().values()))


def _method(method: Method) -> Result:
    settings = {
        key: {"default": setting.default, "meaning": setting.meaning}
        for key, setting in method.settings.items()
    }
    lines = [f"{method.name}: {method.summary}"]
    for key, setting in settings.items():
        lines += [f"  --set {key}={setting['default']}", f"      {setting['meaning']}"]
    return Result({"name": method.name, "summary": method.summary, "settings": settings}, lines)
