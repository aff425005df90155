"""The changes of stored tables since 0.2.0, numbered: every later version opens an earlier file.

The tables of a file have a version, SQLite's `user_version`. Those of 0.2.0 have version 3. A
program opens a file of an earlier version by carrying out, once and in one transaction, every
migration with a number above the file's; a copy of the file as it was stays beside it
(`common.service.database`). A file of a later version is not changed.

To change a table: write the new text of the table where it is declared, with new columns last, and
append a migration here that brings the table of the version before to that text. To add a table or
an index, declare it with IF NOT EXISTS: it needs no migration.

Migrations that were released do not change.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass

FIRST = 3  # the version of the tables of 0.2.0


class StateOwner(enum.Enum):
    """The service that a file belongs to."""

    CURATOR = "curator"
    PARTY = "party"

    @classmethod
    def of(cls, tables: Collection[str]) -> StateOwner:
        """Return whose file has these tables; the curator's begins with those of the parties."""
        return cls.CURATOR if "party" in tables else cls.PARTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A change of one table.

    A file that does not have the table yet gets it in its newest form, and needs no migration.
    """

    number: int  # the version of the tables afterwards
    service: StateOwner
    table: str
    statements: tuple[str, ...]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(  # whom the study of an entry protects; a row before
        number=4,
        service=StateOwner.PARTY,
        table="entry",
        statements=(
            "ALTER TABLE entry ADD COLUMN rows_per_person INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE entry ADD COLUMN owners_per_person INTEGER NOT NULL DEFAULT 1",
        ),
    ),
)


def newest(migrations: Sequence[Migration]) -> int:
    """Return the version of the tables after all migrations."""
    return migrations[-1].number if migrations else FIRST


def statements(migrations: Sequence[Migration], written: int, tables: Collection[str]) -> list[str]:
    """Return what brings a file of a version, with these tables, to the newest version."""
    service = StateOwner.of(tables)
    return [
        statement
        for migration in migrations
        if migration.number > written and migration.service is service and migration.table in tables
        for statement in migration.statements
    ]
