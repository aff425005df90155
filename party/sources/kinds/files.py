"""CSV, Parquet, and the files of Excel, SPSS, Stata and SAS."""

from __future__ import annotations

from pathlib import Path

from common.schema import Schema
from party.sources.files import CsvReader, FormatReader, ParquetReader
from party.sources.kind import SHAPE, Kind
from party.sources.settings import SourceSettings
from party.sources.source import TableReader


class Csv(Kind):
    """A CSV file."""

    name = "csv"
    keys = SHAPE | {"path", "where", "delimiter"}

    def reader(self, settings: SourceSettings, schema: Schema | None) -> TableReader:
        delimiter = settings.options.get("delimiter")
        path = Path(settings.address)
        return CsvReader(path, schema, delimiter=delimiter, as_of=settings.as_of)


class Parquet(Kind):
    """A Parquet file."""

    name = "parquet"
    keys = SHAPE | {"path", "where"}

    def reader(self, settings: SourceSettings, schema: Schema | None) -> TableReader:
        return ParquetReader(Path(settings.address), schema, as_of=settings.as_of)


class Format(Kind):
    """A file of another program; it needs parley[formats]."""

    def __init__(self, name: str, *keys: str) -> None:
        self.name, self.keys = name, SHAPE | {"path", "where", *keys}

    def reader(self, settings: SourceSettings, schema: Schema | None) -> TableReader:
        return FormatReader(
            Path(settings.address),
            schema,
            kind=self.name,
            sheet=settings.options.get("sheet", ""),
            as_of=settings.as_of,
        )


KINDS = (Csv(), Parquet(), Format("excel", "sheet"), *map(Format, ("spss", "stata", "sas")))
