"""Workbooks of Excel and files of SPSS, Stata and SAS: every cell by itself, as its text.

Two libraries read them, both optional (`pip install 'parley[formats]'`): openpyxl and pyreadstat.
Neither is asked for the type of a column: what a cell holds follows from the cell and from what the
file declares of its column (a date format, codes for missing values), never from other cells.

* A workbook's first sheet is read, or the one named. Its first row is the header. A row without a
  single cell is skipped. Of a formula, what Excel computed last is read.
* Dates of SPSS, Stata and SAS are numbers with a date format; they are read as dates. Values that
  the file declares as missing are empty cells.
* A number that has a value label is read as its label where the schema lists that label; see
  `labelled`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from common.errors import InputError
from common.schema.attribute import Attribute, Listed
from common.schema.words import member_of, number

KINDS = {
    ".xlsx": "excel", ".xlsm": "excel", ".sav": "spss", ".zsav": "spss", ".dta": "stata",
    ".sas7bdat": "sas", ".xpt": "sas",
}  # fmt: skip
_BLOCK_ROWS = 1 << 14
_DAY_S = 86_400
_EPOCHS = {"spss": dt.datetime(1582, 10, 14), "stata": dt.datetime(1960, 1, 1),
           "sas": dt.datetime(1960, 1, 1)}  # fmt: skip
# Per kind: which formats are moments, and how many of their units make a second or a day.
_MOMENTS = (
    ("spss", re.compile(r"(?i)(A|E|J|S)?DATE\d|QYR|MOYR|WKYR"), 1.0, True),
    ("spss", re.compile(r"(?i)DATETIME|YMDHMS"), 1.0, False),
    ("stata", re.compile(r"%-?(td|d)"), 1.0 / _DAY_S, True),
    ("stata", re.compile(r"%-?t[cC]"), 1000.0, False),
    ("sas", re.compile(r"(?i)(E8601|B8601|NL)?(DATETIME|DT)|DATEAMPM"), 1.0, False),
    ("sas", re.compile(r"(?i)DATE|DAY|(DDMM|MMDD)YY|YYMMDD|(E8601|B8601)DA|(WEEK|WORD|JUL)DA"),
     1.0 / _DAY_S, True),
)  # fmt: skip

Labels = Mapping[str, Mapping[bytes, str]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a file."""

    names: tuple[str, ...]
    labels: Labels  # of each column, by the text of a value


def layout_of(path: Path, sheet: str = "") -> Layout:
    """Return the columns of a file; no cell is read."""
    if KINDS[path.suffix.lower()] == "excel":
        return Layout(_header(path, sheet), {})
    metadata = _statistics(path, metadataonly=True)[1]
    labels = {
        name: {word: str(label) for value, label in held.items() if (word := member_of(value))}
        for name, held in metadata.variable_value_labels.items()
    }
    return Layout(tuple(metadata.column_names), labels)


def blocks(path: Path, names: Sequence[str], sheet: str = "") -> Iterator[list[list[Any]]]:
    """Yield the cells of these columns as Python objects, some rows at a time."""
    if KINDS[path.suffix.lower()] == "excel":
        return _sheet_blocks(path, names, sheet)
    return _statistics_blocks(path, names)


def texts(cells: Sequence[Any], labels: Mapping[bytes, str] | None = None) -> pa.Array:
    """Return cells as texts; null for an empty one."""
    words = [member_of(cell) or None for cell in cells]
    if labels:
        words = [None if w is None else labels[w].encode() if w in labels else w for w in words]
    return pa.array(words, type=pa.binary()).view(pa.string())


def labelled(attribute: Attribute, labels: Mapping[bytes, str]) -> dict[bytes, str]:
    """Return the values that are read as their labels: not listed, but their label is."""
    domain = attribute.domain
    if not isinstance(domain, Listed) or not attribute.textual:
        return {}
    listed = {str(value) for value in domain.values}
    return {
        word: label
        for word, label in labels.items()
        if label in listed and word.decode() not in listed and number(word) not in domain.by_number
    }


