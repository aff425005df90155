"""The owner's ledger: charged once, never past the cap, tampering shows."""

import sqlite3
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError, PolicyError
from common.privacy.spending import rho_of
from common.service.database import Database
from party.ledger import Caps, Ledger, LedgerCharge
from party.totals import Unit

CAPS = Caps(per_study=Fraction(1), in_total=Fraction(3, 2))


def charge(step="one-way", epsilon="1/4", study="s1", **unit):
    return LedgerCharge(
        study=study,
        study_name=f"study {study}",
        step=step,
        mechanism="discrete Laplace",
        epsilon=Fraction(epsilon),
        **unit,
    )


@pytest.fixture
def ledger(tmp_path):
    opened = Ledger(Database(tmp_path / "ledger.db"))
    yield opened
    opened._file.close()


def test_a_charge_survives_reopening(tmp_path):
    first = Ledger(Database(tmp_path / "ledger.db"))
    assert first.charge(charge(), CAPS, "2026-01-01T00:00:00Z")
    head = first.head()
    first._file.close()
    again = Ledger(Database(tmp_path / "ledger.db"))
    assert again.spent() == Fraction(1, 4)
    assert again.head() == head
    again.verify()
    again._file.close()


def test_the_same_step_is_charged_once(ledger):
    assert ledger.charge(charge(), CAPS, "t1")
    assert not ledger.charge(charge(), CAPS, "t2")
    assert ledger.spent() == Fraction(1, 4)


def test_the_same_step_at_another_price_is_refused(ledger):
    ledger.charge(charge(), CAPS, "t1")
    with pytest.raises(LocalError, match="charged 1/4 before"):
        ledger.charge(charge(epsilon="1/8"), CAPS, "t2")
    assert ledger.spent() == Fraction(1, 4)


@pytest.mark.parametrize(
    ("earlier", "late", "named"),
    [
        ([("a", "3/4", "s1")], ("b", "1/2", "s1"), "study 'study s1'"),
        ([("a", "1", "s1")], ("a", "3/4", "s2"), "all studies"),
    ],
)
def test_overspending_is_refused_and_nothing_is_charged(ledger, earlier, late, named):
    for one in earlier:
        ledger.charge(charge(*one), CAPS, "t")
    before = ledger.head()
    with pytest.raises(PolicyError, match=named):
        ledger.charge(charge(*late), CAPS, "t")
    assert ledger.head() == before


def test_spending_up_to_the_cap_is_allowed(ledger):
    ledger.charge(charge("a", "1/3"), CAPS, "t")
    ledger.charge(charge("b", "2/3"), CAPS, "t")
    assert ledger.spent("s1") == 1


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE entry SET epsilon = '1/100' WHERE number = 2",
        "UPDATE entry SET charged_at = 'never' WHERE number = 2",
        "DELETE FROM entry WHERE number = 2",
        "UPDATE entry SET number = number + 10 WHERE number = 3",
        "UPDATE entry SET digest = (SELECT digest FROM entry WHERE number = 1) WHERE number = 2",
    ],
)
def test_tampering_shows(tmp_path, ledger, tampering):
    for step in "abc":
        ledger.charge(charge(step), CAPS, "t")
    ledger.verify()
    with sqlite3.connect(tmp_path / "ledger.db") as other:
        other.execute(tampering)
    other.close()
    with pytest.raises(LocalError, match="tampered"):
        ledger.verify()


def test_a_file_that_cannot_be_written_charges_nothing(tmp_path, ledger):
    ledger.charge(charge("a"), CAPS, "t")
    blocker = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    ledger._file.rows("PRAGMA busy_timeout=0")
    blocker.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LocalError, match="Nothing was charged"):
        ledger.charge(charge("b"), CAPS, "t")
    blocker.execute("ROLLBACK")
    blocker.close()
    assert ledger.spent() == Fraction(1, 4)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdefgh"),
            st.fractions(min_value=0, max_value=1, max_denominator=50),
            st.sampled_from(["s1", "s2"]),
        ),
        max_size=25,
    )
)
def test_no_sequence_of_charges_passes_a_cap(tmp_path_factory, charges):
    ledger = Ledger(Database(tmp_path_factory.mktemp("ledger") / "ledger.db"))
    for step, epsilon, study in charges:
        try:
            ledger.charge(charge(step, epsilon, study), CAPS, "t")
        except (PolicyError, LocalError):
            continue
    spent = Counter()
    for entry in ledger.entries():
        spent[entry.charge.study] += entry.charge.epsilon
    assert all(epsilon <= CAPS.per_study for epsilon in spent.values())
    assert ledger.spent() <= CAPS.in_total
    ledger.verify()
    ledger._file.close()


