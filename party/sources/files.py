"""CSV and Parquet files: streamed by blocks of text, or read by row groups on every core.

The rules of reading are those of `common.schema.tables`: UTF-8, a header, an empty cell is a
missing value, and nothing else is guessed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from common.errors import InputError
from common.schema import Schema
from common.schema import tables as rules
from common.schema.columns import is_text
from party.sources.parts import Columns, Part, parts_of_stream

_BLOCK_BYTES = 1 << 22
_PART_ROWS = 1 << 19  # small row groups are read several at a time: opening a file takes time
_BATCH_ROWS = 1 << 16  # values of a column that are decoded and encoded before they leave the cache
_NOTHING = pa.nulls(0)


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

    def grouping(self) -> None:
        """A file cannot count."""
        return

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
        delimiter: between cells; None for the one that the header has.
        as_of: the date the data is of, if not the day the file was written.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        *,
        delimiter: str | None = None,
        as_of: dt.date | None = None,
    ) -> None:
        super().__init__(path, as_of)
        self._delimiter = delimiter or rules.delimiter_in(path, schema)
        self._width = len(rules.header(path, schema, self._delimiter))
        if rules.odd_quotes(path):
            rules.diagnose(path, self._delimiter, self._width)
        self._types = {a.name: rules.arrow_type(a) for a in schema.attributes}

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        """The named columns; see `TableReader`."""
        return parts_of_stream(self._batches(names))

    def _batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
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
    """A Parquet file, a row group or a few small ones at a time.

    A column of text is read as its dictionary and the places in it, which is how such files store
    it: the encoder then looks at every distinct value once.
    """

    def __init__(self, path: Path, schema: Schema, *, as_of: dt.date | None = None) -> None:
        super().__init__(path, as_of)
        try:
            layout = pyarrow.parquet.read_schema(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise self._unreadable(error) from None
        schema.check_columns(layout.names, where=str(path))
        self._text = [field.name for field in layout if is_text(field.type)]

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        """The named columns; see `TableReader`."""
        try:
            metadata = pyarrow.parquet.read_metadata(self._path)
        except OSError as error:
            raise self._unreadable(error) from None
        before = rows = 0
        groups: list[int] = []
        for group in range(metadata.num_row_groups):
            groups.append(group)
            rows += metadata.row_group(group).num_rows
            if rows >= _PART_ROWS or group + 1 == metadata.num_row_groups:
                yield Part(before, partial(self._groups, metadata, groups, list(names)))
                before, rows, groups = before + rows, 0, []

    def _groups(
        self, metadata: pyarrow.parquet.FileMetaData, groups: list[int], names: list[str]
    ) -> Iterator[Columns]:
        left = sum(metadata.row_group(group).num_rows for group in groups)
        try:
            with pyarrow.parquet.ParquetFile(
                self._path, metadata=metadata, read_dictionary=self._text
            ) as file:
                columns = [_Cursor(self._values(file, groups, name)) for name in names]
                while left:
                    rows = min(left, _BATCH_ROWS)
                    yield Columns(rows, (column.take(rows) for column in columns))
                    left -= rows
        except OSError as error:
            raise self._unreadable(error) from None

    def _values(
        self, file: pyarrow.parquet.ParquetFile, groups: list[int], name: str
    ) -> Iterator[pa.Array]:
        # The caller's thread does it all; other threads have other row groups.
        batches = file.iter_batches(
            batch_size=_BATCH_ROWS, row_groups=groups, columns=[name], use_threads=False
        )
        try:
            for batch in batches:
                yield batch.column(0)
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


class _Cursor:
    """A place in a column: batches end where a row group or its dictionary does, not at will."""

    def __init__(self, batches: Iterator[pa.Array]) -> None:
        self._batches = batches
        self._rest: pa.Array = _NOTHING

    def take(self, rows: int) -> Iterator[pa.Array]:
        """The next rows."""
        while rows:
            piece = self._rest if len(self._rest) else next(self._batches, None)
            if piece is None:
                raise pa.ArrowInvalid("a column has fewer rows than its file says")
            self._rest = piece[rows:] if len(piece) > rows else _NOTHING
            piece = piece[:rows] if len(piece) > rows else piece
            rows -= len(piece)
            yield piece
