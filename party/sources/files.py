"""Files of rows: CSV by blocks of text, Parquet by row groups on every core, and four formats more.

The rules of reading are those of `common.schema.tables`: UTF-8, a header, an empty cell is a
missing value, and nothing else is guessed.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from common.errors import InputError
from common.schema import Schema, formats
from common.schema.columns import is_text
from common.schema.tables import TEXT, CsvFile, text_types
from party.sources.parts import Columns, Part, parts_of_stream
from party.sources.source import PlainReader

_BLOCK_BYTES = 1 << 22
_PART_ROWS = 1 << 19  # small row groups are read several at a time: opening a file takes time
_BATCH_ROWS = 1 << 16  # values of a column that are decoded and encoded before they leave the cache
_SLOW_ROWS = 1 << 12
_NOTHING = pa.nulls(0)


class FileReader(PlainReader):
    """What all files have: a path, a date and a mark, and one way to refuse what is unreadable."""

    _kind = "file"

    def __init__(self, path: Path, as_of: dt.date | None) -> None:
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        self._path = path
        self._as_of = as_of

    @property
    def where(self) -> str:
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

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Refuse the file if it cannot be read inside of the block."""
        try:
            yield
        except OSError as error:
            raise self.explain(error) from None

    def explain(self, error: Exception) -> InputError:
        """What is wrong with the file."""
        return InputError(f"{self._path}: not a readable {self._kind}: {error}")


