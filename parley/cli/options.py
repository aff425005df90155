"""Options that several commands share: called and explained the same everywhere.

Passphrases are never options: `passphrase_in` and its neighbours read them as the services do, and
ask a person at a terminal.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from common.crypto.key_files import AskPassphrase, load_identity
from common.errors import InputError
from common.methods.registry import cautions_of, method_of, methods, run_of
from common.privacy.budget import parse_epsilon
from common.privacy.statement import suspicion
from common.release import folder
from common.release.manifest import Signer, SignerRole
from common.schema import Schema
from common.schema.schema import is_draft
from common.schema.toml import parse_toml
from common.service.settings import asking, given_passphrase
from common.study.document import DEFAULT_METHOD, Study
from common.study.dry_run import costs_without_rows
from parley.cli import console

_MANY_TURNS = 100  # of owners, one after the other; in one process that takes more than a minute

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]

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
        help="Stop when standard input ends, as it does when the parent process is gone.",
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
    """Return an option whose help has a line for each choice."""
    lines = [
        f"{choice} (default): {words}" if choice == default else f"{choice}: {words}"
        for choice, words in choices.items()
    ]
    unfilled = "\b"  # keeps the lines from being joined
    return typer.Option(help="\n".join([unfilled, *lines]), show_default=False)


SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The schema (schema.toml): the public domains.")
]

# Of a release.
ReleaseFolder = Annotated[Path, typer.Option(help="The folder that will be the release.")]
OutputRows = Annotated[
    int | None, typer.Option(help="How many synthetic rows. [default: as many as real ones]")
]
Format = Literal["csv", "parquet"]
OutputFormat = Annotated[Format, typer.Option(help="The format of the synthetic rows.")]
Seed = Annotated[int | None, typer.Option(help="Repeatable and NOT PRIVATE: for experiments only.")]

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
Aggregation = Annotated[str, typer.Option(help="paillier, masked, or clear (NOT PRIVATE).")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What may be chosen about a study of several owners: the options of a command."""

    epsilon: OwnersEpsilon
    delta: OwnersDelta = "0"
    method: StudyMethod = DEFAULT_METHOD
    profile: Annotated[
        str, typer.Option(help="sound: epsilon as printed. paper: its noise, true cost printed.")
    ] = "sound"
    noise: Annotated[
        str | None, typer.Option(help="distributed or one-share. [default: by profile]")
    ] = None
    aggregation: Aggregation = "paillier"
    colluders: Annotated[int, typer.Option(help="Owners that may pool what they know.")] = 1
    may_miss: Annotated[
        int, typer.Option(help="Owners that may go missing: the others finish. Masked sums only.")
    ] = 0
    cohorts: Annotated[int, typer.Option(help="dp-subn: releases of the structure update.")] = 1
    rows_per_person: Annotated[
        int, typer.Option(help="Protect a person with up to so many rows at an owner, not a row.")
    ] = 0
    owners_per_person: Annotated[
        int, typer.Option(help="The most owners that have rows of a person.")
    ] = 1
    key_bits: Annotated[int, typer.Option(help="The size of the curator's Paillier key.")] = 2048
    encoding: Annotated[str, typer.Option(help="own, or binary as in the paper.")] = "own"
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="KEY=VALUE: a setting of the method, as in its table of study.toml. Repeatable.",
        ),
    ] = None
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            help="What the model must be good for, in the keys of [[criterion]]: 'mean = "
            '"income", within = "3 %"\', \'share = "age > 60", within = 0.01\', '
            "'distance = 0.08, pairs = \"most\"'. Repeatable.",
        ),
    ] = None
    criteria_epsilon: Annotated[
        str | None,
        typer.Option(help="The part of epsilon that measuring the criteria costs, like 0.05."),
    ] = None
    rows: OutputRows = None

    def chosen(self) -> dict[str, object]:
        """Return the terms in the words of `Study.of`, where no rows stand for the default."""
        if self.rows is not None and self.rows < 1:
            raise InputError(f"--rows {self.rows}: ask for at least one row")
        terms = {field.name: getattr(self, field.name) for field in fields(self)}
        read = {"settings": settings_of(self.settings), "criterion": criteria_of(self.criterion)}
        return {"output_rows": terms.pop("rows"), **terms, **read}


