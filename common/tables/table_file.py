"""A file as one table: all parts of its reader, with errors that point into the file.

Row numbers of a CSV are the line numbers an editor shows; rows of other files count from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from common.errors import InputError
from common.schema.codes import Codes
from common.schema.schema import Schema
from common.schema.toml import suggest
from common.tables import formats
from common.tables.files import CsvReader, FileReader, FormatReader, ParquetReader

_PARQUET = (".parquet", ".pq")
_SPREADSHEETS = (".xls", ".ods")


@dataclass(frozen=True)
class TableFile:
    """A table read from a file, which still knows where in the file its rows are."""

    path: Path  # the file
    data: pa.Table  # the columns that were read
    reader: FileReader
    guessed: bool  # whether the types of the columns were guessed from the cells

    @property
    def labels(self) -> formats.Labels:
        return self.reader.labels

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        return self.reader.row_numbers(positions)

    def encode(self, schema: Schema) -> Codes:
        """Encode the table; errors name the file and the row."""
        if self.guessed:
            again = read_table(self.path, schema, **self.reader.options)
            return again.encode(schema)
        return schema.encode(self.data, where=str(self.path), row_numbers=self.row_numbers)


def read_table(
    path: Path | str,
    schema: Schema | None = None,
    *,
    delimiter: str | None = None,
    sheet: str = "",
    more: Sequence[str] = (),
) -> TableFile:
    """Read the table in a file; an InputError names the file and the row.

    `.parquet` and `.pq` are Parquet, `common.tables.formats` has more endings, and everything else
    is CSV (`.gz` is decompressed). With a schema only its columns, and those of `more`, are read,
    as text. Without one it is a draft: all columns, in types that their cells have.
    """
    path = Path(path)
    reader = _reader(path, schema, delimiter, sheet)
    for name in more:
        if name not in reader.names:
            raise InputError(f"{path}: there is no column {name!r}{suggest(name, reader.names)}")
    if schema is None:
        data = reader.draft()
    else:
        columns = [name for name in reader.names if name in schema.names]
        data = reader.table(list(dict.fromkeys([*columns, *more])))
    if data.num_rows == 0:
        raise InputError(f"{path}: the table has no rows")
    return TableFile(path, data, reader, guessed=schema is None)


def _reader(path: Path, schema: Schema | None, delimiter: str | None, sheet: str) -> FileReader:
    ending = path.suffix.lower()
    kind = formats.KINDS.get(ending)
    if not path.is_file():
        beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        absent = f"no such file{suggest(path.name, beside)}"
        raise InputError(f"{path}: {'a folder, not a file' if path.is_dir() else absent}")
    if sheet and kind != "excel":
        raise InputError(
            f"{path}: has no sheet {sheet!r}: it is no Excel file. Leave sheet=... out"
        )
    if ending in _SPREADSHEETS:
        raise InputError(f"{path}: a spreadsheet of another kind. Save it as .xlsx or as CSV")
    if ending in _PARQUET:
        return ParquetReader(path, schema)
    if kind is not None:
        return FormatReader(path, schema, kind=kind, sheet=sheet)
    return CsvReader(path, schema, delimiter=delimiter)
