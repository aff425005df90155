"""What to tell an owner whose table holds cells that the schema refuses.

The messages show cells of the table: they are for the owner's own terminal, and never leave it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from common.errors import InputError
from common.schema.attribute import Attribute, Listed
from common.schema.binning import Binning
from common.schema.columns import Mask
from common.schema.words import number

RowNumbers = Callable[[Sequence[int]], Sequence[int]]

SHOWN = 5  # offending cells named in an error
_ZONE = re.compile(r":[0-9.]+(?:Z|[+-][0-9]{2}:?[0-9]{2})'?$")


@dataclass(frozen=True, slots=True)
class NumbersFrom:
    """The row numbers of positions in a piece of a table that `before` rows precede."""

    before: int
    row_numbers: RowNumbers

    def __call__(self, positions: Sequence[int]) -> Sequence[int]:
        return self.row_numbers([self.before + position for position in positions])


def empty_cells(
    attribute: Attribute, array: pa.Array, mask: Mask, row_numbers: RowNumbers
) -> InputError:
    """The refusal of empty cells."""
    first = np.flatnonzero(mask)[:SHOWN].tolist()
    rows = ", ".join(f"{number:,}" for number in row_numbers(first))
    return InputError(
        f"{_cells(mask)} empty (row {rows}{_more(mask)}); "
        "fill them, or allow them with missing = true in the schema"
    )


def outside_cells(
    attribute: Attribute, array: pa.Array, mask: Mask, row_numbers: RowNumbers
) -> InputError:
    """The refusal of cells outside the domain."""
    first = np.flatnonzero(mask)[:SHOWN].tolist()
    shown = [_shown(attribute, array[position]) for position in first]
    cells = [f"row {row:,}: {cell}" for cell, row in zip(shown, row_numbers(first), strict=True)]
    if attribute.kind in ("date", "datetime") and any(map(_ZONE.search, shown)):
        return InputError(
            f"{_cells(mask)} of a time zone: {'; '.join(cells)}{_more(mask)}. The schema's dates "
            "have none: convert the column to the agreed zone, then drop the zone"
        )
    if isinstance(attribute.domain, Binning):
        remedy = "other = true (a category of its own) or clip = true (the nearest end)"
    else:
        remedy = "other = true (a category of its own)"
    return InputError(
        f"{_cells(mask)} outside the domain {describe(attribute)}: {'; '.join(cells)}"
        f"{_more(mask)}. Correct them, or allow them in the schema with {remedy}"
    )


def describe(attribute: Attribute) -> str:
    """The domain in a few words."""
    if isinstance(attribute.domain, Binning):
        low, high = attribute.labels[0], attribute.labels[attribute.value_count - 1]
        if attribute.kind == "real":
            return f"{attribute.domain.low}..{attribute.domain.high}"
        return f"{low.partition('..')[0]}..{high.rpartition('..')[2]} ({attribute.kind})"
    listed = ", ".join(map(_as_text, attribute.labels[: min(8, attribute.value_count)]))
    count = attribute.value_count
    return f"{listed}, ... ({count:,} values)" if count > 8 else listed


def _as_text(value: str) -> str:
    """A value as it is; in quotation marks where it could be taken for something else."""
    return (
        value
        if value.isprintable() and "," not in value and value.strip() == value
        else repr(value)
    )


def _shown(attribute: Attribute, cell: pa.Scalar) -> str:
    """A cell of any type; numbers are shown without quotation marks, wherever they are from."""
    try:
        value = cell.as_py()
    except (UnicodeDecodeError, ValueError, OverflowError):  # not UTF-8; a moment beyond the years
        value = cell.as_buffer().to_pybytes() if hasattr(cell, "as_buffer") else cell.value
    textual = isinstance(attribute.domain, Listed) and attribute.domain.textual
    if isinstance(value, dt.date):
        return str(value)
    if (
        isinstance(value, str)
        and not textual
        and number(value.encode(errors="replace")) is not None
    ):
        return value.strip()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _cells(mask: Mask) -> str:
    count = int(mask.sum())
    return f"{count:,} cells are" if count > 1 else "1 cell is"


def _more(mask: Mask) -> str:
    return ", ..." if int(mask.sum()) > SHOWN else ""
