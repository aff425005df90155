"""What an owner's studies cost, by whom they protect: a row, or a person.

A study promises its epsilon to one row or, with `rows_per_person`, to one person: two different
changes of the owner's table. So the costs of both kinds are never added up as if they were one.
What one kind costs the other's unit is bounded in docs/proofs.md, "Rows and people in one ledger":

* A study of people with k rows at each of m owners costs a row no more than a person; where
  k m = 1, as much as two persons, because another row in place of one may be another person's.
* A study of rows costs a person with j rows as much as j rows. Nothing limits j there.

So all studies together have a bound for a row, and the studies of people one for a person. An
owner's cap holds for both: for each unit that one of the studies protects.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from common.privacy.spending import Spending

_NOTHING = Spending()


class Unit(enum.StrEnum):
    """Whom a study protects."""

    ROW = "row"
    PERSON = "person"

    @classmethod
    def of(cls, rows_per_person: int) -> Unit:
        """Return the unit of a study with so many rows per person; 0 is a study of rows."""
        return cls.PERSON if rows_per_person else cls.ROW


@dataclass(frozen=True, slots=True)
class Totals:
    """Costs of some steps, of one study or of many."""

    of_rows: Spending = _NOTHING  # of the studies of rows: what they cost a row
    of_people: Spending = _NOTHING  # of the studies of people: what they cost a person
    people_to_a_row: Spending = _NOTHING  # of the studies of people: what they cost a row

    @classmethod
    def of(cls, cost: Spending, *, rows_per_person: int, owners_per_person: int) -> Totals:
        """Return the cost of a study; no rows per person make it a study of rows."""
        if not rows_per_person:
            return cls(of_rows=cost)
        two_rows = cost.of_rows(2) if rows_per_person * owners_per_person == 1 else cost
        return cls(of_people=cost, people_to_a_row=two_rows)

    @classmethod
    def together(cls, parts: Iterable[Totals]) -> Totals:
        listed = list(parts)
        return cls(
            Spending.together(part.of_rows for part in listed),
            Spending.together(part.of_people for part in listed),
            Spending.together(part.people_to_a_row for part in listed),
        )

    def __add__(self, other: Totals) -> Totals:
        return Totals.together((self, other))

    def paid_by(self, unit: Unit) -> Spending:
        """Return a row's bound over all studies, or a person's over the studies of people."""
        return self.of_people if unit is Unit.PERSON else self.of_rows + self.people_to_a_row

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units that these studies protect, a row without studies: a cap holds for each."""
        protected = {Unit.ROW: self.of_rows, Unit.PERSON: self.of_people}
        units = tuple(unit for unit, spending in protected.items() if spending != _NOTHING)
        return units or (Unit.ROW,)

    def passing(
        self, added: Totals, *, cap: Fraction | None, delta: Fraction
    ) -> Iterator[tuple[Unit, Spending, Spending]]:
        """Yield each unit whose cap `added` would pass: what it paid before, and what is added."""
        if cap is None:
            return
        for unit in (self + added).units:
            paid, more = self.paid_by(unit), added.paid_by(unit)
            if not (paid + more).within(cap, delta):
                yield unit, paid, more


def spent_words(totals: Totals) -> str:
    """Return what each unit paid, for people to read."""
    return ", ".join(f"{totals.paid_by(unit).words()} of a {unit}" for unit in totals.units)


def mixture(totals: Totals) -> str:
    """Say how the two totals are to be read, where there are studies of both kinds."""
    if len(totals.units) < len(Unit):
        return ""
    rows, people = totals.of_rows.words(), totals.people_to_a_row.words()
    return (
        f"The total of a row is {rows} for studies of rows and {people} for studies of people. The "
        "total of a person is for studies of people alone: studies of rows come on top, once for "
        "each row of the person."
    )
