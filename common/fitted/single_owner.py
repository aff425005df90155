"""What every release of a single owner shares: its random source, its accountant, its statement."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import pandas as pd
import pyarrow as pa

from common.errors import InputError
from common.privacy.accountant import Accountant, Charge
from common.privacy.promise import Promise
from common.privacy.randomness import RandomSource
from common.privacy.statement import PrivacyStatement, Protection, shortcomings
from common.release.synthetic_table import Columns
from common.schema import Codes, Schema
from common.tables import TableFile
from common.wording import Reporter, silent

OWNER = "owner"

Table: TypeAlias = pd.DataFrame | pa.Table | TableFile


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


def as_schema(schema: Schema | Path | str) -> Schema:
    return schema if isinstance(schema, Schema) else Schema.load(schema)


def encode(table: Table, schema: Schema) -> tuple[Codes, Columns]:
    """Return the rows as codes, and their columns."""
    if isinstance(table, TableFile):
        return table.encode(schema), Columns.of(table.data, schema)
    if not isinstance(table, pd.DataFrame | pa.Table):  # callers need not use a type checker
        raise InputError(f"expected a pandas or Arrow table, not {type(table).__name__}")
    return schema.encode(table), Columns.of(table, schema)


def as_arrow(table: Table) -> pa.Table:
    """Return the table itself, without where it came from."""
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
