"""Files of Excel, SPSS, Stata and SAS as sources; `common.schema.formats` reads their cells."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from common.errors import InputError
from common.schema import Schema, formats
from party.sources.files import FileReader
from party.sources.parts import Part, parts_of_stream


class FormatReader(FileReader):
    """Such a file, some rows at a time; every cell is read as its text.

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

    def explain(self, error: pa.ArrowInvalid) -> InputError:
        return InputError(f"{self._path}: cannot be read: {error}. Check that the file is whole")
