"""The terms of a study as options of commands; `common.study.terms` says what they are."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any, cast

import typer

from common.errors import InputError
from common.methods.registry import cautions_of, method_of, methods, run_of
from common.privacy.statement import large_epsilon
from common.schema.toml import parse_toml
from common.study.document import DEFAULT_METHOD, Study
from common.study.dry_run import costs_without_rows
from common.study.terms import TERMS, Terms
from parley.cli import console

_MANY_TURNS = 100  # of owners, one after the other; in one process that takes more than a minute
_DEFAULTS = {field.name: field.default for field in fields(Study)}
_FLAGS = {"expires": ("--expires", "--approve-by")}
_HAS_DEFAULT = "[default:"  # in a meaning that says what is done where an option is left out


def one_of(choices: Mapping[str, str], *, default: str) -> Any:  # noqa: ANN401  (typer's own)
    """Return an option whose help has a line for each choice."""
    lines = [
        f"{choice} (default): {words}" if choice == default else f"{choice}: {words}"
        for choice, words in choices.items()
    ]
    unfilled = "\b"  # keeps the lines from being joined
    return typer.Option(help="\n".join([unfilled, *lines]), show_default=False)


def option_of(name: str) -> Any:  # noqa: ANN401  (typer's own)
    term = TERMS[name]
    if name == "method":
        summaries = {method.name: method.summary for method in methods().values()}
        return one_of(summaries, default=DEFAULT_METHOD)
    repeatable = " Repeatable." if _kind(name) == list[str] else ""
    return typer.Option(
        *_FLAGS.get(name, (f"--{term.key.replace('_', '-')}",)),
        help=f"{'KEY=VALUE. ' if name == 'settings' else ''}{term.meaning}{repeatable}",
        callback=warned_of_large_epsilon if name == "epsilon" else None,
        formats=["%Y-%m-%d"] if _kind(name) is dt.datetime else None,
    )


def _kind(name: str) -> Any:  # noqa: ANN401  (a type, as typer reads it)
    """Return the type of what is typed for a term."""
    written = TERMS[name].kind
    if name in ("settings", "criteria", "analyses"):
        return list[str]
    return {int: int, dt.date: dt.datetime}.get(written, str)


def _default(name: str) -> Any:  # noqa: ANN401  (of the type that is typed)
    default = _DEFAULTS[name]
    if default is MISSING:
        return inspect.Parameter.empty
    if _kind(name) not in (int, str) or _HAS_DEFAULT in TERMS[name].meaning or default == "":
        return None
    if isinstance(default, Fraction):
        return str(default) if name == "delta" else None
    return default.value if isinstance(default, Enum) else default


def taking_terms(command: Callable[..., object]) -> Callable[..., object]:
    """Let a command with a parameter `terms` take the terms of a study as options.

    It may have some of them as parameters of its own.
    """
    declared = inspect.signature(command, eval_str=True).parameters
    names = [name for name in TERMS if name not in declared]
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[
                _kind(name) | None if _default(name) is None else _kind(name), option_of(name)
            ],
            default=_default(name),
        )
        for name in names
    ]

    @functools.wraps(command)
    def run(**values: Any) -> object:  # noqa: ANN401  (each as its option says)
        return command(terms=terms_of({name: values.pop(name) for name in names}), **values)

    parameters = [
        option
        for name, one in declared.items()
        for option in (options if name == "terms" else [one])
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return run


def terms_of(typed: Mapping[str, Any]) -> Terms:
    """Return the terms that were typed, in the words of `Study.of`."""
    terms = {name: value for name, value in typed.items() if value is not None}
    if terms.get("output_rows", 1) < 1:
        raise InputError(f"--rows {terms['output_rows']}: ask for at least one row")
    if "expires" in terms:
        terms["expires"] = terms["expires"].date()
    terms["settings"] = settings_of(terms.get("settings", ()))
    terms["criteria"] = criteria_of(terms.get("criteria", ()))
    return cast(Terms, terms)


def settings_of(written: Sequence[str]) -> dict[str, str | int]:
    """Read the settings of a method, written as KEY=VALUE; digits are whole numbers."""
    settings: dict[str, str | int] = {}
    for words in written:
        key, equals, value = (part.strip() for part in words.partition("="))
        if not (key and equals and value) or key in settings:
            raise InputError(f"--set {words!r}: write each setting once, like budget=1:1:2:4")
        settings[key] = int(value) if value.isascii() and value.isdigit() else value
    return settings


def criteria_of(written: Sequence[str]) -> list[dict[str, object]]:
    """Read criteria, each written as the keys of a table."""
    criteria = []
    for words in written:
        try:
            table = parse_toml(f"criterion = {{ {words} }}", parse_float=Decimal)
        except InputError:
            raise InputError(
                f'--criterion {words!r}: write keys and values, like mean = "income", within = '
                '"3 %"'
            ) from None
        criteria.append(table["criterion"])
    return criteria


def warned_of_large_epsilon(value: str | None) -> str | None:
    """Say where it is typed that an epsilon promises little; what is no number is refused later."""
    if value is not None and (words := large_epsilon(value)):
        console.warn(words)
    return value


def tell_decisions(study: Study) -> None:
    """Warn, before anything runs, of binding caps, an epsilon above the claim; say what helps."""
    method = method_of(study)
    for caution in cautions_of(study):
        console.warn(caution)
    for prospect in method.prospects(study):
        console.note(f"forecast: {prospect.analysis}: {prospect.words}")
    for words in method.advice(study):
        console.note(words)
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
