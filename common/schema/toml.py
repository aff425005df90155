"""TOML: one way to read a document by its keys, and one to write it.

A table of parsers, by key, defines what a document may hold. A parser takes the value in the file
and returns the value that the program uses, or raises an `InputError` without naming the key:
`read_table` puts the key before it, and refuses keys that have no parser.

    found = read_table(document, {"rows": whole(least=1), "purpose": text}, required=["rows"])
"""

from __future__ import annotations

import datetime as dt
import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from common.errors import InputError, located

Parser = Callable[[Any], Any]
_Word = TypeVar("_Word", bound=Enum)

MOST_KEY_PARTS = 32  # a.b.c has three
_MOST_SUGGESTED = 100  # characters of a word that a similar one is looked for
_KEY_PART = r"""(?:\.[ \t]*(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*)"""
_LONG_KEY = re.compile(f"{_KEY_PART}{{{MOST_KEY_PARTS}}}")


def parse_toml(document: str, *, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    if _LONG_KEY.search(document):  # tomllib takes the square of a key's parts, and more
        raise InputError(f"not valid TOML: a key has more than {MOST_KEY_PARTS} parts")
    try:
        return tomllib.loads(document, parse_float=parse_float)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}") from None
    except RecursionError:
        raise InputError("not valid: nested too deeply") from None
    except ValueError:
        raise InputError("not valid: a number has too many digits") from None


def text_of(path: Path) -> str:
    """Return the text of a file; InputError, naming it, if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start:,})") from None


def read_table(
    table: object, parsers: Mapping[str, Parser], *, inside: str = "", required: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the values of a table, parsed by key; InputError, naming the key, for other keys.

    `inside` is where the table is in its document, as errors name it: `budget`.
    """
    dotted = f"{inside}." if inside else ""
    if not isinstance(table, dict):
        raise InputError(f"{inside}: write a table, [{inside}]")
    refuse_unknown(table, parsers, dotted=dotted)
    for key in required:
        if key not in table:
            raise InputError(f"{dotted}{key} is missing. Set it")
    values = {}
    for key, value in table.items():
        with located(f"{dotted}{key}"):
            values[key] = parsers[key](value)
    return values


def refuse_unknown(table: Iterable[str], known: Collection[str], *, dotted: str = "") -> None:
    """Refuse the first key that is not known, with a similar key and all known keys."""
    for key in table:
        if key not in known:
            raise InputError(
                f"unknown key {dotted + key!r}{suggest(key, known)}; known: {', '.join(known)}"
            )


def suggest(word: object, known: Iterable[str]) -> str:
    """Return the most similar known word as a question in brackets; "" if none is similar."""
    if not isinstance(word, str) or len(word) > _MOST_SUGGESTED:
        return ""
    by_lower = {name.lower(): name for name in known}
    longer = [name for name in by_lower if len(word) > 2 and name.startswith(word.lower())]
    near = longer or difflib.get_close_matches(word.lower(), by_lower, n=1)
    return f" (did you mean {by_lower[near[0]]!r}?)" if near else ""


def anything(value: object) -> object:
    """Take any value; its reader checks it later."""
    return value


def a_table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"expected a table, got {value!r:.100}")
    return value


def text(value: object) -> str:
    if type(value) is not str:
        raise InputError(f"expected a text, got {value!r:.100}")
    return value


def whole(*, least: int) -> Callable[[object], int]:
    """Take a whole number from `least` on."""

    def parse(value: object) -> int:
        if type(value) is not int or value < least:
            raise InputError(f"expected a whole number of at least {least}, got {value!r:.100}")
        return value

    return parse


def yes_or_no(value: object) -> bool:
    if type(value) is not bool:
        raise InputError(f"expected true or false, without quotes, got {value!r:.100}")
    return value


def date(value: object) -> dt.date:
    if type(value) is not dt.date:
        raise InputError(f"expected a date like 2026-01-31, without quotes, got {value!r:.100}")
    return value


def texts(known: Collection[str] | None = None) -> Callable[[object], tuple[str, ...]]:
    """Take a list of texts: of any texts, or of at least one known text."""

    def parse(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise InputError(f"expected a list of texts, got {value!r:.100}")
        if known is not None:
            for word in value:
                one_of(known)(word)
            if not value:
                raise InputError(f"the list is empty. Name some of {', '.join(known)}")
        return tuple(value)

    return parse


def one_of(known: Collection[object]) -> Parser:
    def parse(value: object) -> object:
        if isinstance(value, bool) or value not in known:
            raise InputError(f"{value!r:.100} is not one of {', '.join(map(str, known))}")
        return value

    return parse


def member_of(kind: type[_Word]) -> Callable[[object], _Word]:
    def parse(value: object) -> _Word:
        return kind(one_of([word.value for word in kind])(value))

    return parse


def toml(value: Any) -> str:  # noqa: ANN401  (any TOML value)
    """Write a value so that TOML reads it back; a fraction is the text that parses exactly."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return toml(value.value)
    if isinstance(value, str | Fraction):
        # JSON's escapes are TOML's, except that TOML also wants DEL escaped.
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dt.date):  # datetimes are dates
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{value} cannot be written")
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml(key)} = {toml(item)}' for key, item in value.items())} }}"
    return repr(value)


def toml_lines(entries: Mapping[str, object], *, header: str = "") -> list[str]:
    """Return the lines of a table; `header` is its line in brackets."""
    return [*([header] if header else []), *(f"{key} = {toml(it)}" for key, it in entries.items())]
