"""A command returns what it found, and this module alone prints it: as lines, or as JSON.

A result is a frozen dataclass. Its fields are its JSON form; `lines` says them to people:

    @dataclass(frozen=True)
    class Bundled(Result):
        out: Path
        bytes: int

        def lines(self) -> Iterator[str]:
            yield f"{self.out}: {self.bytes:,} bytes"

    @command(app)
    def bundle(release: Release, *, out: Annotated[Path, ...]) -> Bundled: ...

`command` gives the command its `--json`. A command that runs until it is stopped returns None, and
has none.
"""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from parley.cli import console

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]
FOR_PEOPLE = {"json": False}  # the metadata of a field that only the lines have
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Result:
    """What a command found."""

    def lines(self) -> Iterator[str]:
        """Yield it for people, a line at a time; each is printed before the next is asked for."""
        raise NotImplementedError

    def as_json(self) -> Any:  # noqa: ANN401  (a table, or a list of them)
        """Return it for scripts: the fields, in plain values."""
        return {field.name: plain(getattr(self, field.name))
                for field in fields(self) if field.metadata.get("json", True)}  # fmt: skip

    def warnings(self) -> Iterable[str]:
        """Return what must not be overlooked in it; it follows the result on standard error."""
        return ()

    def remarks(self) -> Iterable[str]:
        """Return what may be of use; it follows the warnings."""
        return ()

    def require(self) -> None:
        """Raise what makes the command fail although it has a result."""


@dataclass(frozen=True)
class ResultList(Result):
    """Results of one kind; for scripts, a list."""

    items: tuple[Result, ...]
    empty: str = ""  # the line where there are none

    def lines(self) -> Iterator[str]:
        for item in self.items:
            yield from item.lines()
        if not self.items and self.empty:
            yield self.empty

    def as_json(self) -> object:
        return [item.as_json() for item in self.items]


@dataclass(frozen=True)
class JsonOnly(Result):
    """What has one form, which is JSON."""

    value: object

    def lines(self) -> Iterator[str]:
        yield _written(self.value)

    def as_json(self) -> object:
        return plain(self.value)


def plain(value: Any) -> Any:  # noqa: ANN401  (anything that a result may hold)
    """Return plain values: fractions exact and in text, times in ISO 8601, digests in hex."""
    if hasattr(value, "as_json"):
        return plain(value.as_json())
    match value:
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex()
        case PurePath() | Fraction():
            return str(value)
        case dt.date():
            return value.isoformat()
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case _ if is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return [plain(item) for item in value]


def show(result: Result, *, as_json: bool) -> None:
    """Print a result, then what is to be warned of; raise if it makes the command fail."""
    if as_json:
        console.result(_written(result.as_json()))
    else:
        for line in result.lines():
            console.result(line)
    for words in result.warnings():
        console.warn(words)
    for words in result.remarks():
        console.note(words)
    result.require()


def _written(value: object) -> str:
    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def command(
    app: typer.Typer, name: str | None = None, *, hidden: bool = False
) -> Callable[[_Command], _Command]:
    """Make a function a command of an app; what it returns is printed.

    A parameter whose type is a dataclass stands for an option of each of its fields.
    """

    def register(function: _Command) -> _Command:
        signature = inspect.signature(function, eval_str=True)
        groups: dict[str, Any] = {
            parameter.name: parameter.annotation
            for parameter in signature.parameters.values()
            if is_dataclass(parameter.annotation)
        }
        parameters = [
            option
            for parameter in signature.parameters.values()
            for option in (
                _options(groups[parameter.name]) if parameter.name in groups else [parameter]
            )
        ]
        parameters.append(_option("json", AsJson, default=False))

        @functools.wraps(function)
        def run(*, json: bool, **values: Any) -> None:  # noqa: ANN401  (as its options say)
            for name, kind in groups.items():
                values[name] = kind(
                    **{field.name: values.pop(field.name) for field in fields(kind)}
                )
            show(function(**values), as_json=json)

        # typer reads both.
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app.command(name, hidden=hidden)(run)
        return function

    return register


def _options(kind: Any) -> list[inspect.Parameter]:  # noqa: ANN401  (a dataclass)
    hints = get_type_hints(kind, include_extras=True)
    return [_option(field.name, hints[field.name], default=field.default) for field in fields(kind)]


def _option(name: str, annotation: Any, *, default: object) -> inspect.Parameter:  # noqa: ANN401
    value = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=value
    )
