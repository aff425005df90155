"""A command returns what it found, and this module alone prints it: as lines, or as JSON.

    @command(app)
    def bundle(release: Release, *, out: Annotated[Path, ...]) -> Result:
        ...
        return Result({"out": out, "bytes": size}, [f"{out}: {size:,} bytes"])

`command` gives the command its `--json`. A command that runs until it is stopped returns None, and
has none.
"""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from itertools import chain
from pathlib import PurePath
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from parley.cli import console

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Result:
    """What a command found."""

    form: object  # for scripts: anything that `plain` takes, or a function that returns it
    lines: Iterable[str] | None = None  # for people, each printed before the next is asked for
    _: KW_ONLY
    warnings: Iterable[str] = ()  # what must not be overlooked, on standard error
    remarks: Iterable[str] = ()  # what may be of use; it follows the warnings
    require: Callable[[], object] = lambda: None  # raises what makes the command fail at its end

    def __post_init__(self) -> None:
        """Show the form itself to people, if there are no lines for them."""
        if self.lines is None:
            object.__setattr__(self, "lines", map(_written, (self.form,)))


def listed(results: Iterable[Result], *, empty: str = "") -> Result:
    """Return several results as one; `empty` is the line where there are none."""
    results = tuple(results)
    lines = chain.from_iterable(result.lines or () for result in results) if results else [empty]
    return Result([result.form for result in results], filter(None, lines))


def plain(value: Any) -> Any:  # noqa: ANN401  (anything that a result may hold)
    """Return plain values: fractions exact and in text, times in ISO 8601, digests in hex."""
    if hasattr(value, "as_json"):
        return plain(value.as_json())
    if callable(value):
        return plain(value())
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
    for line in [_written(result.form)] if as_json else result.lines or ():
        console.result(line)
    for words in result.warnings:
        console.warn(words)
    for words in result.remarks:
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
