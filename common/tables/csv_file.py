"""CSV files: how they are cut into cells, and what is wrong with them.

A CSV file is UTF-8, has a header, and marks a missing value by an empty cell ("NA" is a value like
any other). Only the delimiter is guessed, from the header, where none is given.

The rows of a CSV file are its lines. A cell that begins with a quotation mark ends at the mark that
closes it, and may hold delimiters and line breaks; a mark inside of a cell that does not begin with
one is a character like any other. An empty line is no row, except in a file of one column: there it
is a row whose cell is empty. So a row that is replaced by another one, written by the same rules,
changes no other row.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from common.errors import InputError
from common.schema.attribute import Listed
from common.schema.encoder import SHOWN
from common.schema.schema import Schema
from common.wording import many

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
TEXT = pa.string()
REPEATED_TEXT = pa.dictionary(pa.int32(), pa.string())
csv.field_size_limit(1 << 30)  # a long cell is a cell


def text_types(schema: Schema) -> dict[str, pa.DataType]:
    """Return a type of text for every attribute, in the layout that is encoded fastest."""
    return {
        attribute.name: REPEATED_TEXT if isinstance(attribute.domain, Listed) else TEXT
        for attribute in schema.attributes
    }


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file whose header was read: how it is cut into cells, and what is wrong with it."""

    path: Path
    delimiter: str
    names: list[str]

    @classmethod
    def open(cls, path: Path, schema: Schema | None, delimiter: str | None) -> CsvFile:
        """Read the header; refuse a wrong delimiter, repeated names and missing columns."""
        one_column = schema is not None and len(schema.names) == 1
        delimiter = delimiter or _delimiter_in(path, one_column=one_column)
        names = _first_record(path, delimiter)
        if not names:
            raise InputError(f"{path}: the file is empty. Write a header line first")
        if len(names) == 1 and not one_column:
            _check_delimiter(path, names[0], delimiter, schema)
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise InputError(f"{path}: duplicate column {repeated[0]!r} in the header")
        if schema is not None:
            schema.check_columns(names, where=str(path))
        return cls(path, delimiter, names)

    def read(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        return pyarrow.csv.read_csv(self.path, **self.options(columns, types))

    def options(
        self,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType],
        *,
        check_utf8: bool = True,
        block_size: int | None = None,
    ) -> dict[str, Any]:
        # Arrow skips empty lines before the header only where it skips all others.
        line, _ = next(_bytes_in_records(self.path, self.delimiter), (1, []))
        skipped = line - 1 if len(self.names) == 1 else 0
        return {
            "read_options": pyarrow.csv.ReadOptions(skip_rows=skipped, block_size=block_size),
            "parse_options": parse_options(self.delimiter, self.names),
            "convert_options": convert_options(columns, types, check_utf8=check_utf8),
        }

    def rows_of_bytes(self) -> Iterator[list[str]]:
        """Yield the rows, slowly, one character a byte, UTF-8 or not.

        They are cut as Arrow cuts them, but need not be equally long, nor short.
        """
        records = _bytes_in_records(self.path, self.delimiter)
        next(records)
        for _, record in records:
            yield record

    def line_numbers(self, positions: Sequence[int]) -> list[int]:
        """Return the lines at which rows begin, counted from 1, by the rows' positions."""
        sought, lines = set(positions), {}
        try:
            # Position -1 is the header.
            for position, (line, _) in enumerate(_records(self.path, self.delimiter), start=-1):
                if position in sought:
                    lines[position] = line
                if len(lines) == len(sought):
                    break
        except (csv.Error, UnicodeDecodeError):
            pass  # a file that only Arrow understands: count records instead of lines
        return [lines.get(position, position + 2) for position in positions]

    def diagnose(self) -> None:
        """Raise what is wrong with the file, if anything is."""
        path, width = self.path, len(self.names)
        ragged: list[str] = []
        line = 0
        try:
            for line, record in _records(path, self.delimiter):
                if len(record) != width:
                    ragged.append(f"row {line:,} has {len(record)}")
                if len(ragged) > SHOWN:
                    break
        except UnicodeDecodeError:
            raise _not_utf8(path) from None
        except csv.Error as error:
            raise InputError(
                f"{path}: after row {line:,}: {error}. Close every quotation mark"
            ) from None
        if ragged:
            more = "; ..." if len(ragged) > SHOWN else ""
            raise InputError(
                f"{path}: the header has {many(width, 'column')}, but "
                f"{'; '.join(ragged[:SHOWN])}{more}. Put a cell that contains the delimiter in "
                "quotation marks"
            )

    def has_odd_quotes(self) -> bool:
        """Tell whether a quotation mark has no partner: Arrow would swallow what follows."""
        with pa.input_stream(str(self.path)) as stream:
            blocks = iter(lambda: stream.read(1 << 20), b"")
            marks = sum(int(block.count(b'"')) for block in blocks)
        return marks % 2 == 1

    def ends_in_quotes(self) -> bool:
        """Tell whether the file ends inside of a cell, whose quotation mark is never closed."""
        mark = "the end"
        with pa.input_stream(str(self.path)) as stream:
            lines = itertools.chain(_lines(stream), ["\n", mark])
            records = csv.reader(lines, delimiter=self.delimiter)
            (last,) = deque(records, maxlen=1)
        return bool(last != mark.split(self.delimiter))