class CsvReader(FileReader):
    """A CSV file, a block of text at a time; every cell is read as text.

    A file whose rows are not equally long, or longer than a block, is read by Python, which cuts it
    as Arrow does: a short row then has empty cells, a long one loses what is beyond the header.
    That is for a schema that refuses nothing; under any other such a file is refused.

    Args:
        path: `.gz` is decompressed.
        schema: the columns to expect; None for all there are, to see whether they can be read.
        delimiter: between cells; None for the one that the header has.
        as_of: the date the data is of, if not the day the file was written.
    """

    _kind = "CSV file"

    def __init__(
        self,
        path: Path,
        schema: Schema | None,
        *,
        delimiter: str | None = None,
        as_of: dt.date | None = None,
    ) -> None:
        super().__init__(path, as_of)
        self._strict = schema is not None and not schema.forgiving
        self._slow = False
        with self._reading():
            self._csv = CsvFile.open(path, schema, delimiter)
            self._check_quotes()
        self._names = self._csv.names
        self._types = dict.fromkeys(self._names, TEXT)
        self._types |= {} if schema is None else text_types(schema)

    def _check_quotes(self) -> None:
        if not self._csv.has_odd_quotes():
            return
        if self._strict:
            self._csv.diagnose()
        if self._csv.ends_in_quotes():
            raise InputError(
                f"{self._path}: the file ends inside of a cell. "
                "Close the quotation mark that opens the cell"
            )

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        """The named columns; see `TableReader`."""
        return parts_of_stream(self._slowly(names) if self._slow else self._batches(names))

    def _batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._reading():
            options = self._csv.options(
                names, self._types, check_utf8=self._strict, block_size=_BLOCK_BYTES
            )
            with pyarrow.csv.open_csv(self._path, **options) as reader:
                yield from reader

    def _slowly(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same cells, row by row."""
        places = [self._names.index(name) for name in names]
        records = self._csv.rows_of_bytes()
        with self._reading():
            while rows := list(itertools.islice(records, _SLOW_ROWS)):
                cells = [[_cell(row, place) for row in rows] for place in places]
                columns = [pa.array(each, type=pa.binary()).view(pa.string()) for each in cells]
                yield pa.RecordBatch.from_arrays(columns, names=list(names))

    def read_slowly(self) -> bool:
        """From now on read the file row by row; refuses it if it is strict and has bad rows."""
        if self._strict:
            self._csv.diagnose()
        changed = not self._slow
        self._slow = True
        return changed

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        """The lines an editor shows."""
        return self._csv.line_numbers(positions)


def _cell(row: list[str], place: int) -> bytes | None:
    """A cell of a row that may be too short; None if it is empty."""
    return row[place].encode("latin-1") or None if place < len(row) else None


class ParquetReader(FileReader):
    """A Parquet file, a row group or a few small ones at a time.

    A column of text is read as its dictionary and the places in it, which is how such files store
    it: the encoder then looks at every distinct value once.
    """

    _kind = "Parquet file"

    def __init__(self, path: Path, schema: Schema | None, *, as_of: dt.date | None = None) -> None:
        super().__init__(path, as_of)
        try:
            layout = pyarrow.parquet.read_schema(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise self.explain(error) from None
        self._names = list[str](layout.names)
        if schema is not None:
            schema.check_columns(layout.names, where=str(path))
        self._text = [field.name for field in layout if is_text(field.type)]

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        """The named columns; see `TableReader`."""
        with self._reading():
            metadata = pyarrow.parquet.read_metadata(self._path)
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
        with (
            self._reading(),
            pyarrow.parquet.ParquetFile(
                self._path, metadata=metadata, read_dictionary=self._text
            ) as file,
        ):
            columns = [_Cursor(self._values(file, groups, name)) for name in names]
            while left:
                rows = min(left, _BATCH_ROWS)
                yield Columns(rows, (column.take(rows) for column in columns))
                left -= rows

    def _values(
        self, file: pyarrow.parquet.ParquetFile, groups: list[int], name: str
    ) -> Iterator[pa.Array]:
        # The caller's thread does it all; other threads have other row groups.
        batches = file.iter_batches(
            batch_size=_BATCH_ROWS, row_groups=groups, columns=[name], use_threads=False
        )
        with self._reading():
            for batch in batches:
                yield batch.column(0)


class _Cursor:
    """A place in a column: batches end where a row group or its dictionary does, not at will."""

    def __init__(self, batches: Iterator[pa.Array]) -> None:
        self._batches = batches
        self._rest: pa.Array = _NOTHING

    def take(self, rows: int) -> Iterator[pa.Array]:
        while rows:
            piece = self._rest if len(self._rest) else next(self._batches, None)
            if piece is None:
                raise pa.ArrowInvalid("a column has fewer rows than its file says")
            self._rest = piece[rows:] if len(piece) > rows else _NOTHING
            piece = piece[:rows] if len(piece) > rows else piece
            rows -= len(piece)
            yield piece


class FormatReader(FileReader):
    """A file of Excel, SPSS, Stata or SAS, some rows at a time; every cell is read as its text.

    Args:
        path: of the file.
        schema: the columns to expect; None for all there are, to see whether they can be read.
        kind: excel, spss, stata or sas.
        sheet: of a workbook; empty for the first.
        as_of: the date the data is of, if not the day the file was written.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema | None,
        *,
        kind: str,
        sheet: str = "",
        as_of: dt.date | None = None,
    ) -> None:
        super().__init__(path, as_of)
        if formats.KINDS.get(path.suffix.lower()) != kind:
            endings = ", ".join(end for end, of in formats.KINDS.items() if of == kind)
            raise InputError(f"{path}: not the name of a file of kind {kind}. It ends in {endings}")
        self._sheet = sheet
        layout = formats.layout_of(path, sheet)
        self._names = layout.names
        self._labels: dict[str, Mapping[bytes, str]] = {}
        if schema is not None:
            schema.check_columns(layout.names, where=str(path))
            self._labels = {
                attribute.name: formats.labelled(attribute, layout.labels.get(attribute.name, {}))
                for attribute in schema.attributes
            }

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        """The named columns; see `TableReader`."""
        return parts_of_stream(self._batches(list(names)))

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        for block in formats.blocks(self._path, names, self._sheet):
            columns = [
                formats.texts(cells, self._labels.get(name))
                for name, cells in zip(names, block, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=names)
