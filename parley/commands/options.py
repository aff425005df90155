"""Options that several commands share: called and explained the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]

Config = Annotated[Path | None, typer.Option(help="The settings file of the service, TOML.")]


StopWithStdin = Annotated[
    bool,
    typer.Option(
        "--stop-with-stdin",
        help="Stop when standard input ends: for a parent process that must leave nobody behind.",
    ),
]


class Format(StrEnum):
    """Of the synthetic rows."""

    CSV = "csv"
    PARQUET = "parquet"


SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The schema (schema.toml): the public domains.")
]

Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Between the cells of a CSV file: one character, or `tab`. "
        "[default: a comma; a tab for .tsv]",
        show_default=False,
    ),
]


def delimiter_of(written: str | None) -> str | None:
    """The character that was meant."""
    if written is None or len(written) == 1:
        return written
    if written.lower() in ("tab", "\\t"):
        return "\t"
    raise InputError(f"--delimiter {written!r} is not one character; write `tab` for a tab")
