"""A decision is made once."""

import dataclasses
from fractions import Fraction

import pytest

from common.database import Database
from common.errors import PolicyError
from party.approvals import Approvals, Decision

STUDY = bytes(32)
YES = Decision(
    approved=True, epsilon=Fraction(1, 3), reason="", decided_by="owner", decided_at="now"
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
    approvals.decide(STUDY, dataclasses.replace(YES, decided_at="later"))
    assert approvals.decision(STUDY) == YES, "the first one counts"


def test_a_decision_is_not_taken_back(approvals):
    approvals.decide(STUDY, YES)
    with pytest.raises(PolicyError, match="was approved on now"):
        approvals.decide(STUDY, dataclasses.replace(YES, approved=False))
    assert approvals.decision(STUDY) == YES
