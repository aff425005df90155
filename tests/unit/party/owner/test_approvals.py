"""A decision is made once."""

import dataclasses
from fractions import Fraction

import pytest

from common.errors import PolicyError
from common.service.database import Database
from party.owner.approvals import Approvals, Decision

STUDY = bytes(32)
LATER = "2026-11-18T10:00:00+00:00"
YES = Decision(
    approved=True,
    epsilon=Fraction(1, 3),
    reason="",
    decided_by="owner",
    decided_at="2026-11-17T10:00:00+00:00",
)


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


NO = dataclasses.replace(YES, approved=False, epsilon=Fraction(0), decided_at=LATER)


def test_a_no_is_not_taken_back(approvals):
    approvals.decide(STUDY, NO)
    with pytest.raises(PolicyError, match="was declined on 2026-11-18"):
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
