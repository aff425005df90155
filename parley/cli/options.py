"""Options that several commands share: called and explained the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from common.crypto.identities.files import load_identity
from common.errors import InputError
from common.methods.registry import cautions_of, method_of, methods
from common.privacy.budget import parse_epsilon
from common.privacy.statement import suspicion
from common.release.signatures import Signer, SignerRole
from common.schema import Schema
from common.schema.infer import is_draft
from common.study.document import Study
from parley.cli import console
from parley.cli.passphrases import passphrase_in
from parley.simulation.study_options import DEFAULT_METHOD

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]

Config = Annotated[Path | None, typer.Option(help="The settings file of the service, TOML.")]

SignWith = Annotated[
    Path | None, typer.Option(help="An identity.key: sign the release with it, as its maker.")
]
SignAs = Annotated[str, typer.Option(help="The name to sign under, with --sign-with.")]


AllowOtherVersion = Annotated[
    bool,
    typer.Option(
        "--allow-other-version",
        help="Accept a release of another version of parley, which cannot be derived here.",
    ),
]

StopWithStdin = Annotated[
    bool,
    typer.Option(
        "--stop-with-stdin",
        help="Stop when standard input ends: for a parent process that must leave nobody behind.",
    ),
]


LARGE_EPSILON = 8


def warned_of_large_epsilon(value: str | None) -> str | None:
    """Say where it is typed that an epsilon promises little; what is no number is refused later."""
    try:
        large = 0.0 if value is None else float(parse_epsilon(value))
    except InputError:
        return value
    if large > LARGE_EPSILON:
        console.warn(
            f"epsilon {value} promises next to nothing about one row: {suspicion(large)}. "
            f"Values up to a few are usual; above {LARGE_EPSILON} an auditor will ask why."
        )
    return value


def one_of(choices: Mapping[str, str], *, default: str) -> Any:  # noqa: ANN401  (typer's own)
    """An option whose help has a line for each choice."""
    lines = [
        f"{choice} (default): {words}" if choice == default else f"{choice}: {words}"
        for choice, words in choices.items()
    ]
    as_it_is = "\b"  # otherwise the lines would be filled up
    return typer.Option(help="\n".join([as_it_is, *lines]), show_default=False)


class Format(StrEnum):
    """Of the synthetic rows."""

    CSV = "csv"
    PARQUET = "parquet"


SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The schema (schema.toml): the public domains.")
]

# Of a release.
ReleaseFolder = Annotated[Path, typer.Option(help="The folder that will be the release.")]
OutputRows = Annotated[
    int | None, typer.Option(help="How many synthetic rows. [default: as many as real ones]")
]
OutputFormat = Annotated[Format, typer.Option(help="Of the synthetic rows.")]
Seed = Annotated[int | None, typer.Option(help="Repeatable and NOT PRIVATE: for experiments only.")]

# Of a study of several owners; see `parley.simulation.study_options`.
OwnersEpsilon = Annotated[
    str,
    typer.Option(
        help="What each owner's rows may cost: 0.8 or 4/5.", callback=warned_of_large_epsilon
    ),
]
OwnersDelta = Annotated[
    str, typer.Option(help="The chance that epsilon may fail with, like 1e-9; 0 is pure epsilon.")
]
StudyMethod = Annotated[
    str,
    one_of({method.name: method.summary for method in methods().values()}, default=DEFAULT_METHOD),
]
Noise = Annotated[str | None, typer.Option(help="distributed or one-share. [default: by profile]")]
Aggregation = Annotated[str, typer.Option(help="paillier, masked, or clear (NOT PRIVATE).")]
Colluders = Annotated[int, typer.Option(help="Owners that may pool what they know.")]
MayMiss = Annotated[
    int, typer.Option(help="Owners that may go missing: the others finish. Masked sums only.")
]
Drops = Annotated[
    list[str] | None,
    typer.Option(
        help="OWNER@STEP: vanishes before it contributes to this step, from 0. Repeatable."
    ),
]
PriorFile = Annotated[
    Path | None,
    typer.Option(
        "--prior",
        help="An earlier release of the same schema to build on: a folder or a .zip.",
    ),
]
Cohorts = Annotated[int, typer.Option(help="dp-subn: releases of the structure update.")]
RowsPerPerson = Annotated[
    int, typer.Option(help="Protect a person with up to so many rows at an owner, not a row.")
]
OwnersPerPerson = Annotated[int, typer.Option(help="The most owners that have rows of a person.")]
KeyBits = Annotated[int, typer.Option(help="Of the curator's Paillier key.")]
Encoding = Annotated[str, typer.Option(help="own, or binary as in the paper.")]

MethodSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="KEY=VALUE: a setting of the method, as in its table of study.toml. Repeatable.",
    ),
]

Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Between the cells of a CSV file: one character, or `tab`. "
        "[default: the one that its header has]",
        show_default=False,
    ),
]


def load_schema(path: Path) -> Schema:
    """The schema to publish under; one that nobody seems to have reviewed is warned of."""
    schema = Schema.load(path)
    if is_draft(path.read_text("utf-8")):
        console.warn(
            f"{path} still says NOT PRIVATE YET: its values and ranges were read off the data, and "
            "it is published. Write public ones, then delete those lines at its head."
        )
    return schema


def signer_of(sign_with: Path | None, sign_as: str, role: SignerRole) -> Signer | None:
    """Who signs the release, if anybody does; asked before any budget is spent."""
    if sign_with is None:
        return None
    return Signer(
        role=role, name=sign_as, identity=load_identity(sign_with, passphrase=passphrase_in(None))
    )


def settings_of(written: list[str] | None) -> dict[str, str | int]:
    """The settings of a method that were written as KEY=VALUE; digits are whole numbers."""
    found: dict[str, str | int] = {}
    for words in written or ():
        key, equals, value = (part.strip() for part in words.partition("="))
        if not (key and equals and value) or key in found:
            raise InputError(f"--set {words!r}: write each setting once, like budget=1:1:2:4")
        found[key] = int(value) if value.isascii() and value.isdigit() else value
    return found


def tell_decisions(study: Study) -> None:
    """Warn, before anything runs, of an epsilon above the claim and of caps that bind."""
    method = method_of(study)
    for caution in cautions_of(study):
        console.warn(caution)
    bounds = method.bound(study)
    if bounds is not None:
        each = ", ".join(f"{name} {float(bound):g}" for name, bound in bounds.items())
        console.warn(
            f"profile paper: the paper claims an epsilon of {float(study.epsilon):g}; the "
            f"mechanism's bound is {float(max(bounds.values())):g} ({each})"
        )


def delimiter_of(written: str | None) -> str | None:
    """The character that was meant."""
    if written is None or len(written) == 1:
        return written
    if written.lower() in ("tab", "\\t"):
        return "\t"
    raise InputError(f"--delimiter {written!r} is not one character; write `tab` for a tab")
