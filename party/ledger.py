"""What this owner has spent, on what, and when: durable, append-only and tamper-evident.

A table in the party's SQLite file. A charge is on disk (fsync) when `charge` returns or, inside a
transaction of the caller's, when that ends; so the shell charges first and sends afterwards.
Charging the same step of the same study again is recognised and costs nothing: the answer was drawn
once, and asked again it is the same answer.

Entries are chained: each carries the SHA-256 of its own content and of the entry before it, so a
changed, removed or reordered entry breaks the chain from there on, and `verify` says where. The
unit of a study of people is part of the content; a study of rows has none, like every entry of
version 0.2.0. An attacker who can rewrite the whole file can rewrite the whole chain; so note
`head` down elsewhere now and then.

The ledger of a file that a later version wrote can be read, as far as it has these columns; so can
one from before 0.2.0, whose charges are pure epsilon.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from common.errors import LocalError, PolicyError
from common.privacy.spending import Spending
from common.service.database import Database
from party.totals import Totals, Unit

_EMPTY_HEAD = "0" * 64
_TABLES = """
CREATE TABLE IF NOT EXISTS entry (
    number INTEGER PRIMARY KEY,
    study TEXT NOT NULL,
    study_name TEXT NOT NULL,
    step TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    rho TEXT NOT NULL,
    delta TEXT NOT NULL,
    charged_at TEXT NOT NULL,
    digest TEXT NOT NULL,
    rows_per_person INTEGER NOT NULL DEFAULT 0,
    owners_per_person INTEGER NOT NULL DEFAULT 1,
    UNIQUE (study, step)
) STRICT;
"""
_COLUMNS = (
    "number", "study", "study_name", "step", "mechanism", "epsilon", "rho", "delta",
    "rows_per_person", "owners_per_person", "charged_at", "digest",
)  # fmt: skip
# What stands for columns that an earlier ledger does not have, where it is only read.
_LATER = {"rho": "'0'", "delta": "'0'", "rows_per_person": "0", "owners_per_person": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCharge:
    """One step of one study, and what it costs a row of this party, or a person in its rows."""

    study: str  # its digest, in hexadecimal
    study_name: str
    step: str
    mechanism: str  # what draws the answer
    # What it costs under pure epsilon; 0 under a promise with a delta.
    epsilon: Fraction = Fraction(0)
    # What it costs under a promise with a delta (`common.privacy.spending`).
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)  # of that promise
    rows_per_person: int = 0  # of a study that protects people; 0 if it protects rows
    owners_per_person: int = 1

    def content(self) -> list[str]:
        """Return the fields, in order, as the chain digests them."""
        fields = [str(value) for value in asdict(self).values()]
        return fields if self.rows_per_person else fields[:-2]

    @property
    def spending(self) -> Spending:
        return Spending.of(self.rho if self.delta else self.epsilon, self.delta)

    @property
    def totals(self) -> Totals:
        """What it costs, by whom its study protects."""
        return Totals.of(
            self.spending,
            rows_per_person=self.rows_per_person,
            owners_per_person=self.owners_per_person,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A charge as it stands in the ledger."""

    number: int
    charge: LedgerCharge
    charged_at: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The most this owner spends: on one study, in a calendar year, and over all studies.

    Each holds for every unit that the studies protect: for a row, and for a person.
    """

    per_study: Fraction  # epsilon of a study, at the study's delta
    in_total: Fraction  # epsilon of all studies, at `delta`
    # The most that a study may have, and that holds for all of them together.
    delta: Fraction = Fraction(0)
    # Epsilon of all studies in one calendar year, at `delta`; None if there is no such cap.
    in_year: Fraction | None = None


class Ledger:
    """The ledger in a party's file; open it in one process at a time."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_TABLES)
        there = {name for (name,) in database.rows("SELECT name FROM pragma_table_info('entry')")}
        self._absent = {name: value for name, value in _LATER.items() if name not in there}

    def charge(self, charge: LedgerCharge, caps: Caps | None, charged_at: str) -> bool:
        """Charge a step, durably; false if it was charged before (at the same price).

        What has left already is charged without caps.

        Raises:
            PolicyError: a cap would be passed. Nothing is charged.
            LocalError: the file cannot be written, or the step was charged at another price.
        """
        if min(charge.epsilon, charge.rho, charge.delta) < 0 or (charge.rho and not charge.delta):
            raise LocalError(f"a charge is not negative, and rho has a delta: {charge}")
        with self._file.transaction():
            earlier = self._file.rows(
                "SELECT epsilon, rho, delta FROM entry WHERE study = ? AND step = ?",
                (charge.study, charge.step),
            )
            if earlier:
                paid = tuple(map(Fraction, earlier[0]))
                if paid != (charge.epsilon, charge.rho, charge.delta):
                    raise LocalError(
                        f"step {charge.step!r} of study {charge.study_name!r} was charged "
                        f"{paid[0] or paid[1]} before and would now be charged "
                        f"{charge.spending.paid}"
                    )
                return False
            if caps is not None:
                self._refuse_overspending(charge, caps, self.year(charged_at))
            self._append(charge, charged_at)
        return True

    def _refuse_overspending(self, charge: LedgerCharge, caps: Caps, year: str) -> None:
        if charge.delta > caps.delta:
            raise PolicyError(
                f"step {charge.step!r}: the delta of its study is {charge.delta}, and the owner "
                f"allows at most {caps.delta}"
            )
        spent = self.spending(charge.study)
        if not (spent + charge.spending).within(caps.per_study, charge.delta):
            name = f"study {charge.study_name!r}"
            raise _overspent(charge, spent, charge.spending, caps.per_study, name)
        for what, totals, cap in (
            ("all studies together", self.totals(), caps.in_total),
            (f"all studies in {year}", self.totals(year=year), caps.in_year),
        ):
            for unit, paid, more in totals.passing(charge.totals, cap=cap, delta=caps.delta):
                raise _overspent(charge, paid, more, cap, f"{what}, by a {unit}")

    def _append(self, charge: LedgerCharge, charged_at: str) -> None:
        ((number,),) = self._file.rows("SELECT COALESCE(MAX(number), 0) + 1 FROM entry")
        digest = _digest(self.head(), number, [*charge.content(), charged_at])
        self._file.write(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number, charge.study, charge.study_name, charge.step, charge.mechanism,
                str(charge.epsilon), str(charge.rho), str(charge.delta), charged_at, digest,
                charge.rows_per_person, charge.owners_per_person,
            ),
        )  # fmt: skip

    def year(self, at: str) -> str:
        """Return the calendar year, in UTC, that a charge at a time counts for.

        A clock that was set back finds no earlier year with room in it: the year of the newest
        entry is the least.
        """
        newest = self._file.rows("SELECT MAX(SUBSTR(charged_at, 1, 4)) FROM entry")[0][0]
        return max(at[:4], newest or "")

    def spending(self, study: str) -> Spending:
        """Return what one study cost a row, or a person: whom it protects."""
        return Spending.together(
            entry.charge.spending for entry in self.entries() if entry.charge.study == study
        )

    def totals(self, *, besides: str | None = None, year: str | None = None) -> Totals:
        """Return what all studies, or all but one, cost rows and people; in one year, or in all."""
        return Totals.together(
            entry.charge.totals
            for entry in self.entries()
            if entry.charge.study != besides and year in (None, entry.charged_at[:4])
        )

    def spent(self, study: str | None = None) -> Fraction:
        """Return the epsilon that a study cost, or that all of them together cost a row."""
        paid = self.totals().paid_by(Unit.ROW) if study is None else self.spending(study)
        return paid.epsilon

    def entries(self) -> list[Entry]:
        columns = ", ".join(f"{self._absent.get(name, name)} AS {name}" for name in _COLUMNS)
        query = f"SELECT {columns} FROM entry ORDER BY number"  # noqa: S608  # ours
        return self._file.records(_entry, query, epsilon=Fraction, rho=Fraction, delta=Fraction)

    def head(self) -> str:
        """Return the digest of the newest entry, which stands for the whole ledger."""
        newest = self._file.rows("SELECT digest FROM entry ORDER BY number DESC LIMIT 1")
        return str(newest[0][0]) if newest else _EMPTY_HEAD

    def verify(self) -> None:
        """Recompute the chain; LocalError names the first entry that was changed or moved."""
        if self._file.is_later:
            raise LocalError(
                f"{self._file.path}: a later version of parley wrote this ledger, and this one "
                "cannot recompute its chain. Verify it with the version that wrote it"
            )
        head = _EMPTY_HEAD
        for position, entry in enumerate(self.entries(), start=1):
            content = entry.charge.content()
            if "rho" in self._absent:  # from before 0.2.0, without rho and delta
                content = content[:-2]
            expected = _digest(head, position, [*content, entry.charged_at])
            if entry.number != position or entry.digest != expected:
                raise LocalError(
                    f"{self._file.path}: the ledger was tampered with, since entry {position} does "
                    "not match its digest. Restore it from a backup, and find out who could write "
                    "to it"
                )
            head = entry.digest


def _entry(*, number: int, charged_at: str, digest: str, **charge: Any) -> Entry:  # noqa: ANN401
    return Entry(number=number, charge=LedgerCharge(**charge), charged_at=charged_at, digest=digest)


def _overspent(
    charge: LedgerCharge, spent: Spending, added: Spending, cap: Fraction | None, what: str
) -> PolicyError:
    currency = "rho" if charge.delta else "epsilon"
    return PolicyError(
        f"step {charge.step!r}: its cost, {currency} {added.paid}, passes the owner's cap of "
        f"{cap}, with {spent.words()} already spent on {what}"
    )


def _digest(head: str, number: int, columns: Sequence[str]) -> str:
    content = [head, number, *columns]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
