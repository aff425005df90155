"""An owner's yes is for what was shown; a no ends it, and says what it has cost."""

import dataclasses
from fractions import Fraction
from types import SimpleNamespace

import pytest

from common.errors import PolicyError
from common.privacy.randomness import SeededRandomSource
from common.service.database import Database
from party.journal import Journal, JournalState
from party.ledger import Caps, Ledger, LedgerCharge
from party.owner.decisions import (
    Approvals,
    OwnerDecision,
    approve,
    decline,
    in_words,
    rows_in_words,
    withdrawal_means,
)

STUDY = bytes(32)
NOW, LATER = "2026-11-17T10:00:00+00:00", "2026-11-18T10:00:00+00:00"
YES = OwnerDecision(approved=True, epsilon=Fraction(1, 3), decided_at=NOW)
NO = OwnerDecision(approved=False, decided_at=LATER)


def review(*reasons):
    return SimpleNamespace(digest=STUDY.hex(), charged=Fraction(1, 3), reasons_against=reasons)


@pytest.fixture
def books(tmp_path):
    with Database(tmp_path / "party.db") as file:
        yield SimpleNamespace(
            approvals=Approvals(file),
            journal=Journal(file, SeededRandomSource("books")),
            ledger=Ledger(file),
        )


def pay(books):
    charge = LedgerCharge(
        study=STUDY.hex(), study_name="s", step="margins", mechanism="m", epsilon=Fraction(1, 4)
    )
    books.ledger.charge(charge, Caps(per_study=Fraction(9), in_total=Fraction(9)), NOW)


def decline_it(books):
    decline(STUDY, **vars(books), reason="a doubt", at=LATER)


def test_what_is_approved_is_the_cost_that_was_shown(books):
    approve(books.approvals, review(), at=NOW)
    decision = books.approvals.decision(STUDY)
    assert (decision.approved, decision.epsilon, decision.decided_by) == (
        True,
        Fraction(1, 3),
        "owner",
    )
    assert in_words(decision) == "approved by the owner on 2026-11-17 10:00:00 UTC"


def test_what_the_policy_refuses_cannot_be_approved_and_every_reason_is_said(books):
    with pytest.raises(PolicyError, match="- too dear\n- too large"):
        approve(books.approvals, review("too dear", "too large"), at=NOW)
    assert books.approvals.decision(STUDY) is None


def test_a_study_that_was_never_approved_is_declined_and_costs_nothing(books):
    decline_it(books)
    decision = books.approvals.decision(STUDY)
    assert (decision.approved, decision.reason, decision.withdrawn_at) == (False, "a doubt", None)
    assert in_words(decision) == "declined by the owner on 2026-11-18 10:00:00 UTC"


def test_withdrawing_says_what_has_left_and_stays_charged(books):
    approve(books.approvals, review(), at=NOW)
    books.journal.begin(STUDY, name="health", data_digest="x", at=NOW)
    told = withdrawal_means(STUDY, journal=books.journal, ledger=books.ledger)
    assert told.startswith("Nothing was charged: no answer of ours has left.")
    pay(books)
    told = withdrawal_means(STUDY, journal=books.journal, ledger=books.ledger)
    assert told.startswith("Epsilon 0.25 was charged for what has left, and stays charged")
    decline_it(books)
    assert books.approvals.decision(STUDY).withdrawn_at == LATER


@pytest.mark.parametrize("ending", [JournalState.FINISHED, JournalState.ABORTED])
def test_there_is_nothing_to_withdraw_from_once_it_is_over(books, ending):
    approve(books.approvals, review(), at=NOW)
    books.journal.begin(STUDY, name="health", data_digest="x", at=NOW)
    pay(books)
    books.journal.end(STUDY, ending, reason="", at=NOW)
    with pytest.raises(PolicyError, match=f"'health': it is over for us .{ending.value}."):
        decline_it(books)
    assert books.approvals.decision(STUDY).approved


def test_undecided_and_other_rows_are_said_in_words():
    assert in_words(None) == "not decided"
    assert rows_in_words("") == ""
    assert "seen on 2026-11-18 10:00:00 UTC" in rows_in_words(LATER)
    withdrawn = OwnerDecision(
        approved=False, epsilon=Fraction(0), reason="", decided_by="owner", decided_at=NOW,
        withdrawn_at=LATER,
    )  # fmt: skip
    assert in_words(withdrawn).endswith("withdrawn on 2026-11-18 10:00:00 UTC")


@pytest.fixture
def approvals(tmp_path):
    database = Database(tmp_path / "party.db")
    yield Approvals(database)
    database.close()


def test_nothing_is_decided_by_itself(approvals):
    assert approvals.decision(STUDY) is None


def test_a_decision_is_kept_to_the_fraction(approvals):
    approvals.decide(STUDY, YES)
    approvals.decide(STUDY, dataclasses.replace(YES, decided_at=LATER))
    assert approvals.decision(STUDY) == YES, "the first one counts"


def test_a_no_is_not_taken_back(approvals):
    approvals.decide(STUDY, NO)
    with pytest.raises(PolicyError, match="was declined by the owner on 2026-11-18"):
        approvals.decide(STUDY, YES)
    assert approvals.decision(STUDY) == NO


def test_a_no_after_a_yes_withdraws_it_for_good_and_both_are_remembered(approvals):
    approvals.decide(STUDY, YES)
    for at in (LATER, "2026-11-19T10:00:00+00:00"):
        approvals.decide(STUDY, dataclasses.replace(NO, reason="a doubt", decided_at=at))
    withdrawn = dataclasses.replace(YES, approved=False, reason="a doubt", withdrawn_at=LATER)
    assert approvals.decision(STUDY) == withdrawn
    with pytest.raises(PolicyError, match="was withdrawn on 2026-11-18"):
        approvals.decide(STUDY, YES)