DELTA = Fraction(1, 10**9)
BOTH = Caps(per_study=Fraction(1), in_total=Fraction(2), delta=DELTA)


def with_delta(step="a", study="s1", part=Fraction(1), delta=DELTA):
    """A part of what epsilon 1 buys at delta."""
    rho = rho_of(Fraction(1), delta) * part
    return LedgerCharge(
        study=study, study_name=f"study {study}", step=step, mechanism="Skellam", rho=rho,
        delta=delta,
    )  # fmt: skip


def test_both_currencies_survive_reopening_and_are_in_the_chain(tmp_path):
    first = Ledger(Database(tmp_path / "ledger.db"))
    first.charge(with_delta(), BOTH, "t")
    first.charge(charge(study="s2"), BOTH, "t")
    first._file.close()
    with sqlite3.connect(tmp_path / "ledger.db") as file:
        assert file.execute("SELECT rho, delta FROM entry WHERE number = 1").fetchone() == (
            str(rho_of(Fraction(1), DELTA)), str(DELTA),
        )  # fmt: skip
    again = Ledger(Database(tmp_path / "ledger.db"))
    again.verify()
    assert again.spent("s1") == 1
    assert again.spending("s2").paid == Fraction(1, 4)
    assert again.totals(besides="s1").of_rows == again.spending("s2")
    again._file.close()
    with sqlite3.connect(tmp_path / "ledger.db") as file:
        file.execute("UPDATE entry SET rho = '1/100' WHERE number = 1")
    changed = Ledger(Database(tmp_path / "ledger.db"))
    with pytest.raises(LocalError, match="entry 1"):
        changed.verify()
    changed._file.close()


def test_a_study_with_a_delta_may_spend_its_epsilon_and_no_more(ledger):
    ledger.charge(with_delta("a", part=Fraction(1, 3)), BOTH, "t")
    ledger.charge(with_delta("b", part=Fraction(2, 3)), BOTH, "t")
    assert not ledger.charge(with_delta("b", part=Fraction(2, 3)), BOTH, "t")
    with pytest.raises(PolicyError, match="study 'study s1'"):
        ledger.charge(with_delta("c", part=Fraction(1, 10**9)), BOTH, "t")
    assert ledger.spent() == 1


def test_a_delta_that_the_owner_does_not_allow_is_never_charged(ledger):
    for caps in (CAPS, Caps(per_study=Fraction(1), in_total=Fraction(2), delta=DELTA / 10)):
        with pytest.raises(PolicyError, match="the owner allows at most"):
            ledger.charge(with_delta(), caps, "t")
    assert ledger.entries() == []


def test_the_total_is_capped_whatever_the_currency(ledger):
    accepted = 0
    for number in range(20):
        kind = with_delta if number % 2 else charge
        try:
            ledger.charge(kind(step="x", study=f"s{number}"), BOTH, "t")
            accepted += 1
        except PolicyError:
            break
    assert 2 <= accepted < 20
    assert ledger.totals().of_rows.epsilon_at(DELTA) <= BOTH.in_total


def test_rho_without_a_delta_is_no_charge(ledger):
    wrong = LedgerCharge(study="s", study_name="s", step="x", mechanism="m", rho=Fraction(1))
    with pytest.raises(LocalError, match="rho has a delta"):
        ledger.charge(wrong, BOTH, "t")


def test_a_year_has_a_cap_of_its_own_and_a_clock_set_back_finds_no_room_in_an_earlier_one(tmp_path):
    ledger = Ledger(Database(tmp_path / "ledger.db"))
    caps = Caps(per_study=Fraction(9), in_total=Fraction(9), in_year=Fraction(1))

    def charge(step, epsilon, at):
        made = LedgerCharge(study="s", study_name="s", step=step, mechanism="m", epsilon=epsilon)
        return ledger.charge(made, caps, at)

    assert charge("1", Fraction(1), "2026-12-31T23:59:59+00:00")
    passed = "passes the owner's cap of 1, with epsilon 1 already spent on all studies in 2026"
    with pytest.raises(PolicyError, match=passed):
        charge("2", Fraction(1, 100), "2026-12-31T23:59:59+00:00")
    assert charge("2", Fraction(1, 2), "2027-01-01T00:00:00+00:00"), "another year"
    assert ledger.totals(year="2027").of_rows.epsilon == Fraction(1, 2)
    with pytest.raises(PolicyError, match="in 2027"):
        charge("3", Fraction(3, 4), "2025-06-01T00:00:00+00:00")
    assert ledger.spent() == Fraction(3, 2)
    ledger._file.close()


PEOPLE = {"rows_per_person": 1, "owners_per_person": 1}
THREE_ROWS = {"rows_per_person": 3, "owners_per_person": 1}


