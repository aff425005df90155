"""Options that several commands share: called and explained the same everywhere.

Passphrases are never options: `passphrase_in` and its neighbours read them as the services do, and
ask a person at a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from common.crypto.key_files import AskPassphrase, load_identity
from common.errors import InputError
from common.release import folder
from common.release.manifest import Signer, SignerRole
from common.schema import Schema
from common.schema.schema import is_draft
from common.service.settings import asking, given_passphrase
from common.tables import TableFile, read_table
from parley.cli import console

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]

Config = Annotated[Path | None, typer.Option(help="The settings file of the service, TOML.")]

SignWith = Annotated[
    Path | None, typer.Option(help="An identity.key: sign the release with it, as its maker.")
]
SignAs = Annotated[str, typer.Option(help="The name to sign under, with --sign-with.")]


Release = Annotated[Path, typer.Argument(help="The release: a folder or a .zip.")]
StudyFile = Annotated[Path, typer.Argument(help="The study.toml.")]
KnownStudy = Annotated[str, typer.Argument(help="The first characters of its digest, or its name.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
LogLevel = Annotated[str | None, typer.Option(help="debug, info, warning, error.")]
Metrics = Annotated[str | None, typer.Option(help="Address and port of the metrics.")]
Offline = Annotated[bool, typer.Option("--offline", help="Do not ask the curator.")]

StopWithStdin = Annotated[
    bool,
    typer.Option(
        "--stop-with-stdin",
        help="Stop when standard input ends, as it does when the parent process is gone.",
    ),
]


SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The schema (schema.toml): the public domains.")
]

ReleaseFolder = Annotated[Path, typer.Option(help="The folder that will be the release.")]
OutputRows = Annotated[
    int | None, typer.Option(help="How many synthetic rows. [default: as many as real ones]")
]
Format = Literal["csv", "parquet"]
OutputFormat = Annotated[Format, typer.Option(help="The format of the synthetic rows.")]
Seed = Annotated[int | None, typer.Option(help="Repeatable and NOT PRIVATE: for experiments only.")]

PriorFile = Annotated[
    Path | None,
    typer.Option(
        "--prior",
        help="An earlier release of the same schema to build on: a folder or a .zip.",
    ),
]
Drops = Annotated[
    list[str] | None,
    typer.Option(
        help="OWNER@STEP: vanishes before it contributes to this step, from 0. Repeatable."
    ),
]

Sheet = Annotated[
    str, typer.Option(help="The sheet of an Excel file. [default: the first]", show_default=False)
]

EventsSheet = Annotated[
    str,
    typer.Option(
        help="The sheet of an Excel file that has the events. [default: the first]",
        show_default=False,
    ),
]

Delimiter = Annotated[
    str | None,
    typer.Option(
        help="The character between the cells of a CSV file, or `tab`. "
        "[default: the one in its header]",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Reading:
    """How the file of a table is read."""

    delimiter: Delimiter = None
    sheet: Sheet = ""

    def table(self, path: Path, schema: Schema | None = None) -> TableFile:
        return read_table(path, schema, delimiter=self.character, sheet=self.sheet)

    @property
    def character(self) -> str | None:
        """The delimiter that was meant."""
        written = self.delimiter
        if written is None or len(written) == 1:
            return written
        if written.lower() in ("tab", "\\t"):
            return "\t"
        raise InputError(f"--delimiter {written!r}: it is not one character. Write `tab` for a tab")


def load_schema(path: Path) -> Schema:
    """Load the schema to publish under; warn of one that looks unreviewed."""
    schema = Schema.load(path)
    if is_draft(path.read_text("utf-8")):
        console.warn(
            f"{path} still says NOT PRIVATE YET: its values and ranges were read off the data, and "
            "it is published. Write public ones, then delete those lines at its head."
        )
    return schema


def passphrase_in(file: Path | None) -> AskPassphrase:
    """Return what finds the passphrase of keys when a key needs it.

    It is in the file or in PARLEY_PASSPHRASE; on a terminal a person is asked, once.
    """
    known: list[str] = []

    def ask() -> str:
        passphrase = given_passphrase(file, os.environ)
        if passphrase is not None or not sys.stdin.isatty():
            return asking(file, os.environ)()
        if not known:
            known.append(typer.prompt("Passphrase of the keys", hide_input=True, err=True))
        return known[0]

    return ask


def new_passphrase(file: Path | None, *, ask: bool) -> str | None:
    """Return the passphrase to put new keys under: of the file or PARLEY_PASSPHRASE, or asked for.

    None if there is none and no question may be asked: then a file's mode protects it.
    """
    passphrase = given_passphrase(file, os.environ)
    if passphrase is None:
        return chosen_passphrase(None) if ask else None
    return _not_empty(passphrase)


def chosen_passphrase(file: Path | None) -> str:
    """Return a new passphrase: of the file, or asked for, twice."""
    passphrase = given_passphrase(file, {})
    if passphrase is None:
        if not sys.stdin.isatty():
            raise InputError(
                "there is no terminal to ask for a passphrase on. Name a file with the passphrase"
            )
        passphrase = str(
            typer.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
        )
    return _not_empty(passphrase)


def _not_empty(passphrase: str) -> str:
    if not passphrase:
        raise InputError("an empty passphrase protects nothing. Choose one")
    return passphrase


def signer_of(sign_with: Path | None, sign_as: str, role: SignerRole) -> Signer | None:
    """Return the release's signer, or None; asked before any budget is spent."""
    if sign_with is None:
        return None
    return Signer(
        role=role, name=sign_as, identity=load_identity(sign_with, passphrase=passphrase_in(None))
    )


def promise_words(privacy: Mapping[str, Any]) -> str:
    """Return what a release promises, as `epsilon 1 and delta 1e-09`."""
    delta = f" and delta {privacy['delta']:g}" if privacy["delta"] else ""
    return f"epsilon {privacy['epsilon_delivered']:g}{delta}"


def not_private(privacy: Mapping[str, Any]) -> list[str]:
    """Return the warning for users of a release that promises nothing."""
    if privacy["private"]:
        return []
    return [f"this release is NOT PRIVATE: {'; '.join(privacy['not_private_because'])}"]


def tell_of_release(release: Path, privacy: Mapping[str, Any]) -> None:
    """Say what the maker of a release must know before it is published or used."""
    if not privacy["private"]:
        console.warn(
            f"NOT PRIVATE: {'; '.join(privacy['not_private_because'])}. Do not publish this."
        )
    for caution in folder.cautions_of(release):
        console.warn(caution)
    for line in folder.verdict_lines(privacy):
        console.note(f"criterion: {line}")
