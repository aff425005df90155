"""Synthetic rows in blocks: drawn, decoded and formatted on every core, written as they come.

A release of more rows than fit into memory differs in nothing from a small one but in how it is
written. Every block has a random source of its own: a stream is never shared between threads. With
a seed, the rows depend on the seed and not on the number of threads.

A file formats blocks in many threads at once, and writes them in one. A Parquet file has a row
group per block, and says that its columns are of the types that pandas would have written.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from common.marginals.threads import map_in_threads, worker_count
from common.privacy.randomness import source_of
from common.release.fitted import FittedModel
from common.release.progress import Reporter, silent
from common.release.released_table import BLOCK_ROWS, KEPT_ROWS
from common.schema import Codes, Schema
from common.schema.binning import Binning
from common.schema.codes import concatenate
from common.schema.columns import as_text, is_text
from common.schema.decoder import decode_to_arrow
from common.wording import many

_MOST_DISTINCT = 1 << 12  # numbers that take more values than this are not worth a dictionary


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a release: each is made on its own, by a thread or by another machine."""

    fitted: FittedModel
    rows: int

    @property
    def count(self) -> int:
        """How many there are: one at least."""
        return max(1, -(-self.rows // BLOCK_ROWS))

    def drawn(self, number: int) -> tuple[Codes, pa.Table]:
        """The rows of a block, as codes and as values."""
        size = min(BLOCK_ROWS, self.rows - number * BLOCK_ROWS)
        codes = self.fitted.draw(size, source_of(self.fitted.seed, f"rows/{number}"))
        inside = source_of(self.fitted.seed, f"numbers/{number}")
        return codes, decode_to_arrow(self.fitted.schema, codes, inside)


def write_stream(
    path: Path,
    fitted: FittedModel,
    rows: int,
    *,
    threads: int | None = None,
    tell: Reporter = silent,
) -> Codes:
    """Draw rows into a file, in memory that does not depend on their number.

    Returns:
        The first of the rows: whole blocks, until there are `KEPT_ROWS`.
    """
    fitted.draw(1, source_of(fitted.seed, "rows"))  # what threads share is made before them
    kind = CsvFile if path.suffix == ".csv" else ParquetFile
    blocks = Blocks(fitted, rows)
    kept: list[Codes] = []
    done = 0
    with kind(path, fitted.schema, fitted.decode(one_of_each(fitted.schema))) as file:

        def block(number: int) -> tuple[Codes, object]:
            codes, table = blocks.drawn(number)
            return codes, file.formatted(table)

        numbers = range(blocks.count)
        for codes, formatted in map_in_threads(block, numbers, worker_count(threads)):
            file.write(formatted)
            if done < KEPT_ROWS:
                kept.append(codes)
            done += codes.rows
            tell(done / max(rows, 1), many(done, "row"))
    return concatenate(kept)


def one_of_each(schema: Schema) -> Codes:
    """A few rows in which every code of every attribute occurs: they show the types of columns."""
    rows = np.arange(max(schema.sizes))
    return Codes.from_columns([rows % size for size in schema.sizes], schema.sizes)


class CsvFile:
    """A CSV file with the columns of some rows that it is `like`, in their order."""

    def __init__(self, path: Path, schema: Schema, like: pd.DataFrame) -> None:
        del schema  # a CSV file has no types
        self._names = [str(name) for name in like.columns]
        self._file = path.open("wb")
        like.iloc[:0].to_csv(self._file, index=False)

    def formatted(self, table: pa.Table) -> pa.Buffer:
        columns = [_as_written(table.column(name)) for name in self._names]
        lines = pa.BufferOutputStream()
        pyarrow.csv.write_csv(
            pa.table(columns, names=self._names),
            lines,
            pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed"),
        )
        return lines.getvalue()

    def write(self, lines: pa.Buffer) -> None:
        self._file.write(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _as_written(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """What the writer of CSV understands, and pandas would write."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return as_text(column) if pa.types.is_boolean(column.type) else column


class ParquetFile:
    """A Parquet file; the arguments as for `CsvFile`, with `like` for the types as well."""

    def __init__(self, path: Path, schema: Schema, like: pd.DataFrame) -> None:
        published = pa.Schema.from_pandas(like, preserve_index=False)
        self._published = pa.schema(
            [_writable(field) for field in published], metadata=published.metadata
        )
        self._stored = pa.schema([_stored(field, schema) for field in self._published])
        self._writer = pyarrow.parquet.ParquetWriter(
            path,
            self._stored,
            store_schema=False,
            write_statistics=False,  # every block covers every domain: they would tell nothing
            use_dictionary=[f.name for f in self._stored if _repeats(f.name, schema)],
        )

    def formatted(self, table: pa.Table) -> pa.Table:
        """A block in the types of the file."""
        columns = [table.column(field.name).cast(field.type) for field in self._stored]
        return pa.table(columns, schema=self._stored)

    def write(self, block: pa.Table) -> None:
        self._writer.write_table(block, row_group_size=max(1, block.num_rows))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            published = base64.b64encode(self._published.serialize().to_pybytes())
            words = {"ARROW:schema": published, **(self._published.metadata or {})}
            self._writer.add_key_value_metadata(words)
        self._writer.close()


def _writable(field: pa.Field) -> pa.Field:
    """A file knows dictionaries of text only: a categorical of numbers is a column of numbers."""
    if pa.types.is_dictionary(field.type) and not is_text(field.type.value_type):
        return field.with_type(field.type.value_type)
    return field


def _stored(field: pa.Field, schema: Schema) -> pa.Field:
    """Text as places in a dictionary: what readers are told is the published type all the same.

    A column that cannot have an empty cell says so, which saves writing that it has none.
    """
    attribute = schema.attributes[schema.position(field.name)]
    empty = attribute.missing or (attribute.other and not attribute.textual)
    words = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    kind = field.type
    if attribute.textual and is_text(words):
        kind = pa.dictionary(pa.from_numpy_dtype(attribute.code_type), pa.string())
    return pa.field(field.name, kind, nullable=empty)


def _repeats(name: str, schema: Schema) -> bool:
    domain = schema.attributes[schema.position(name)].domain
    if not isinstance(domain, Binning):
        return True
    return domain.whole and domain.high - domain.low < _MOST_DISTINCT
