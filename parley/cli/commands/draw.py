"""`parley draw` and `parley replicate`: further rows from a release, and tables like its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from common.analysis.replicates import SEED, TABLES, check_tables
from common.errors import InputError
from common.files import whole_file, whole_folder
from common.fitted.drawing import write_stream
from common.fitted.model import NO_ROWS, FittedModel
from common.release.folder import check_file
from common.release.synthetic_table import KEPT_ROWS
from common.wording import many
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import OutputFormat, OutputRows, Overwrite, Release, not_private
from parley.cli.result import Result, command
from parley.reader.fitted import load

app = new_app()


@command(app)
def draw(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE", help="A release (folder or .zip), or the file of a model."
        ),
    ],
    *,
    where: Annotated[
        str,
        typer.Option(
            help="A condition that every row satisfies, like: age in 20..39 and sex = Female"
        ),
    ] = "",
    rows: OutputRows = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A file that ends in .csv or .parquet. [default: CSV to the output]"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed gives the same rows. It costs no privacy.")
    ] = None,
    overwrite: Overwrite = False,
) -> Result:
    """Draw synthetic rows from the model of a release. They cost no budget.

    With --where, rows have exactly the model's distribution given the condition, however rare it
    is. A condition that no row of the model satisfies is refused. Of a linked release, --out
    people.csv also writes people-NAME.csv, and a condition may ask for people who have an event:
    age >= 65 and any diagnosis = Cancer.
    """
    if rows is not None and rows < 1:
        raise InputError(f"--rows {rows}: ask for at least one row")
    if out is not None:
        if out.suffix not in (".csv", ".parquet"):
            raise InputError(f"--out {out}: name a file that ends in .csv or .parquet")
        check_file(out, overwrite=overwrite)
    loaded = load(source)
    for words in not_private(loaded.privacy):
        console.warn(words)
    fitted = replace(loaded, seed=seed)
    if not fitted.has_rows:
        raise InputError(f"{source}: {NO_ROWS}")
    number = fitted.output_rows if rows is None else rows
    if fitted.schema.events is not None:
        return _draw_linked(fitted, number, where, out, overwrite=overwrite)
    if out is None:
        return Result(_refuse_json, _printed(fitted, number, where))
    with whole_file(out) as scratch:
        _draw_into(scratch, fitted, number, where)
    return _into(out, number, where)


def _draw_linked(
    fitted: FittedModel, rows: int, where: str, out: Path | None, *, overwrite: bool
) -> Result:
    """Draw people and their events into two files."""
    if out is None or fitted.schema.events is None:
        raise InputError("draw: the release has two tables. Name the file of people with --out")
    events = out.with_name(f"{out.stem}-{fitted.schema.events.name}{out.suffix}")
    check_file(events, overwrite=overwrite)
    with console.progress("drawing") as tell:
        tell(0.0, where or "people and their events")
        tables = fitted.frames(fitted.sample_codes(rows, where=where)).values()
    with whole_file(out) as first, whole_file(events) as second:
        for path, table in zip((first, second), tables, strict=True):
            _write(table, path, path.suffix)
    return _into(out, rows, where, events)


def _into(out: Path, rows: int, where: str, events: Path | None = None) -> Result:
    """Return where the rows are; of people, also where their events are."""
    row = "row" if events is None else "person"
    lines = [f"{many(rows, f'synthetic {row}')}: {out}"]
    lines += [] if events is None else [f"their events: {events}"]
    return Result({"out": out, "rows": rows, "where": where}, lines)


def _printed(fitted: FittedModel, rows: int, where: str) -> Iterator[str]:
    _draw_into(None, fitted, rows, where)
    yield from ()


def _refuse_json() -> None:
    raise InputError("--json: name a file for the rows with --out")


def _draw_into(path: Path | None, fitted: FittedModel, rows: int, where: str) -> None:
    """Draw rows into a file or the output; many in blocks, on every core."""
    with console.progress("drawing") as tell:
        tell(0.0, where or "rows")
        if rows > KEPT_ROWS:
            draw = fitted.draw_where(where)
            write_stream(path or sys.stdout.buffer, fitted, rows, draw=draw, tell=tell)
            return
        table = fitted.sample(rows, where=where)
    if path is None:
        table.to_csv(sys.stdout, index=False)
    else:
        _write(table, path, path.suffix)


@command(app)
def replicate(
    release: Release,
    *,
    out: Annotated[Path, typer.Option(help="The folder to write table-01.csv and so on into.")],
    tables: Annotated[int, typer.Option(help="How many tables.")] = TABLES,
    seed: Annotated[int, typer.Option(help="The same seed gives the same tables.")] = SEED,
    format: OutputFormat = "csv",  # noqa: A002
) -> Result:
    """Write tables like the released one, each from a model that was fitted anew with fresh noise.

    Analyse each of them, and combine the results with `parley.pool` or by the formula in the quick
    start for analysts. Two larger tables correct the result for relations that the method weakens:
    `model` has rows of the released model, and `independent` the same rows with every column
    shuffled. The tables are made from the release alone and cost no budget. Of a linked release
    each has a second table beside it, of events.
    """
    check_tables(tables)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not an empty folder. Name another one")
    if release.absolute() in (out.absolute(), *out.absolute().parents):
        raise InputError(f"{out}: in a release there are only its own files. Name another folder")
    loaded = load(release)
    events = "" if loaded.schema.events is None else loaded.schema.events.name
    with whole_folder(out), console.progress("replicating") as tell:
        replicates = loaded.replicate_frames(tables, seed=seed, tell=tell)
        out.mkdir(parents=True, exist_ok=True)
        digits = max(2, len(str(tables)))
        names = [f"table-{number:0{digits}}" for number in range(1, tables + 1)]
        references = ["model", "independent"]
        written = zip(
            [*names, *references], [*replicates, *loaded.reference_frames(seed=seed)], strict=True
        )
        for name, frames in written:
            for table, ending in zip(frames.values(), ("", f"-{events}"), strict=False):
                _write(table, out / f"{name}{ending}.{format}", f".{format}")
    files, more = (tuple(f"{stem}.{format}" for stem in stems) for stems in (names, references))
    lines = [f"{many(tables, 'table')}: {out / files[0]} to {files[-1]}"]
    if events:
        name = f"{names[0]}-{events}.{format}"
        lines.append(f"beside each, {events}, joined by `person`: {name} and so on")
    return Result({"out": out, "files": files, "references": more, "seed": seed}, lines)


def _write(table: pd.DataFrame, file: Path, suffix: str) -> None:
    if suffix == ".csv":
        table.to_csv(file, index=False)
    else:
        table.to_parquet(file, index=False)
