"""Files of rows: CSV, Parquet, Excel, SPSS, Stata and SAS; `common.tables.files` reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from common.schema import Schema
from common.tables.files import CsvReader, FormatReader, ParquetReader
from common.tables.reader import TableReader
from party.sources.settings import SHAPE, SourceKind, SourceSettings


class File(SourceKind):
    """A kind of file, with the reader of such files and the options that it takes."""

    def __init__(self, name: str, reader: Callable[..., TableReader], *options: str) -> None:
        self.name, self.keys = name, SHAPE | {"path", "where", *options}
        self._reader, self._options = reader, options

    def reader(self, settings: SourceSettings, schema: Schema | None) -> TableReader:
        options = {key: settings.options[key] for key in self._options if key in settings.options}
        return self._reader(Path(settings.address), schema, as_of=settings.as_of, **options)


KINDS = (
    File("csv", CsvReader, "delimiter"),
    File("parquet", ParquetReader),
    File("excel", partial(FormatReader, kind="excel"), "sheet"),
    *(File(kind, partial(FormatReader, kind=kind)) for kind in ("spss", "stata", "sas")),
)
