"""Readers of files: CSV by blocks of text, Parquet by row groups, and four formats more.

With a schema, cells are read as text, and the encoder says what each one means: no type is guessed
from the cells of a column. The files of Excel, SPSS, Stata and SAS need parley[formats].
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from common.errors import InputError
from common.schema import Schema
from common.schema.columns import is_text
from common.tables import formats
from common.tables.csv_file import REPEATED_TEXT, TEXT, CsvFile, text_types
from common.tables.reader import ColumnPieces, Part, TableReader, parts_of_stream

_BLOCK_BYTES = 1 << 22
_PART_ROWS = 1 << 19  # small row groups are read several at a time: opening a file takes time
_BATCH_ROWS = 1 << 16  # values of a column that are decoded and encoded before they leave the cache
_SLOW_ROWS = 1 << 12
_NOTHING = pa.nulls(0)


class FileReader(TableReader):
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
        """The date that the settings give, or else the day the file was written (UTC)."""
        if self._as_of is not None:
            return self._as_of
        return dt.datetime.fromtimestamp(self._path.stat().st_mtime, dt.UTC).date()

    def mark(self) -> str | None:
        """Return inode, size and times; an inode's own time of change cannot be set by hand."""
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

    @property
    def options(self) -> Mapping[str, Any]:
        """How the file is read, besides its name: what `read_table` takes."""
        return {}

    @property
    def labels(self) -> formats.Labels:
        """The labels of values by column; most files have none."""
        return {}

    def draft(self) -> pa.Table:
        """Return all columns in types that their cells have, for a proposal of a schema."""
        return self.table(self.names)

    def explain(self, error: Exception) -> InputError:
        return InputError(f"{self._path}: the file is not a readable {self._kind}: {error}")


class CsvReader(FileReader):
    """A CSV file, a block of text at a time; every cell is read as text.

    A file whose rows are not equally long, or longer than a block, is read by Python, which cuts it
    as Arrow does: a short row then has empty cells, a long one loses what is beyond the header.
    That is for a schema that refuses nothing; any other schema refuses the file.

    `.gz` is decompressed. Without a schema all columns can be read. Without a delimiter it is the
    one that the header has.
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
        return parts_of_stream(self._slowly(names) if self._slow else self._batches(names))

    def _batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._reading():
            options = self._csv.options(
                names, self._types, check_utf8=self._strict, block_size=_BLOCK_BYTES
            )
            with pyarrow.csv.open_csv(self._path, **options) as reader:
                yield from reader

    def _slowly(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the same cells, read row by row."""
        places = [self._names.index(name) for name in names]
        records = self._csv.rows_of_bytes()
        with self._reading():
            while rows := list(itertools.islice(records, _SLOW_ROWS)):
                cells = [[_cell(row, place) for row in rows] for place in places]
                columns = [pa.array(column, type=pa.binary()).view(pa.string()) for column in cells]
                yield pa.RecordBatch.from_arrays(columns, names=list(names))

    def read_slowly(self) -> bool:
        if self._strict:
            self._csv.diagnose()
        changed = not self._slow
        self._slow = True
        return changed

    @property
    def options(self) -> Mapping[str, Any]:
        return {"delimiter": self._csv.delimiter}

    def draft(self) -> pa.Table:
        try:
            with self._reading():
                data = self._codes_as_text(self._csv.read(self._names, {}))
        except pa.ArrowInvalid as error:
            self._csv.diagnose()
            raise self.explain(error) from None
        if any(pa.types.is_binary(field.type) for field in data.schema):
            self._csv.diagnose()
        return data

    def _codes_as_text(self, data: pa.Table) -> pa.Table:
        """Read columns of digits that begin with a zero as text: they are codes (01067)."""
        whole = [field.name for field in data.schema if pa.types.is_integer(field.type)]
        if not whole:
            return data
        texts = self._csv.read(whole, dict.fromkeys(whole, REPEATED_TEXT))
        for name in whole:
            values = pa.array(texts[name].combine_chunks().dictionary)
            if pc.any(pc.match_substring_regex(values, "^0[0-9]")).as_py():
                data = data.set_column(data.column_names.index(name), name, texts[name])
        return data

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        """Return the lines that an editor shows."""
        return self._csv.line_numbers(positions)


def _cell(row: list[str], place: int) -> bytes | None:
    """Return a cell of a row that may be too short; None if it is empty."""
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

    def draft(self) -> pa.Table:
        try:
            return pyarrow.parquet.read_table(self._path)
        except (pa.ArrowInvalid, OSError) as error:
            raise self.explain(error) from None

    def _groups(
        self, metadata: pyarrow.parquet.FileMetaData, groups: list[int], names: list[str]
    ) -> Iterator[ColumnPieces]:
        rows_left = sum(metadata.row_group(group).num_rows for group in groups)
        with (
            self._reading(),
            pyarrow.parquet.ParquetFile(
                self._path, metadata=metadata, read_dictionary=self._text
            ) as file,
        ):
            columns = [_Cursor(self._values(file, groups, name)) for name in names]
            while rows_left:
                rows = min(rows_left, _BATCH_ROWS)
                yield ColumnPieces(rows, (column.take(rows) for column in columns))
                rows_left -= rows

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

    Without a schema all columns can be read. The sheet is a workbook's; empty for the first.
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
            raise InputError(
                f"{path}: the file's name does not end in {endings}. Rename the file, or choose "
                f"another kind than {kind}"
            )
        self._sheet = sheet
        layout = formats.layout_of(path, sheet)
        self._names = layout.names
        self._labels = layout.labels
        self._read_as_labels: formats.Labels = {}
        if schema is not None:
            schema.check_columns(layout.names, where=str(path))
            self._read_as_labels = {
                attribute.name: formats.labelled(attribute, layout.labels.get(attribute.name, {}))
                for attribute in schema.attributes
            }

    @property
    def options(self) -> Mapping[str, Any]:
        return {"sheet": self._sheet}

    @property
    def labels(self) -> formats.Labels:
        return self._labels

    def draft(self) -> pa.Table:
        columns: list[list[Any]] = [[] for _ in self._names]
        for block in formats.blocks(self._path, self._names, self._sheet):
            for column, cells in zip(columns, block, strict=True):
                column.extend(cells)
        return pa.table([_typed_or_text(cells) for cells in columns], names=list(self._names))

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        return parts_of_stream(self._batches(list(names)))

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        for block in formats.blocks(self._path, names, self._sheet):
            columns = [
                formats.texts(cells, self._read_as_labels.get(name))
                for name, cells in zip(names, block, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=names)


def _typed_or_text(cells: list[Any]) -> pa.Array:
    """Return cells in the type that all of them have, for a draft; else as text."""
    try:
        return pa.array([None if cell == "" else cell for cell in cells], from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return formats.texts(cells)
