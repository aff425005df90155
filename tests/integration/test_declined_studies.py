"""An owner's no: never worked around by a curator, and never explained to anybody."""

import contextlib
import dataclasses
import threading
import time
from fractions import Fraction

import pytest

from common.errors import PolicyError
from common.study.signatures import approval_statement
from common.wire import codec
from curator.store.records import StudyState
from party.journal import JournalState
from party.owner.decisions import OwnerDecision
from tests.harness.consortium import Wrapped, wrapping

NO = OwnerDecision(
    approved=False, epsilon=Fraction(0), reason="our rows are of 12 people", decided_by="owner",
    decided_at="now",
)  # fmt: skip


class Approving(Wrapped):
    """A curator that says it has our approval."""

    def enrol(self, party, identity, **options):
        invited = self.connection.enrol(party, identity, **options)
        return [dataclasses.replace(each, approved=True) for each in invited]

    def work(self, study, *, received):
        raise AssertionError("a party that declined asks for no work")


def test_a_declined_study_is_not_worked_on_though_the_curator_says_it_was_approved(consortium):
    north = consortium.parties["north"]
    with north.context() as context:
        context.approvals.decide(consortium.study.digest, NO)
    with pytest.raises(PolicyError, match="declined"):
        north.attend(consortium.study, dial=wrapping(north, Approving))
    with north.context() as context:
        assert context.journal.studies() == []
        assert context.ledger.spent() == 0


def test_a_declined_study_is_over_for_the_party_when_it_is_closed_already(consortium):
    north = consortium.parties["north"]
    with north.context() as context:
        context.approvals.decide(consortium.study.digest, NO)
    consortium.session.abort("given up")
    assert north.attend(consortium.study) is JournalState.ABORTED


def test_the_curator_is_told_one_sentence_whatever_the_owner_wrote(consortium):
    north = consortium.parties["north"]
    with north.context() as context:
        context.approvals.decide(consortium.study.digest, NO)
    with pytest.raises(PolicyError):
        north.attend(consortium.study)
    record = consortium.session.record
    assert record.state is StudyState.REFUSED
    assert record.cause == "party 'north' declined: the owner does not take part in this study"


def test_an_owner_who_declines_while_the_node_waits_is_not_quoted_either(consortium):
    north = consortium.parties["north"]
    north.policy = dataclasses.replace(north.policy, automatic=False)

    def decline_meanwhile(seconds):
        with north.context() as context:  # as another process would
            context.approvals.decide(consortium.study.digest, NO)
        return False

    north.stopping.wait = decline_meanwhile
    with pytest.raises(PolicyError, match="declined"):
        north.attend(consortium.study)
    assert "12 people" not in consortium.session.record.cause


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def withdraw(party, study):
    """Withdraw as the command does, in another process."""
    with party.context() as context:
        context.approvals.decide(study.digest, NO)


@contextlib.contextmanager
def joined(party):
    """Make a node that looks again for decisions, as `parley party join` does."""
    endings = {}

    def attend():
        with party.context() as context:
            endings.update(party.manager(context).run(once=True))

    running = threading.Thread(target=attend)
    running.start()
    try:
        yield endings
        running.join(timeout=30)
        assert not running.is_alive()
    finally:
        party.stopping.set()
        running.join(timeout=30)


def test_an_owner_withdraws_before_the_study_begins_and_nothing_was_charged(consortium):
    north, digest = consortium.parties["north"], consortium.study.digest
    with joined(north) as endings:
        wait_for(lambda: "north" in consortium.curator.store.approvals(digest))
        withdraw(north, consortium.study)
    assert endings == {digest: JournalState.ABORTED}
    record = consortium.session.record
    assert record.state is StudyState.REFUSED
    assert record.cause == "party 'north' withdrew: the owner does not take part in this study"
    with north.context() as context:
        assert context.ledger.entries() == []
        assert context.journal.sent_log() == []


def test_an_owner_withdraws_while_others_are_waited_for_and_the_charge_stays(consortium):
    north, east = consortium.parties.values()
    digest, store = consortium.study.digest, consortium.curator.store
    with east.dial() as connection:  # and never answers
        statement = approval_statement(study=digest, party="east")
        connection.approve(digest, east.identity.sign(statement))
    with joined(north) as endings:
        wait_for(lambda: store.inbox.newest(digest, "north") > 0)
        withdraw(north, consortium.study)
    assert endings == {digest: JournalState.ABORTED}
    assert "party 'north' withdrew" in consortium.session.record.cause
    last = store.outbox.next(digest, "east", after=store.outbox.newest(digest, "east") - 1)
    assert "party 'north' withdrew" in codec.TO_PARTY.decode(last.body).reason
    with north.context() as context:
        assert context.ledger.spent(digest.hex()) == 1, "what was charged stays charged"
        context.ledger.verify()


def test_a_node_that_starts_after_its_owner_withdrew_ends_the_study_and_wipes_its_keys(consortium):
    north, east = consortium.parties.values()
    digest, store = consortium.study.digest, consortium.curator.store
    with east.dial() as connection:
        statement = approval_statement(study=digest, party="east")
        connection.approve(digest, east.identity.sign(statement))
    dialer = north.dialer()
    attending = threading.Thread(target=lambda: north.attend(consortium.study, dial=dialer.dial))
    attending.start()
    wait_for(lambda: store.inbox.newest(digest, "north") > 0)
    dialer.hang_up()
    attending.join(timeout=30)
    withdraw(north, consortium.study)
    with joined(north) as endings:
        pass
    assert isinstance(endings[digest], PolicyError)
    assert consortium.session.record.state is StudyState.REFUSED
    with north.context() as context:
        assert context.journal.state(digest) is JournalState.REFUSED
        assert context.ledger.spent(digest.hex()) == 1
        assert context.journal._file.rows("SELECT * FROM step_key") == []


class Told:
    """A hook that remembers."""

    def __init__(self):
        self.events = []

    def tell_later(self, event):
        self.events.append((event["service"], event["event"], event["words"]))


def test_the_owner_is_told_of_a_study_to_decide_about_and_of_its_end(consortium):
    north, hook = consortium.parties["north"], Told()
    north.policy = dataclasses.replace(north.policy, automatic=False)

    def attend():
        with north.context() as context:
            north.manager(dataclasses.replace(context, hook=hook)).run(once=True)

    running = threading.Thread(target=attend)
    running.start()
    try:
        wait_for(lambda: hook.events)
        consortium.session.abort("given up")
    finally:
        running.join(timeout=30)
    assert hook.events[0] == ("party north", "to decide", "test")
