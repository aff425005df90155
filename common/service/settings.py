"""Settings of a service: defaults, then a TOML file, then the environment, then flags.

A service's settings are a frozen dataclass. The origin of each value is kept for `config show`. A
key that the service does not know is an error wherever it is written: a misspelt limit that is
silently ignored is no limit.

Paths in a file are relative to it. Secrets are not settings: a passphrase comes from a file that a
setting names, or from the environment, never from a flag.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_type_hints

from common.crypto.key_files import AskPassphrase
from common.errors import InputError, located
from common.files import read_private_key
from common.schema.toml import parse_toml, text_of

DEFAULT = "default"
PASSPHRASE = "PARLEY_PASSPHRASE"  # noqa: S105  # the name of the variable
LEAST_S, MOST_S = 0.001, 86_400.0  # of a duration: a loop without a pause, and a day
MOST_PORT = 65_535
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})")


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Kind = TypeVar("Kind", bound=_Dataclass)
Texts = Mapping[str, str]  # the type of a setting that is a table of texts, or None
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class LoadedSettings(Generic[Kind]):
    """Values, where each came from, and the tables of the file that are not this dataclass's."""

    values: Kind
    origins: Mapping[str, str]
    tables: Mapping[str, Any]

    def lines(self) -> list[str]:
        return [
            f"{key} = {getattr(self.values, key)}  # {origin}"
            for key, origin in self.origins.items()
        ]


def read_settings(
    kind: type[Kind],
    *,
    prefix: str,
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    tables: Sequence[str] = (),
) -> LoadedSettings[Kind]:
    """Put the settings together.

    A flag that is None was not given. `tables` names further tables that the file may have.
    """
    types = get_type_hints(kind)
    values: dict[str, Any] = {}
    origins = {field.name: DEFAULT for field in dataclasses.fields(kind)}
    document = {} if file is None else _read(file)
    further = {name: document.pop(name) for name in tables if name in document}
    variables = {
        name.removeprefix(prefix).lower(): text
        for name, text in environment.items()
        if name.startswith(prefix)
    }
    for where, entries, folder in (
        (str(file), document, Path() if file is None else file.parent),
        (f"the environment ({prefix}*)", variables, Path()),
        ("the command line", {k: v for k, v in flags.items() if v is not None}, Path()),
    ):
        for key, value in entries.items():
            if key not in origins:
                raise InputError(f"{where}: unknown setting {key!r}. Known: {', '.join(origins)}")
            values[key] = _converted(value, types[key], f"{where}: {key}", folder)
            origins[key] = where
    missing = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.name not in values
    ]
    if missing:
        where = "Name the settings file with --config" if file is None else f"Write it into {file}"
        raise InputError(f"{missing[0]} is not set. {where}, or set {prefix}{missing[0].upper()}")
    try:
        return LoadedSettings(kind(**values), origins, further)
    except InputError as error:  # begins with the key
        origin = origins.get(str(error).partition(":")[0], kind.__name__)
        raise InputError(f"{origin}: {error}") from None


def check_seconds(key: str, value: float, *, most: float = MOST_S) -> None:
    """Refuse a duration that is not finite, too short, or too long."""
    if not (math.isfinite(value) and LEAST_S <= value <= most):
        raise InputError(
            f"{key}: {value} is not a usable duration. Set {LEAST_S} to {most:.0f} seconds"
        )


def check_whole(key: str, value: int, *, most: int) -> None:
    if not 1 <= value <= most:
        raise InputError(f"{key}: {value} is out of range. Set a whole number from 1 to {most}")


def check_address(key: str, value: str, *, least_port: int = 0) -> None:
    """Refuse what is not `host:port`; to a server, port 0 is any free port."""
    match = _ADDRESS.fullmatch(value)
    if match is None or not least_port <= int(match[1]) <= MOST_PORT:
        raise InputError(
            f"{key}: expected host:port, got {value!r}. Write an address such as 127.0.0.1:7443 "
            f"or [::1]:7443, with a port from {least_port} to {MOST_PORT}"
        )


def _read(file: Path) -> dict[str, Any]:
    document = text_of(file)
    with located(str(file)):
        return parse_toml(document)


def _converted(value: object, kind: object, where: str, folder: Path) -> object:
    """Convert a value to the type of its field; the environment has texts only."""
    if kind in (Path, Path | None):
        if isinstance(value, str | Path) and str(value):
            return folder / value
        raise InputError(f"{where}: expected a path, got {value!r}")
    if kind == Texts | None:
        return _texts(value, where)
    if kind is bool and isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    try:
        if kind is int and isinstance(value, str):
            return int(value)
        if kind is float and isinstance(value, str | int) and type(value) is not bool:
            return float(value)
    except (ValueError, OverflowError):  # overflow: a whole number too large for a float
        pass
    if type(value) is not kind:
        raise InputError(f"{where}: expected {getattr(kind, '__name__', kind)}, got {value!r}")
    return value


def _texts(value: object, where: str) -> Texts:
    """Return texts by name: of a table, or of the NAME=TEXT,NAME=TEXT of a variable."""
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        value = {name.strip(): text.strip() for name, _, text in pairs}
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a table of texts, got {value!r}")
    for name, text in value.items():
        if not isinstance(text, str) or not text or not text.isprintable():
            raise InputError(f"{where}: {name!r} has {text!r}. Write one line of text")
    return dict(value)


def given_passphrase(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """Return the first line of the file, which must be private, or the variable."""
    if file is None:
        return environment.get(PASSPHRASE)
    lines = read_private_key(file).decode(errors="replace").splitlines()
    return lines[0] if lines else ""


def asking(file: Path | None, environment: Mapping[str, str]) -> AskPassphrase:
    """Return a function that looks for the passphrase when a key turns out to need one."""

    def ask() -> str:
        passphrase = given_passphrase(file, environment)
        if passphrase is None:
            raise InputError(
                "it is under a passphrase. Name a file that has it (passphrase_file), or set "
                f"{PASSPHRASE}"
            )
        return passphrase

    return ask