def parse_options(delimiter: str, names: Sequence[str]) -> pyarrow.csv.ParseOptions:
    """Return how a file of these columns is cut into cells."""
    return pyarrow.csv.ParseOptions(
        delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1
    )


def convert_options(
    columns: Sequence[str], types: Mapping[str, pa.DataType], *, check_utf8: bool = True
) -> pyarrow.csv.ConvertOptions:
    """Return the columns to read (all by default) and their types; an empty cell is null."""
    return pyarrow.csv.ConvertOptions(
        include_columns=list(columns),
        column_types={name: kind for name, kind in types.items() if not columns or name in columns},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        check_utf8=check_utf8,
    )


def _delimiter_in(path: Path, *, one_column: bool) -> str:
    """Return a comma, unless the header has another usual delimiter only; a tab for .tsv."""
    if ".tsv" in path.suffixes:
        return "\t"
    names = _first_record(path, ",")
    if len(names) == 1 and not one_column:
        return max(_DELIMITERS, key=names[0].count)  # the first one, a comma, if there is none
    return ","


def _check_delimiter(path: Path, header: str, delimiter: str, schema: Schema | None) -> None:
    """Refuse a header of a single column that another delimiter would cut."""
    single = f"{path}: the header is a single column, {header[:60]!r}"
    for other, word in _DELIMITERS.items():
        if other in header and other != delimiter:
            character = _DELIMITERS.get(delimiter, delimiter)
            raise InputError(f"{single}. The delimiter seems to be a {word}, not a {character}")
    if schema is not None and all(name in header for name in schema.names):
        raise InputError(f"{single}. Name the character between its cells with delimiter=...")


def _first_record(path: Path, delimiter: str) -> list[str]:
    try:
        _, names = next(_records(path, delimiter), (1, list[str]()))
        return names
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except csv.Error as error:
        raise InputError(f"{path}: the header cannot be read: {error}") from None


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV file with the line each starts on, slowly: for errors."""
    for line, record in _bytes_in_records(path, delimiter, strict=True):
        yield line, [cell.encode("latin-1").decode("utf-8") for cell in record]


def _bytes_in_records(
    path: Path, delimiter: str, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield all records, one character a byte, with the line each starts on."""
    with pa.input_stream(str(path)) as stream:
        reader = csv.reader(_lines(stream), delimiter=delimiter, strict=strict)
        line, width = 1, 0
        for record in reader:
            if record or width == 1:  # else an empty line, which is no record
                yield line, record or [""]
                width = width or len(record)
            line = reader.line_num + 1


def _lines(stream: pa.NativeFile) -> Iterator[str]:
    """Yield the lines, one character a byte, without a byte order mark."""
    lines = io.TextIOWrapper(stream, encoding="latin-1", newline="")
    for line in itertools.islice(lines, 1):
        yield line.removeprefix("\xef\xbb\xbf")
    yield from lines


def _not_utf8(path: Path) -> InputError:
    """Return the error for a file in another encoding, with the first row that has it."""
    with pa.input_stream(str(path)) as stream:
        for number, line in enumerate(io.BufferedReader(stream), start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return InputError(
                    f"{path}: not UTF-8 text: row {number:,} has the byte 0x{byte:02x}. "
                    "Save the file as UTF-8"
                )
    return InputError(f"{path}: not UTF-8 text. Save the file as UTF-8")
