"""`parley simulate`: a study of several owners on one machine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from common.errors import InputError
from common.schema import Schema
from common.schema.tables import TableFile, read_table
from parley import console, release
from parley.commands import new_app
from parley.commands.options import AsJson, Delimiter, Overwrite, SchemaFile, delimiter_of
from parley.partition import at_random, by_column
from parley.simulation import DEFAULT_METHOD, simulate
from parley.single_owner import Table, source_of
from parley.study_release import FittedStudy
from parley.synthesis import Written, write_release

app = new_app()
_DEFAULT_PARTIES = 3


class Format(StrEnum):
    """Of the synthetic rows."""

    CSV = "csv"
    PARQUET = "parquet"


@app.command(name="simulate")
def simulate_study(
    data: Annotated[
        list[Path], typer.Argument(help="One table to be dealt out, or one table per owner.")
    ],
    *,
    schema: SchemaFile,
    epsilon: Annotated[str, typer.Option(help="What each owner's rows may cost: 0.8 or 4/5.")],
    out: Annotated[Path, typer.Option(help="The folder that will be the release.")],
    parties: Annotated[
        int | None, typer.Option(help="Owners to deal one table's rows out to. [default: 3]")
    ] = None,
    partition_by: Annotated[
        str | None, typer.Option(help="Deal out by this column: one owner per value.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="subn+, dp-subn, dp-ccbn, independent or floor.")
    ] = DEFAULT_METHOD,
    profile: Annotated[
        str, typer.Option(help="sound: epsilon as printed. paper: its noise, true cost printed.")
    ] = "sound",
    noise: Annotated[
        str | None, typer.Option(help="distributed or one-share. [default: by profile]")
    ] = None,
    aggregation: Annotated[
        str, typer.Option(help="paillier, masked, or clear (NOT PRIVATE).")
    ] = "paillier",
    colluders: Annotated[int, typer.Option(help="Owners that may pool what they know.")] = 1,
    cohorts: Annotated[int, typer.Option(help="dp-subn: releases of the structure update.")] = 1,
    key_bits: Annotated[int, typer.Option(help="Of the curator's Paillier key.")] = 2048,
    encoding: Annotated[str, typer.Option(help="own, or binary as in the paper.")] = "own",
    rows: Annotated[
        int | None, typer.Option(help="How many synthetic rows. [default: as many as real ones]")
    ] = None,
    format: Annotated[Format, typer.Option(help="Of the synthetic rows.")] = Format.CSV,  # noqa: A002
    seed: Annotated[
        int | None, typer.Option(help="Repeatable and NOT PRIVATE: for experiments only.")
    ] = None,
    delimiter: Delimiter = None,
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Run a study of several owners on this machine, with the roles and keys of a deployment.

    The folder holds what `parley synthesize` writes, and transcript.json: bytes, rounds and seconds
    by phase and party.
    """
    release.check_target(out, overwrite=overwrite)
    if rows is not None and rows < 1:
        raise InputError(f"--rows {rows}: ask for at least one row")
    domains = Schema.load(schema)
    with console.progress("reading") as tell:
        tell(0.0, data[0].name)
        read = [read_table(path, domains, delimiter=delimiter_of(delimiter)) for path in data]
        for table in read:
            table.encode(domains)  # here an error can still name the file and the line
    tables = _owners(data, read, parties, partition_by, seed)
    with release.new_folder(out, overwrite=overwrite) as folder:
        with console.progress("study") as tell:
            fitted = simulate(
                tables,
                domains,
                epsilon=epsilon,
                method=method,
                profile=profile,
                noise=noise,
                aggregation=aggregation,
                colluders=colluders,
                cohorts=cohorts,
                key_bits=key_bits,
                encoding=encoding,
                seed=seed,
                tell=tell,
            )
        with console.progress("writing") as tell:
            written = write_release(folder, fitted, rows=rows, file_format=format.value, tell=tell)
    _report(out, fitted, written, as_json=json)


def _owners(
    paths: list[Path],
    read: list[TableFile],
    parties: int | None,
    partition_by: str | None,
    seed: int | None,
) -> dict[str, Table]:
    if len(read) > 1:
        if parties is not None or partition_by is not None:
            raise InputError("several tables are several owners: leave out --parties and the like")
        names = [path.stem for path in paths]
        if len(set(names)) < len(names):
            names = [f"{name} {number}" for number, name in enumerate(names, start=1)]
        return dict(zip(names, read, strict=True))
    whole: pd.DataFrame = read[0].data.to_pandas()
    if partition_by is not None:
        if parties is not None:
            raise InputError("give --parties or --partition-by, not both")
        return dict(by_column(whole, partition_by))
    number = _DEFAULT_PARTIES if parties is None else parties
    return dict(at_random(whole, number, source_of(seed, "partition")))


def _report(out: Path, fitted: FittedStudy, written: Written, *, as_json: bool) -> None:
    privacy = fitted.privacy
    if not privacy["private"]:
        console.warn(f"NOT PRIVATE: {privacy['not_private_because']}. Do not publish this.")
    if as_json:
        console.result_json(
            {
                "out": str(out),
                "files": list(written.files),
                "rows": written.rows,
                "epsilon_requested": privacy["epsilon_requested"],
                "epsilon_delivered": privacy["epsilon_delivered"],
                "parties": privacy["parties"],
                "private": privacy["private"],
                "bytes": fitted.transcript["bytes"],
                "seconds": fitted.transcript["seconds"],
            }
        )
        return
    console.result(
        f"{written.rows:,} synthetic rows of {len(fitted.study.members)} owners, epsilon "
        f"{privacy['epsilon_delivered']:g} ({privacy['epsilon_requested']:g} was asked for): "
        f"{out / release.REPORT}"
    )
