"""`parley draw`: further synthetic rows from a release, under a condition or not."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.release import folder as release
from common.release.loading import load
from common.wording import many
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson, OutputRows, Overwrite

app = new_app()


@app.command()
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
    json: AsJson = False,
) -> None:
    """Draw synthetic rows from the model of a release. They cost no budget.

    With --where, rows have exactly the model's distribution given the condition, however rare it
    is. A condition that no row of the model satisfies is refused.
    """
    if rows is not None and rows < 1:
        raise InputError(f"--rows {rows}: ask for at least one row")
    if out is None and json:
        raise InputError("--json: name a file for the rows with --out")
    if out is not None:
        _check_name(out)
        release.check_file(out, overwrite=overwrite)
    fitted = load(source)
    if not fitted.privacy["private"]:
        console.warn("this release is NOT PRIVATE: it was made with a seed")
    with console.progress("drawing") as tell:
        tell(0.0, where or "rows")
        table = replace(fitted, seed=seed).sample(rows, where=where)
    if out is None:
        table.to_csv(sys.stdout, index=False)
        return
    with release.new_file(out) as scratch:
        if out.suffix == ".csv":
            table.to_csv(scratch, index=False)
        else:
            table.to_parquet(scratch, index=False)
    told = {"out": str(out), "rows": len(table), "where": where}
    console.show(told, f"{many(len(table), 'synthetic row')}: {out}", as_json=json)


def _check_name(out: Path) -> None:
    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out {out}: name a file that ends in .csv or .parquet")
