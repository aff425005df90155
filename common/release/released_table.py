"""The synthetic rows of a release that is not trusted, block by block, wherever the release is.

Every row is encoded, so a cell that is not of the schema is found wherever it is. Codes are kept of
as many rows as the report is about; memory does not depend on the length of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from common.errors import InputError
from common.release.contents import Contents
from common.schema import Codes, Schema
from common.schema.codes import concatenate
from common.schema.tables import convert_options, parse_options

BLOCK_ROWS = 1 << 17  # rows of a block, and of a row group of a Parquet file
KEPT_ROWS = 1 << 20  # so many are held for the report, and writing in one piece ends here


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """What a report is made of."""

    kept: Codes  # the first rows, `KEPT_ROWS` of them at most
    rows: int  # in all


def read_released_table(contents: Contents, name: str, schema: Schema) -> ReleasedTable:
    """Encode the table of a release; an InputError begins with its name."""
    kept, rows = list[Codes](), 0
    for codes in _encoded(contents, name, schema):
        if rows < KEPT_ROWS:
            kept.append(codes.take(slice(KEPT_ROWS - rows)))
        rows += codes.rows
    return ReleasedTable(concatenate(kept), rows)


def read_codes(contents: Contents, name: str, schema: Schema) -> Codes:
    """Encode the table of a release, all of it."""
    return concatenate(list(_encoded(contents, name, schema)))


def _encoded(contents: Contents, name: str, schema: Schema) -> Iterator[Codes]:
    """The rows block by block, at least one."""
    as_they_are, empty = schema.without_rules(), True
    try:
        for block in _blocks(contents, name, schema):
            codes = as_they_are.encode(block, where=name)
            _check_rules(codes, schema, name)
            empty = False
            yield codes
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{name}: not a table that can be read: {error}") from None
    if empty:
        raise InputError(f"{name}: the table has no rows")


def _check_rules(codes: Codes, schema: Schema, name: str) -> None:
    """Refuse a row that breaks a rule; where `other` is an empty cell, nothing can be told."""
    unclear = {
        a
        for a, each in enumerate(schema.attributes)
        if each.other and each.missing and not each.textual
    }
    for rule in schema.possible.rules:
        if unclear.isdisjoint(rule.attributes) and not rule.holds(codes.columns).all():
            raise InputError(f"{name}: rows break a rule of the schema: {rule.rule}")


def _blocks(contents: Contents, name: str, schema: Schema) -> Iterator[pa.Table]:
    with contents.open(name) as stream:
        if name.endswith(".parquet"):
            file = pyarrow.parquet.ParquetFile(stream)
            _check_names(file.schema_arrow.names, name, schema)
            batches = file.iter_batches(batch_size=BLOCK_ROWS)
        else:
            batches = pyarrow.csv.open_csv(
                stream,
                parse_options=parse_options(",", schema.names),
                convert_options=convert_options((), dict.fromkeys(schema.names, pa.string())),
            )
            _check_names(batches.schema.names, name, schema)
        yield from (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)


def _check_names(columns: list[str], name: str, schema: Schema) -> None:
    if sorted(columns) != sorted(schema.names):
        strange = sorted(set(columns) ^ set(schema.names)) or ["one that is there twice"]
        raise InputError(f"{name}: its columns are not those of the schema: {', '.join(strange)}")
