"""An owner's no: never worked around by a curator, and never explained to anybody."""

import contextlib
import dataclasses

import pytest

from common.errors import PolicyError
from curator.records import StudyState as CuratorState
from party.approvals import Decision
from tests.integration.consortium import Consortium, Party, Wrapped

NO = Decision(
    approved=False, epsilon=0, reason="our rows are of 12 people", decided_by="owner",
    decided_at="now",
)  # fmt: skip


@pytest.fixture
def consortium(tmp_path):
    made = Consortium(tmp_path, ("north", "east"))
    made.curator.start()
    made.node = made.curator.studies.propose(made.study)
    yield made
    made.curator.stop()


class Approving(Wrapped):
    """A curator that says it has our approval."""

    def enrol(self, party, identity):
        invited = self.connection.enrol(party, identity)
        return [dataclasses.replace(each, approved=True) for each in invited]

    def work(self, study, *, received):
        raise AssertionError("a party that declined asks for no work")


def dial_to(party, kind):
    @contextlib.contextmanager
    def dial():
        with Party.dial(party) as connection:
            yield kind(connection)

    return dial


def test_a_declined_study_is_not_worked_on_though_the_curator_says_it_was_approved(consortium):
    north = consortium.parties["north"]
    with north.house() as house:
        house.approvals.decide(consortium.study.digest, NO)
    with pytest.raises(PolicyError, match="declined"):
        north.attend(consortium.study, dial=dial_to(north, Approving))
    with north.house() as house:
        assert house.journal.studies() == []
        assert house.ledger.spent() == 0


def test_a_declined_study_is_over_for_the_party_when_it_is_closed_already(consortium):
    north = consortium.parties["north"]
    with north.house() as house:
        house.approvals.decide(consortium.study.digest, NO)
    consortium.node.abort("given up")
    with pytest.raises(PolicyError, match="declined"):
        north.attend(consortium.study)


def test_the_curator_is_told_one_sentence_whatever_the_owner_wrote(consortium):
    north = consortium.parties["north"]
    with north.house() as house:
        house.approvals.decide(consortium.study.digest, NO)
    with pytest.raises(PolicyError):
        north.attend(consortium.study)
    record = consortium.node.record
    assert record.state is CuratorState.REFUSED
    assert record.cause == "party 'north' declined: the owner does not take part in this study"


def test_an_owner_who_declines_while_the_node_waits_is_not_quoted_either(consortium):
    north = consortium.parties["north"]
    north.policy = dataclasses.replace(north.policy, automatic=False)

    def decline_meanwhile(seconds):
        with north.house() as house:  # as another process would
            house.approvals.decide(consortium.study.digest, NO)
        return False

    north.stopping.wait = decline_meanwhile
    with pytest.raises(PolicyError, match="declined"):
        north.attend(consortium.study)
    assert "12 people" not in consortium.node.record.cause
