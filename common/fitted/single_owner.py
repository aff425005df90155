"""What every release of a single owner shares: its random source, its accountant, its statement."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa

from common.errors import InputError, PrivacyWarning
from common.privacy.accountant import Accountant, Charge
from common.privacy.budget import Written
from common.privacy.promise import Promise
from common.privacy.randomness import RandomSource
from common.privacy.statement import PrivacyStatement, Protection, large_epsilon, shortcomings
from common.release.synthetic_table import TableColumns
from common.schema import Codes, Schema
from common.schema.columns import SupportsArrow
from common.schema.schema import Proposal
from common.tables import TableFile, read_table
from common.wording import Reporter, silent

OWNER = "owner"
DRAFT = (
    "the schema is a draft: its values and ranges were read off the data, and a release publishes "
    "them without noise. Review it, or write public ones, before you publish"
)

Table: TypeAlias = pd.DataFrame | pa.Table | TableFile
# What people hand over: also a path, and a table of any library that speaks Arrow, as Polars does.
AnyTable: TypeAlias = Table | Path | str | SupportsArrow
Owners: TypeAlias = Sequence[AnyTable] | Mapping[str, AnyTable]
AnySchema: TypeAlias = Schema | Proposal | Mapping[str, Any] | Path | str


class TellingAccountant(Accountant):
    """An accountant of one owner that tells, before each charge, how far the work is."""

    def __init__(self, cap: Fraction, tell: Reporter = silent) -> None:
        super().__init__({OWNER: cap})
        self._cap = cap
        self._tell = tell

    def charge(self, charge: Charge) -> None:
        """Record a charge before its answer is given, and tell."""
        before = float(self.spent(OWNER) / self._cap)
        super().charge(charge)
        self._tell(before, charge.step)


def warn_of_large(epsilon: Written) -> None:
    if words := large_epsilon(epsilon):
        warnings.warn(words, PrivacyWarning, stacklevel=3)


def as_schema(schema: AnySchema) -> Schema:
    """Return the schema that was handed over: itself, a draft, its columns, or its file."""
    if isinstance(schema, Proposal):
        if not schema.public:
            warnings.warn(DRAFT, PrivacyWarning, stacklevel=3)
        return schema.schema
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, Mapping):
        return Schema.of(schema)
    if not isinstance(schema, Path | str):
        raise InputError(
            f"schema: expected a parley.Schema, a dict of columns or the path of a schema.toml, "
            f"not {type(schema).__name__}"
        )
    return Schema.load(schema)


def as_table(table: AnyTable, schema: Schema | None = None) -> Table:
    """Return the table that was handed over: itself, as Arrow, or read from its file."""
    if isinstance(table, pd.DataFrame | pa.Table | TableFile):
        return table
    if isinstance(table, Path | str):
        return read_table(table, schema)
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    raise InputError(
        f"expected a table (pandas, Polars, Arrow) or the path of one, not {type(table).__name__}"
    )


def owners_of(tables: Owners) -> Mapping[str, AnyTable]:
    """Return the owners' tables by name; InputError if it is one table, or none."""
    if isinstance(tables, Mapping):
        named = dict(tables)
    elif isinstance(tables, Path | str | TableFile) or hasattr(tables, "__arrow_c_stream__"):
        raise InputError(
            "tables: one table is the table of one owner. Hand over one per owner, as [north, "
            "east] or {'north': north, 'east': east}; parley.Subn fits a single owner's table"
        )
    else:
        named = {f"party {number}": table for number, table in enumerate(tables, start=1)}
    if not named:
        raise InputError("a study needs the table of at least one owner")
    return named


def encode(table: AnyTable, schema: Schema) -> tuple[Codes, TableColumns]:
    frame_or_file = as_table(table, schema)
    if isinstance(frame_or_file, TableFile):
        return frame_or_file.encode(schema), TableColumns.of(frame_or_file.data, schema)
    return schema.encode(frame_or_file), TableColumns.of(frame_or_file, schema)


def as_arrow(table: AnyTable) -> pa.Table:
    """Return the table itself, without where it came from."""
    table = as_table(table)
    if isinstance(table, pd.DataFrame):
        return pa.Table.from_pandas(table, preserve_index=False)
    return table.data if isinstance(table, TableFile) else table


def statement_of(
    requested: Fraction, accountant: Accountant, source: RandomSource
) -> dict[str, object]:
    """Return the content of privacy.json."""
    return PrivacyStatement(
        promise=Promise(requested),
        accountant=accountant,
        protections=[
            Protection(
                against="everyone who sees the release, together with anything else they know",
                epsilon=accountant.most_spent,
                assumes="the owner's machine keeps the rows and the noise to itself",
            ),
        ],
        not_private_because=shortcomings(source_private=source.private),
        notes=[
            "A person with several rows is protected less: k rows by k times the epsilon.",
            "The schema and the number of rows are public, and not protected.",
            "Another release from the same rows adds its epsilon to this one.",
        ],
    ).as_dict()
