"""The owner's ledger: charged once, never past the cap, tampering shows."""

import sqlite3
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError, PolicyError
from party.ledger import Caps, Charge, Ledger

CAPS = Caps(per_study=Fraction(1), in_total=Fraction(3, 2))


def charge(step="one-way", epsilon="1/4", study="s1"):
    return Charge(
        study=study,
        study_name=f"study {study}",
        step=step,
        mechanism="discrete Laplace",
        epsilon=Fraction(epsilon),
    )


@pytest.fixture
def ledger(tmp_path):
    opened = Ledger(tmp_path / "ledger.db")
    yield opened
    opened.close()


def test_a_charge_survives_reopening(tmp_path):
    first = Ledger(tmp_path / "ledger.db")
    assert first.charge(charge(), CAPS, "2026-01-01T00:00:00Z")
    head = first.head()
    first.close()
    again = Ledger(tmp_path / "ledger.db")
    assert again.spent() == Fraction(1, 4)
    assert again.head() == head
    again.verify()
    again.close()


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
    with pytest.raises(LocalError, match="nothing was charged"):
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
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.db")
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
    ledger.close()
