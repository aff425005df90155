"""What this owner has spent, on what, and when: durable, append-only and tamper-evident.

A table in the party's SQLite file. A charge is on disk (fsync) when `charge` returns or, inside a
transaction of the caller's, when that ends; so the shell charges first and sends afterwards.
Charging the same step of the same study again is recognised and costs nothing: the answer was drawn
once, and asked again it is the same answer.

Entries are chained: each carries the SHA-256 of its own content and of the entry before it, so a
changed, removed or reordered entry breaks the chain from there on, and `verify` says where. An
attacker who can rewrite the whole file can rewrite the whole chain; so note `head` down elsewhere
now and then.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from fractions import Fraction

from common.errors import LocalError, PolicyError
from common.privacy.spending import Spending
from common.service.database import Database

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
    UNIQUE (study, step)
) STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One step of one study, and what it costs this party's rows."""

    study: str  # its digest, in hexadecimal
    study_name: str
    step: str
    mechanism: str  # what draws the answer
    # What it costs under pure epsilon; 0 under a promise with a delta.
    epsilon: Fraction = Fraction(0)
    # What it costs under a promise with a delta (`common.privacy.spending`).
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)  # of that promise

    def columns(self) -> list[str]:
        """Return the fields, in order, as the table has them and the chain digests them."""
        return [str(value) for value in asdict(self).values()]

    @property
    def spending(self) -> Spending:
        return Spending.of(self.rho if self.delta else self.epsilon, self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A charge as it stands in the ledger."""

    number: int
    charge: Charge
    charged_at: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The most this owner spends: on one study, in a calendar year, and over all studies."""

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

    def charge(self, charge: Charge, caps: Caps | None, charged_at: str) -> bool:
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

    def _refuse_overspending(self, charge: Charge, caps: Caps, year: str) -> None:
        if charge.delta > caps.delta:
            raise PolicyError(
                f"step {charge.step!r}: the delta of its study is {charge.delta}, and the owner "
                f"allows at most {caps.delta}"
            )
        currency = "rho" if charge.delta else "epsilon"
        for what, spent, cap, delta in (
            (f"study {charge.study_name!r}", self.spending(charge.study), caps.per_study,
             charge.delta),
            ("all studies together", self.spending(), caps.in_total, caps.delta),
            (f"all studies in {year}", self.spending(year=year), caps.in_year, caps.delta),
        ):  # fmt: skip
            if cap is not None and not (spent + charge.spending).within(cap, delta):
                raise PolicyError(
                    f"step {charge.step!r}: its cost, {currency} {charge.spending.paid}, passes "
                    f"the owner's cap of {cap}, with {spent.words()} already spent on {what}"
                )

    def _append(self, charge: Charge, charged_at: str) -> None:
        ((number,),) = self._file.rows("SELECT COALESCE(MAX(number), 0) + 1 FROM entry")
        digest = _digest(self.head(), number, charge, charged_at)
        self._file.write(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, *charge.columns(), charged_at, digest),
        )

    def year(self, at: str) -> str:
        """Return the calendar year, in UTC, that a charge at a time counts for.

        A clock that was set back finds no earlier year with room in it: the year of the newest
        entry is the least.
        """
        newest = self._file.rows("SELECT MAX(SUBSTR(charged_at, 1, 4)) FROM entry")[0][0]
        return max(at[:4], newest or "")

    def spending(
        self, study: str | None = None, *, besides: str | None = None, year: str | None = None
    ) -> Spending:
        """Return what was spent on one study, or on all of them but one; in one year, or in all."""
        return Spending.together(
            entry.charge.spending
            for entry in self.entries()
            if study in (None, entry.charge.study)
            and entry.charge.study != besides
            and year in (None, entry.charged_at[:4])
        )

    def spent(self, study: str | None = None) -> Fraction:
        """Return the epsilon of what was spent, at the largest delta of its studies."""
        return self.spending(study).epsilon

    def entries(self) -> list[Entry]:
        rows = self._file.rows(
            "SELECT number, study, study_name, step, mechanism, epsilon, rho, delta, charged_at, "
            "digest FROM entry ORDER BY number"
        )
        return [
            Entry(
                number=number,
                charge=Charge(
                    study=study, study_name=study_name, step=step, mechanism=mechanism,
                    epsilon=Fraction(epsilon), rho=Fraction(rho), delta=Fraction(delta),
                ),
                charged_at=charged_at,
                digest=digest,
            )
            for number, study, study_name, step, mechanism, epsilon, rho, delta, charged_at, digest
            in rows
        ]  # fmt: skip

    def head(self) -> str:
        """Return the digest of the newest entry, which stands for the whole ledger."""
        newest = self._file.rows("SELECT digest FROM entry ORDER BY number DESC LIMIT 1")
        return str(newest[0][0]) if newest else _EMPTY_HEAD

    def verify(self) -> None:
        """Recompute the chain; LocalError names the first entry that was changed or moved."""
        head = _EMPTY_HEAD
        for position, entry in enumerate(self.entries(), start=1):
            expected = _digest(head, position, entry.charge, entry.charged_at)
            if entry.number != position or entry.digest != expected:
                raise LocalError(
                    f"{self._file.path}: the ledger was tampered with, since entry {position} does "
                    "not match its digest. Restore it from a backup, and find out who could write "
                    "to it"
                )
            head = entry.digest


def _digest(head: str, number: int, charge: Charge, charged_at: str) -> str:
    content = [head, number, *charge.columns(), charged_at]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
