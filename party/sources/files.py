"""CSV and Parquet files, streamed: by blocks of text, or by row groups.

The rules of reading are those of `common.schema.tables`: UTF-8, a header, an empty cell is a
missing value, and nothing else is guessed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from common.errors import InputError
from common.schema import Schema
from common.schema import tables as rules

_BLOCK_BYTES = 1 << 22
_BATCH_ROWS = 1 << 17


class _File:
    """What all files have: a path, a date and a mark."""

    def __init__(self, path: Path, as_of: dt.date | None) -> None:
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        self._path = path
        self._as_of = as_of

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self._path)

    @property
    def as_of(self) -> dt.date | None:
        """The date given, or else the day the file was written (UTC)."""
        if self._as_of is not None:
            return self._as_of
        return dt.datetime.fromtimestamp(self._path.stat().st_mtime, dt.UTC).date()

    def mark(self) -> str | None:
        """Inode, size and times; the time of the inode's own change cannot be set by hand."""
        try:
            status = self._path.stat()
        except OSError:
            return "gone"
        return (
            f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} "
            f"{status.st_ctime_ns}"
        )


class CsvReader(_File):
    """A CSV file, a block of text at a time.

    Args:
        path: `.gz` is decompressed.
        schema: the columns to expect, and the types to try.
        delimiter: between cells.
        as_of: the date the data is of, if not the day the file was written.
    """

    def __init__(
        self, path: Path, schema: Schema, *, delimiter: str = ",", as_of: dt.date | None = None
    ) -> None:
        super().__init__(path, as_of)
        self._delimiter = delimiter
        self._width = len(rules.header(path, schema, delimiter))
        if rules.odd_quotes(path):
            rules.diagnose(path, delimiter, self._width)
        self._types = {a.name: rules.arrow_type(a) for a in schema.attributes}

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The named columns; see `TableReader`."""
        try:
            reader = pyarrow.csv.open_csv(
                self._path,
                read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK_BYTES),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=list(names),
                    column_types={name: self._types[name] for name in names},
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                ),
            )
            with reader:
                yield from reader
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error}") from None

    def read_as_text(self) -> bool:
        """Read every cell as text, so that the encoder can say which one does not fit."""
        text = dict.fromkeys(self._types, rules.TEXT)
        changed = text != self._types
        self._types = text
        return changed

    def explain(self, error: pa.ArrowInvalid) -> InputError:
        """What is wrong with the file; a ragged row or a foreign encoding is named."""
        try:
            rules.diagnose(self._path, self._delimiter, self._width)
        except InputError as diagnosis:
            return diagnosis
        return InputError(f"{self._path}: not a readable CSV file: {error}")

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        """The lines an editor shows."""
        return rules.line_numbers(self._path, self._delimiter, positions)


class ParquetReader(_File):
    """A Parquet file, a part of a row group at a time."""

    def __init__(self, path: Path, schema: Schema, *, as_of: dt.date | None = None) -> None:
        super().__init__(path, as_of)
        try:
            names = pyarrow.parquet.read_schema(path).names
        except (pa.ArrowInvalid, OSError) as error:
            raise self._unreadable(error) from None
        schema.check_columns(names, where=str(path))

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The named columns; see `TableReader`."""
        try:
            with pyarrow.parquet.ParquetFile(self._path) as file:
                yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=list(names))
        except OSError as error:
            raise self._unreadable(error) from None

    def read_as_text(self) -> bool:
        """A Parquet file knows its own types."""
        return False

    def explain(self, error: pa.ArrowInvalid) -> InputError:
        """A Parquet file is readable or it is not."""
        return self._unreadable(error)

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        """Rows count from 1."""
        return [position + 1 for position in positions]

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"{self._path}: not a readable Parquet file: {error}")
