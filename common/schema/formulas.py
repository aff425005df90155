"""Text that a spreadsheet would run as a formula: the values and names that a schema lists.

The proposer of a study chooses its values, and a spreadsheet that opens a CSV file takes a cell
that begins with one of a few characters for a formula. Numbers, negative ones too, are no formulas.
The release keeps the values as they are; a copy for a spreadsheet has an apostrophe before each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from common.schema.attribute import Listed
from common.schema.schema import Schema

_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_NAMED = 3
_MOST_LETTERS = 40


def is_formula(cell: str) -> bool:
    return cell.startswith(_BEGINNINGS) and _NUMBER.fullmatch(cell) is None


def harmless(cell: str) -> str:
    """The cell as text that no spreadsheet runs."""
    return f"'{cell}" if is_formula(cell) else cell


def formula_warning(schema: Schema) -> str | None:
    """What to tell people who may open a table of this schema in a spreadsheet; None if nothing."""
    found = [text for text in _texts(schema) if is_formula(text)]
    if not found:
        return None
    named = ", ".join(repr(text[:_MOST_LETTERS]) for text in found[:_MOST_NAMED])
    more = ", ..." if len(found) > _MOST_NAMED else ""
    return (
        f"Formulas: a spreadsheet would run {len(found):,} of the names and values that the schema "
        f"lists ({named}{more}). Do not open synthetic.csv in one; `parley verify RELEASE "
        "--safe-for-spreadsheets FILE` writes a copy in which they are text."
    )


def _texts(schema: Schema) -> Iterator[str]:
    for attribute in schema.attributes:
        yield attribute.name
        if isinstance(attribute.domain, Listed):
            yield from (value for value in attribute.domain.values if isinstance(value, str))
