"""Workbooks of Excel and files of SPSS, Stata and SAS: every cell by itself, as its text.

Two libraries read them, both optional (`pip install 'parley[formats]'`): openpyxl and pyreadstat.
Neither is asked for the type of a column: what a cell holds follows from the cell and from what the
file declares of its column (a date format, codes for missing values), never from other cells.

* A workbook's first sheet is read, or the one named. Its first row with a filled cell is the
  header. Every row after it, to the last one that the sheet has, is a row of the table, whether its
  cells are filled or not. Of a formula, what Excel computed last is read. A cell that is not what
  its type says (a number `abc`, a date in month 13) is its text as it stands in the file.
* A text of SPSS, Stata and SAS is in the encoding that the file declares (Stata from release 14 on
  and SAS transport files: UTF-8, older Stata: Windows-1252). A text that is not in that encoding is
  read as Latin-1, in which every byte is a character.
* Dates of SPSS, Stata and SAS are numbers with a date format; they are read as dates. Values that
  the file declares as missing are empty cells.
* A number that has a value label is read as its label where the schema lists that label; see
  `labelled`.
"""

from __future__ import annotations

import codecs
import datetime as dt
import itertools
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
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
_MOST_SHEET_ROWS = 1 << 20
_DAY_S = 86_400
_EVERY_BYTE = "LATIN1"  # the encoding in which every byte is a character
_STATA_HEADER = b"<stata_dta><header><release>"
_WORKBOOK_DEFECTS = (
    OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, SyntaxError, EOFError,
    NotImplementedError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
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
    metadata, text = _metadata(path)
    labels = {
        text(name): {
            word: str(text(label))
            for value, label in labels_of_column.items()
            if (word := member_of(text(value)))
        }
        for name, labels_of_column in metadata.variable_value_labels.items()
    }
    return Layout(tuple(map(text, metadata.column_names)), labels)


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
    while cells and cells[-1] in (None, ""):
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


def _rows(path: Path, sheet: str) -> Iterator[Sequence[Any]]:
    """Yield the rows of a sheet from the first with a filled cell on, blank ones included."""
    openpyxl = _library("openpyxl", path)
    try:
        with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
            if sheet and sheet not in book.sheetnames:
                sheets = ", ".join(book.sheetnames)
                raise InputError(f"{path}: no sheet is called {sheet!r}. Its sheets: {sheets}")
            rows = _numbered_rows(book[sheet] if sheet else book.worksheets[0])
            rows = itertools.dropwhile(lambda row: not _filled(row[1]), rows)
            following = None
            for row_number, row in rows:
                yield from itertools.repeat((), max(row_number - (following or row_number), 0))
                yield row
                following = row_number + 1
    except _WORKBOOK_DEFECTS as error:
        raise _unreadable(path, error) from None


def _numbered_rows(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:  # noqa: ANN401
    """Yield the number and the cells of every row that the sheet's file has."""
    from openpyxl.worksheet._reader import WorkSheetParser

    book = sheet.parent
    with sheet._get_source() as source:
        parser = WorkSheetParser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        parser.parse_cell = partial(_cell_or_its_text, parser, parser.parse_cell)
        for row_number, cells in parser.parse():
            if row_number > _MOST_SHEET_ROWS:
                raise ValueError(f"row {row_number:,} is beyond the last row of a sheet")
            by_column = {cell["column"]: cell["value"] for cell in cells}
            yield row_number, [by_column.get(at) for at in range(1, max(by_column, default=0) + 1)]


def _cell_or_its_text(parser: Any, parse: Callable[[Any], Any], element: Any) -> Any:  # noqa: ANN401
    """Parse a cell; give the text that stands in it where it is not what its type says."""
    try:
        return parse(element)
    except (ValueError, IndexError, OverflowError, TypeError):
        column = parser.col_counter  # set before the value of a cell is looked at
        return {"column": column, "value": element.findtext("{*}v")}


def _filled(row: Sequence[Any]) -> bool:
    return any(cell is not None and cell != "" for cell in row)


def _statistics_blocks(path: Path, names: Sequence[str]) -> Iterator[list[list[Any]]]:
    metadata, text = _metadata(path)
    kind = KINDS[path.suffix.lower()]
    in_file = {text(name): name for name in metadata.column_names}
    columns = [in_file[name] for name in names]
    formats = [metadata.original_variable_types.get(column) for column in columns]
    readings = [_moment(kind, format_name) or text for format_name in formats]
    before = 0
    while True:
        data, _ = _statistics(
            path, usecols=columns, row_offset=before, row_limit=_BLOCK_ROWS,
            output_format="dict", disable_datetime_conversion=True, encoding=_EVERY_BYTE,
        )  # fmt: skip
        block = [list(data[column]) for column in columns] if data else []
        rows = len(block[0]) if block else 0
        if rows == 0:
            return
        yield [
            [reading(cell) for cell in cells]
            for cells, reading in zip(block, readings, strict=True)
        ]
        before += rows
        if rows < _BLOCK_ROWS:
            return


def _metadata(path: Path) -> tuple[Any, Callable[[Any], Any]]:
    """Return what a file says of its columns, and what decodes its texts.

    Texts are fetched with one character a byte, so that none stops the library.
    """
    metadata = _statistics(path, metadataonly=True, encoding=_EVERY_BYTE)[1]
    return metadata, partial(_decoded, encoding=_declared_encoding(path))


def _declared_encoding(path: Path) -> str:
    if KINDS[path.suffix.lower()] == "stata":
        with path.open("rb") as file:
            start = file.read(len(_STATA_HEADER) + 3)
        if not start.startswith(_STATA_HEADER):
            return "cp1252"  # before release 13, the first byte is the version
        return "cp1252" if start.endswith(b"117") else "utf-8"
    try:
        declared = _statistics(path, metadataonly=True)[1].file_encoding or "utf-8"
        return codecs.lookup(declared).name
    except (InputError, LookupError):  # of a name of a column, or an encoding of another program
        return "utf-8"


def _decoded(cell: Any, *, encoding: str) -> Any:  # noqa: ANN401
    """Return the text of a cell that was read with one character a byte; other cells unchanged."""
    if not isinstance(cell, str) or cell.isascii():
        return cell
    try:
        return cell.encode("latin-1").decode(encoding)
    except UnicodeError:
        return cell


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
        time = epoch + dt.timedelta(seconds=math.floor(cell / per_second))
    except OverflowError:
        return cell
    return time.date() if by_day else time


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
