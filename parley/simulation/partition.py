"""One table as the tables of several owners, for simulations: by rows, by a column, or by people.

People's rows are read and chosen as an owner's node does (`party.sources.people`): all rows of a
person go to as many owners as a person may have rows with. Each owner states a round number of rows
and leaves out what is more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from common.errors import InputError
from common.privacy.randomness import RandomSource
from common.schema import Codes, Schema
from common.schema.codes import concatenate
from common.tables import formats
from common.wording import many
from party.sources.people import PeopleLimit, chosen
from party.sources.settings import SourceSettings

_KINDS = {".parquet": "parquet", ".pq": "parquet", **formats.KINDS}
_KEY_BYTES = 32
_DIGITS = 2


def at_random(table: pd.DataFrame, parties: int, source: RandomSource) -> dict[str, pd.DataFrame]:
    """Deal rows out at random, equally."""
    if not 1 <= parties <= len(table):
        raise InputError(
            f"{many(len(table), 'row')} cannot be dealt out to {many(parties, 'party')}"
        )
    order = np.argsort(source.words(len(table)), kind="stable")
    return {
        f"party {number + 1}": table.iloc[np.sort(order[number::parties])]
        for number in range(parties)
    }


def by_column(table: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Make one owner for each value of a column, so that owners differ as real ones do."""
    if column not in table.columns:
        raise InputError(
            f"no column {column!r} to partition by; there are {', '.join(map(str, table.columns))}"
        )
    groups = table.groupby(column, dropna=False, observed=True)
    return {str(value): group for value, group in groups}


@dataclass(frozen=True, slots=True)
class PeopleRows:
    """Rows, and whose each of them is."""

    rows: Codes
    people: Sequence[bytes]

    @classmethod
    def read(
        cls, path: Path, schema: Schema, person: str, delimiter: str | None, sheet: str = ""
    ) -> PeopleRows:
        options = {"delimiter": delimiter, "sheet": sheet}
        source = SourceSettings(
            kind=_KINDS.get(path.suffix.lower(), "csv"),
            address=str(path),
            options={key: value for key, value in options.items() if value},
            person=person,
        )
        parts, people = source.people(schema).read(schema)
        if not people:
            raise InputError(f"{path}: the table has no rows")
        return cls(concatenate(parts), people)

    def dealt_out(self, parties: int, *, owners: int, key: bytes) -> list[PeopleRows]:
        """Deal the rows out to parties; a person is with `owners` of them at most."""
        at = list[list[int]]([] for _ in range(parties))
        turns = dict[bytes, int]()
        for row, person in enumerate(self.people):
            first = int.from_bytes(hashlib.blake2b(person, key=key, digest_size=8).digest())
            turn = turns[person] = turns.get(person, -1) + 1
            at[(first + turn % owners) % parties].append(row)
        return [
            PeopleRows(self.rows.take(np.array(places, np.intp)), [self.people[i] for i in places])
            for places in at
        ]

    def limited(self, per_person: int, key: bytes) -> Codes:
        """Keep at most so many rows of a person, and a round number of them in all."""
        limit = PeopleLimit(rows=self.rows.rows, per_person=per_person, key=key, filler=b"")
        places = chosen(self.rows, self.people, limit)
        return self.rows.take(places[: round_down(len(places))])


def round_down(number: int) -> int:
    """Return the number with zeros after its first two digits."""
    unit = int(10 ** max(0, len(str(number)) - _DIGITS))
    return number // unit * unit


def tables_of_people(
    tables: Sequence[PeopleRows],
    schema: Schema,
    *,
    per_person: int,
    owners: int,
    parties: int,
    source: RandomSource,
) -> list[pd.DataFrame]:
    """Return the owners' tables: those given, or a single one dealt out."""
    if not 1 <= owners <= parties:
        raise InputError(f"--owners-per-person {owners}: from 1 to the number of owners, {parties}")
    key = source.random_bytes(_KEY_BYTES)
    parts = (
        list(tables) if len(tables) > 1 else tables[0].dealt_out(parties, owners=owners, key=key)
    )
    limited = []
    for part in parts:
        if not part.people:
            raise InputError("--parties: an owner is left without people. Ask for fewer owners")
        limited.append(schema.decode(part.limited(per_person, key), source))
    return limited