def test_the_unit_of_a_charge_survives_reopening_and_is_in_the_chain(tmp_path):
    first = Ledger(Database(tmp_path / "ledger.db"))
    first.charge(charge("a", **THREE_ROWS), CAPS, "t")
    first.charge(charge("b", study="s2"), CAPS, "t")
    first._file.close()
    again = Ledger(Database(tmp_path / "ledger.db"))
    again.verify()
    assert [entry.charge.rows_per_person for entry in again.entries()] == [3, 0]
    again._file.close()
    for change, number in (
        ("UPDATE entry SET rows_per_person = 0 WHERE number = 1", 1),
        ("UPDATE entry SET owners_per_person = 2 WHERE number = 1", 1),
        ("UPDATE entry SET rows_per_person = 1 WHERE number = 2", 2),
    ):
        changed = tmp_path / f"changed {number}.db"
        changed.write_bytes((tmp_path / "ledger.db").read_bytes())
        with sqlite3.connect(changed) as file:
            file.execute(change)
        ledger = Ledger(Database(changed))
        with pytest.raises(LocalError, match=f"entry {number}"):
            ledger.verify()
        ledger._file.close()
        changed.unlink()


def test_rows_and_people_are_never_added_up_as_if_they_were_one(ledger):
    ledger.charge(charge("a", "1/4", "rows"), CAPS, "t")
    ledger.charge(charge("b", "1/4", "people", **THREE_ROWS), CAPS, "t")
    ledger.charge(charge("c", "1/4", "single rows of people", **PEOPLE), CAPS, "t")
    totals = ledger.totals()
    assert totals.of_rows.epsilon == Fraction(1, 4)
    assert totals.paid_by(Unit.PERSON).epsilon == Fraction(1, 2)
    # A row that is replaced by another person's pays a study of single rows of people twice.
    assert totals.paid_by(Unit.ROW).epsilon == Fraction(1)


def test_a_cap_holds_for_each_unit_that_a_study_protects(ledger):
    for number in (1, 2):
        ledger.charge(charge("a", "3/4", f"people {number}", **PEOPLE), CAPS, "t")
    with pytest.raises(PolicyError, match="all studies together, by a person"):
        ledger.charge(charge("a", "1/100", "people 3", **PEOPLE), CAPS, "t")
    with pytest.raises(PolicyError, match="by a row"):
        ledger.charge(charge("a", "1/100", "rows"), CAPS, "t")
    assert ledger.totals().units == (Unit.PERSON,)


def test_studies_of_people_count_for_the_rows_that_are_in_a_study_of_rows(ledger):
    ledger.charge(charge("a", "1", "rows"), CAPS, "t")
    with pytest.raises(PolicyError, match=r"epsilon 1, passes .*, by a row"):
        ledger.charge(charge("a", "1/2", "people", **PEOPLE), CAPS, "t")
    assert ledger.charge(charge("a", "1/2", "people of three rows", **THREE_ROWS), CAPS, "t")


AS_IN_0_2_0 = """
CREATE TABLE entry (
    number INTEGER PRIMARY KEY, study TEXT NOT NULL, study_name TEXT NOT NULL, step TEXT NOT NULL,
    mechanism TEXT NOT NULL, epsilon TEXT NOT NULL, rho TEXT NOT NULL, delta TEXT NOT NULL,
    charged_at TEXT NOT NULL, digest TEXT NOT NULL, UNIQUE (study, step)
) STRICT;
PRAGMA user_version=3;
INSERT INTO entry VALUES (1, 's1', 'study s1', 'one-way', 'discrete Laplace', '1/4', '0', '0',
    '2026-01-01T00:00:00Z', 'DIGEST');
"""
# As version 0.2.0 wrote it.
DIGEST_IN_0_2_0 = "d2b5d00654a81c1c71152345fcf8530a16c6fc8cae9bece1c443038f312ebc1b"


def test_a_ledger_of_version_0_2_0_opens_and_its_entries_are_of_rows(tmp_path):
    path = tmp_path / "party.db"
    with sqlite3.connect(path) as file:
        file.executescript(AS_IN_0_2_0.replace("DIGEST", DIGEST_IN_0_2_0))
    for _ in range(2):
        with Database(path) as database:
            ledger = Ledger(database)
            ledger.verify()
            assert ledger.totals().of_rows.epsilon == Fraction(1, 4)
            assert ledger.totals().units == (Unit.ROW,)
            assert not ledger.charge(charge(), CAPS, "2026-01-02T00:00:00Z")
    with Database(path) as database:
        ledger = Ledger(database)
        assert ledger.charge(charge("next", **THREE_ROWS), CAPS, "2026-01-02T00:00:00Z")
        ledger.verify()
        assert ledger.totals().units == (Unit.ROW, Unit.PERSON)
