"""`parley replicate`: tables like the released one, for intervals in any software."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.files import whole_folder
from common.release.fitted import SEED
from common.release.loading import Loaded, load
from common.release.progress import Reporter
from common.release.replicates import TABLES, check_tables
from common.wording import many
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson, Format, OutputFormat

app = new_app()


@app.command()
def replicate(
    release: Annotated[Path, typer.Argument(help="The release: a folder or a .zip.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder to write table-01.csv and so on into.")],
    tables: Annotated[int, typer.Option(help="How many tables.")] = TABLES,
    seed: Annotated[int, typer.Option(help="The same seed gives the same tables.")] = SEED,
    format: OutputFormat = "csv",  # noqa: A002
    json: AsJson = False,
) -> None:
    """Write tables like the released one, each from a model that was fitted anew with fresh noise.

    Analyse each of them, and combine the results with `parley.pool` or by the formula in the quick
    start for analysts. The tables are made from the release alone and cost no budget.
    """
    check_tables(tables)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not an empty folder. Name another one")
    if release.absolute() in (out.absolute(), *out.absolute().parents):
        raise InputError(f"{out}: in a release there are only its own files. Name another folder")
    loaded = load(release)
    with whole_folder(out), console.progress("replicating") as tell:
        names = _write(loaded, out, tables, seed, format, tell)
    told = {"out": str(out), "files": names, "seed": seed}
    line = f"{many(len(names), 'table')}: {out / names[0]} to {names[-1]}"
    console.show(told, line, as_json=json)


def _write(
    loaded: Loaded, out: Path, tables: int, seed: int, kind: Format, tell: Reporter
) -> list[str]:
    made = loaded.replicates(tables, seed=seed, tell=tell)
    out.mkdir(parents=True, exist_ok=True)
    digits = max(2, len(str(tables)))
    names = []
    for number, table in enumerate(made, start=1):
        names.append(f"table-{number:0{digits}}.{kind}")
        if kind == "csv":
            table.to_csv(out / names[-1], index=False)
        else:
            table.to_parquet(out / names[-1], index=False)
    return names
