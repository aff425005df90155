"""Text that a spreadsheet would run as a formula, and a copy of a table without any.

The proposer of a study chooses its values, and a spreadsheet that opens a CSV file takes a cell
that begins with one of a few characters for a formula. Numbers, negative ones too, are no formulas.
The release keeps the values as they are; a copy for a spreadsheet has an apostrophe before each.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from common.errors import InputError
from common.files import whole_file
from common.release import folder as release
from common.release.contents import open_release
from common.schema.attribute import Listed
from common.schema.schema import Schema

_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_NAMED = 3
_MOST_CHARACTERS = 40


def check_copy(where: Path, *, target: Path) -> None:
    """Refuse a place where the copy must not go; call it before the release is checked."""
    release.check_new(target)
    if where.absolute() in target.absolute().parents:
        raise InputError(f"{target}: a release has only its own files. Name another place")


def write_safe_copy(where: Path, *, target: Path) -> None:
    """Write the table of a verified release once more, with formulas as text.

    A Parquet table is refused: there every cell has a type.
    """
    name = release.table_name("csv")
    with open_release(where) as contents:
        if name not in contents.sizes():
            raise InputError(
                f"{where}: has no {name}. A Parquet file needs no copy: every cell has a type"
            )
        if release.event_tables(contents.sizes()):
            raise InputError(
                f"{where}: has two tables, and a copy would have one. Copy it as it is"
            )
        with contents.open(name) as source, whole_file(target) as scratch:
            rows = csv.reader(io.TextIOWrapper(source, encoding="utf-8", newline=""))
            with scratch.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(map(harmless, row) for row in rows)


def is_formula(cell: str) -> bool:
    return cell.startswith(_BEGINNINGS) and _NUMBER.fullmatch(cell) is None


def harmless(cell: str) -> str:
    """Return the cell as text that no spreadsheet runs."""
    return f"'{cell}" if is_formula(cell) else cell


def formula_warning(schema: Schema) -> str | None:
    """Warn people who may open a table of this schema in a spreadsheet, if it has formulas."""
    formulas = [text for text in _texts(schema) if is_formula(text)]
    if not formulas:
        return None
    named = ", ".join(repr(text[:_MOST_CHARACTERS]) for text in formulas[:_MOST_NAMED])
    more = ", ..." if len(formulas) > _MOST_NAMED else ""
    return (
        f"Formulas: a spreadsheet would run {len(formulas):,} of the names and values that the "
        f"schema lists ({named}{more}). Do not open synthetic.csv in one; `parley verify RELEASE "
        "--safe-for-spreadsheets FILE` writes a copy in which they are text."
    )


def _texts(schema: Schema) -> Iterator[str]:
    for attribute in schema.attributes:
        yield attribute.name
        if isinstance(attribute.domain, Listed):
            yield from (value for value in attribute.domain.values if isinstance(value, str))