def _header(path: Path, sheet: str) -> tuple[str, ...]:
    cells = next(_rows(path, sheet), ())
    while cells and cells[-1] is None:
        cells = cells[:-1]
    words = [member_of(cell) for cell in cells]
    if not words:
        raise InputError(f"{path}: the sheet is empty. Write the names of the columns in row 1")
    for place, word in enumerate(words, start=1):
        if not word:
            raise InputError(f"{path}: column {place} has no name. Write one in the first row")
    names = tuple(word.decode(errors="replace") for word in words if word)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: duplicate column {twice[0]!r} in the header")
    return names


def _sheet_blocks(path: Path, names: Sequence[str], sheet: str) -> Iterator[list[list[Any]]]:
    rows = _rows(path, sheet)
    header = [member_of(cell) for cell in next(rows, ())]
    places = [header.index(name.encode()) for name in names]
    block: list[list[Any]] = [[] for _ in names]
    for row in rows:
        for column, place in zip(block, places, strict=True):
            column.append(row[place] if place < len(row) else None)
        if block and len(block[0]) >= _BLOCK_ROWS:
            yield block
            block = [[] for _ in names]
    if block and block[0]:
        yield block


def _rows(path: Path, sheet: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a sheet that have a cell."""
    openpyxl = _library("openpyxl", path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from None
    try:
        if sheet and sheet not in book.sheetnames:
            raise InputError(
                f"{path}: no sheet is called {sheet!r}. Its sheets: {', '.join(book.sheetnames)}"
            )
        held = book[sheet] if sheet else book.worksheets[0]
        held.reset_dimensions()  # what a file says of its size may be wrong
        for row in held.iter_rows(values_only=True):
            if any(cell is not None and cell != "" for cell in row):
                yield row
    except (OSError, ValueError, KeyError, IndexError, SyntaxError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from None
    finally:
        book.close()


def _statistics_blocks(path: Path, names: Sequence[str]) -> Iterator[list[list[Any]]]:
    metadata = _statistics(path, metadataonly=True)[1]
    kind = KINDS[path.suffix.lower()]
    moments = [_moment(kind, metadata.original_variable_types.get(name)) for name in names]
    before = 0
    while True:
        data, _ = _statistics(
            path, usecols=list(names), row_offset=before, row_limit=_BLOCK_ROWS,
            output_format="dict", disable_datetime_conversion=True,
        )  # fmt: skip
        block = [list(data[name]) for name in names] if data else []
        rows = len(block[0]) if block else 0
        if rows == 0:
            return
        yield [
            cells if convert is None else [convert(cell) for cell in cells]
            for cells, convert in zip(block, moments, strict=True)
        ]
        before += rows
        if rows < _BLOCK_ROWS:
            return


def _statistics(path: Path, **options: Any) -> Any:  # noqa: ANN401  (a library without types)
    pyreadstat = _library("pyreadstat", path)
    read = {
        ".sav": pyreadstat.read_sav, ".zsav": pyreadstat.read_sav, ".dta": pyreadstat.read_dta,
        ".sas7bdat": pyreadstat.read_sas7bdat, ".xpt": pyreadstat.read_xport,
    }[path.suffix.lower()]  # fmt: skip
    refusals: tuple[type[Exception], ...] = (
        OSError, ValueError, pyreadstat.PyreadstatError,
        pyreadstat._readstat_parser.ReadstatError,  # of the C library under it
    )  # fmt: skip
    try:
        return read(str(path), **options)
    except refusals as error:
        raise _unreadable(path, error) from None


def _moment(kind: str, format_name: str | None) -> Callable[[Any], Any] | None:
    """Return what makes a moment of a number in a column of this format; None for other formats."""
    for of, pattern, per_second, by_day in _MOMENTS:
        if of == kind and format_name and pattern.match(format_name):
            return lambda cell: _moment_of(cell, _EPOCHS[kind], per_second, by_day=by_day)
    return None


def _moment_of(cell: Any, epoch: dt.datetime, per_second: float, *, by_day: bool) -> Any:  # noqa: ANN401
    """Return a date or a time; the cell unchanged if it is none, or beyond the years."""
    if not isinstance(cell, int | float) or not math.isfinite(cell):
        return cell
    try:
        found = epoch + dt.timedelta(seconds=math.floor(cell / per_second))
    except OverflowError:
        return cell
    return found.date() if by_day else found


def _library(name: str, path: Path) -> Any:  # noqa: ANN401
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"{path}: reading such a file needs {name}. Run: pip install 'parley[formats]'"
        ) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: cannot be read: {error}. Check that the file is whole")
