"""What studies of rows and of people cost, each for its unit, and what one costs the other."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.privacy.spending import Spending
from common.schema import Schema
from common.schema.codes import Codes
from party.sources.people import PeopleLimit, PublicRows, chosen
from party.totals import Totals, Unit, mixture, spent_words

DELTA = Fraction(1, 10**9)
ONE = Spending.of(Fraction(1))
RHO = Spending.of(Fraction(1, 100), DELTA)
SCHEMA = Schema.from_toml("""
attribute = [
  { name = "age", kind = "integer", min = 0, max = 99, bins = 10 },
  { name = "ill", kind = "boolean" },
]
""")


def people(cost, rows=1, owners=1):
    return Totals.of(cost, rows_per_person=rows, owners_per_person=owners)


ROWS = Totals.of(ONE, rows_per_person=0, owners_per_person=1)


@pytest.mark.parametrize(
    ("total", "of_a_row", "of_a_person"),
    [
        (ROWS, ONE, Spending()),
        (people(ONE), ONE.of_rows(2), ONE),
        (people(ONE, rows=2), ONE, ONE),
        (people(ONE, owners=2), ONE, ONE),
        (people(RHO), Spending.of(4 * RHO.rho, DELTA), RHO),
        (people(RHO, rows=3), RHO, RHO),
        (ROWS + people(ONE), Spending((Fraction(1), Fraction(2))), ONE),
    ],
)
def test_each_unit_has_a_total_of_its_own(total, of_a_row, of_a_person):
    assert total.paid_by(Unit.ROW) == of_a_row
    assert total.paid_by(Unit.PERSON) == of_a_person


def test_a_cap_is_for_the_units_that_are_protected():
    assert Totals().units == ROWS.units == (Unit.ROW,)
    assert people(ONE).units == (Unit.PERSON,)
    assert (ROWS + people(ONE)).units == (Unit.ROW, Unit.PERSON)
    passed = list(ROWS.passing(people(ONE), cap=Fraction(2), delta=Fraction(0)))
    assert passed == [(Unit.ROW, ONE, ONE.of_rows(2))]
    assert not list(people(ONE).passing(people(ONE), cap=Fraction(2), delta=Fraction(0)))
    assert not list(ROWS.passing(people(ONE), cap=None, delta=Fraction(0)))


def test_the_totals_are_told_apart():
    assert spent_words(ROWS) == "epsilon 1 of a row"
    assert spent_words(ROWS + people(ONE)) == "epsilon 3 of a row, epsilon 1 of a person"
    assert mixture(ROWS) == mixture(people(ONE)) == ""
    assert "once for each row of the person" in mixture(ROWS + people(ONE))


row = st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 1))


def taking_part(rows, agreed):
    codes = Codes.from_columns([np.array([own[at] for own in rows]) for at in (1, 2)], SCHEMA.sizes)
    kept = codes.take(chosen(codes, [str(own[0]).encode() for own in rows], agreed))
    public = PublicRows(agreed.rows - kept.rows, SCHEMA, agreed.filler)
    counted = np.zeros(SCHEMA.sizes, dtype=np.int64)
    for chunk in (kept, *public.chunks()):
        np.add.at(counted, chunk.columns, 1)
    return counted


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(row, min_size=1, max_size=12),
    other=row,
    total=st.integers(3, 14),
    per_person=st.integers(1, 3),
    key=st.binary(min_size=32, max_size=32),
)
def test_another_row_moves_at_most_two_rows_of_people_and_one_if_the_person_stays(
    rows, other, total, per_person, key
):
    """The lemma of docs/proofs.md: what a study of people costs a row."""
    agreed = PeopleLimit(rows=total, per_person=per_person, key=key, filler=b"f")
    before, after = (taking_part([first, *rows[1:]], agreed) for first in (rows[0], other))
    moved = np.maximum(before - after, 0).sum()
    assert moved <= (1 if rows[0][0] == other[0] else 2)


def test_two_rows_are_moved_by_some_row():
    """The bound is attained: a row's person decides whose other row is pushed out."""
    agreed = PeopleLimit(rows=4, per_person=1, key=b"k" * 32, filler=b"f")
    found = set()
    for age in range(10):
        rows = [(0, age, 0), (1, 5, 0), (1, 6, 1), (2, 3, 1)]
        other = [(1, 9, 1), *rows[1:]]
        before, after = taking_part(rows, agreed), taking_part(other, agreed)
        found.add(int(np.maximum(before - after, 0).sum()))
    assert max(found) == 2