def taking_terms(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command with a parameter `terms` take the fields of `Terms` as options of its own."""
    own = inspect.signature(command, eval_str=True).parameters
    hints = get_type_hints(Terms, include_extras=True)
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[field.name],
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(Terms)
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401  (each as its option says)
        terms = Terms(**{option.name: given.pop(option.name) for option in options})
        command(terms=terms, **given)

    parameters = [
        each for name, one in own.items() for each in (options if name == "terms" else [one])
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


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

Delimiter = Annotated[
    str | None,
    typer.Option(
        help="The character between the cells of a CSV file, or `tab`. "
        "[default: the one in its header]",
        show_default=False,
    ),
]


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
        given = given_passphrase(file, os.environ)
        if given is not None or not sys.stdin.isatty():
            return asking(file, os.environ)()
        if not known:
            known.append(typer.prompt("Passphrase of the keys", hide_input=True, err=True))
        return known[0]

    return ask


def new_passphrase(file: Path | None, *, ask: bool) -> str | None:
    """Return the passphrase to put new keys under: of the file or PARLEY_PASSPHRASE, or asked for.

    None if there is none and no question may be asked: then a file's mode protects it.
    """
    given = given_passphrase(file, os.environ)
    if given is None:
        return chosen_passphrase(None) if ask else None
    return _not_empty(given)


def chosen_passphrase(file: Path | None) -> str:
    """Return a new passphrase: of the file, or asked for, twice."""
    given = given_passphrase(file, {})
    if given is None:
        if not sys.stdin.isatty():
            raise InputError(
                "there is no terminal to ask for a passphrase on. Name a file with the passphrase"
            )
        given = str(
            typer.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
        )
    return _not_empty(given)


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


def settings_of(written: list[str] | None) -> dict[str, str | int]:
    """Read the settings of a method, written as KEY=VALUE; digits are whole numbers."""
    found: dict[str, str | int] = {}
    for words in written or ():
        key, equals, value = (part.strip() for part in words.partition("="))
        if not (key and equals and value) or key in found:
            raise InputError(f"--set {words!r}: write each setting once, like budget=1:1:2:4")
        found[key] = int(value) if value.isascii() and value.isdigit() else value
    return found


def criteria_of(written: list[str] | None) -> list[dict[str, object]]:
    """Read criteria, each written as the keys of a table."""
    found = []
    for words in written or ():
        try:
            found.append(parse_toml(f"criterion = {{ {words} }}", parse_float=Decimal)["criterion"])
        except InputError:
            raise InputError(
                f'--criterion {words!r}: write keys and values, like mean = "income", within = '
                '"3 %"'
            ) from None
    return found


def tell_decisions(study: Study) -> None:
    """Warn, before anything runs, of binding caps, an epsilon above the claim."""
    method = method_of(study)
    for caution in cautions_of(study):
        console.warn(caution)
    if study.profile == "paper" and method.replaces_noise:
        _tell_turns(len(study.members))
        _tell_above_claim(study, costs_without_rows(study, run_of(study)))


def _tell_turns(parties: int) -> None:
    if parties > _MANY_TURNS:
        console.warn(
            f"profile paper: {parties} owners take a turn each, and every owner follows every "
            "turn, so the time grows with the square of their number. Here that takes minutes; "
            "profile sound takes seconds"
        )


def _tell_above_claim(study: Study, costs: Mapping[str, Fraction]) -> None:
    most = max(costs.values())
    if most > study.epsilon:
        parties = ", ".join(f"{name} {float(cost):g}" for name, cost in costs.items())
        console.warn(
            f"profile paper: the paper claims an epsilon of {float(study.epsilon):g}; the "
            f"mechanism's bound is {float(most):g}, and that is charged ({parties})"
        )


def promise_words(privacy: Mapping[str, Any]) -> str:
    """Return what a release promises, as `epsilon 1 and delta 1e-09`."""
    delta = f" and delta {privacy['delta']:g}" if privacy["delta"] else ""
    return f"epsilon {privacy['epsilon_delivered']:g}{delta}"


def warn_unless_private(privacy: Mapping[str, Any]) -> None:
    """Warn the user of a release that it promises nothing."""
    if not privacy["private"]:
        console.warn(f"this release is NOT PRIVATE: {'; '.join(privacy['not_private_because'])}")


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


def delimiter_of(written: str | None) -> str | None:
    """Return the character that was meant."""
    if written is None or len(written) == 1:
        return written
    if written.lower() in ("tab", "\\t"):
        return "\t"
    raise InputError(f"--delimiter {written!r}: it is not one character. Write `tab` for a tab")
