"""Reading the settings of a method: the table of study.toml that has the method's name.

Every method that has settings names a parser for each (see `common.schema.toml`) and puts what is
read into a frozen dataclass of its own, so that a new method with new settings is one file. Values
are texts and whole numbers; they are in the study's canonical bytes as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from common.errors import InputError
from common.privacy.budget import parse_epsilon
from common.schema.toml import Parser, read_table
from common.study.document import Study


def read_settings(
    study: Study, parsers: Mapping[str, Parser], *, required: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the settings that a study has; InputError names the key and what would do."""
    if study.settings and not parsers:
        raise InputError(f"[{study.method}]: the method has no settings. Leave the table out")
    return read_table(dict(study.settings), parsers, inside=study.method, required=required)


def between(least: int, most: int) -> Parser:
    """Take a whole number between two others, both included."""

    def parse(value: object) -> int:
        if type(value) is not int or not least <= value <= most:
            raise InputError(f"expected a whole number from {least} to {most}, got {value!r:.100}")
        return value

    return parse


def above_zero(value: str | int) -> Fraction:
    """Take a number above zero, written as a text or a whole number."""
    try:
        return parse_epsilon(value)
    except InputError:
        raise InputError(f"expected a number above 0, got {value!r:.100}") from None


def parts(count: int) -> Parser:
    """Take so many numbers above zero with colons between them, such as "1:1:2:4"."""

    def parse(value: object) -> tuple[Fraction, ...]:
        written = str(value).split(":")
        if len(written) != count:
            raise InputError(f"{value!r:.100} has {len(written)} parts, not {count}")
        return tuple(above_zero(part.strip()) for part in written)

    return parse
