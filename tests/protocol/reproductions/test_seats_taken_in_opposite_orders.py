"""Waiting takes no seat: more studies than seats all end, in whatever order parties meet them."""

import contextlib
import dataclasses
import logging
import threading
import time
from fractions import Fraction

import pytest

from common.errors import InputError, LocalError, PolicyError
from common.wire.catalogue import ErrorCode, WireError
from curator.store.records import StudyState
from party.client.turn import Limits
from party.journal import JournalState
from party.owner.decisions import OwnerDecision
from tests.harness.consortium import Crash, Rows, Wrapped, wrapping

YES = OwnerDecision(
    approved=True, epsilon=Fraction(100), reason="", decided_by="owner", decided_at="now"
)
QUICK = Limits(idle_s=0.05, turn_s=0.2, listening_s=60.0)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def propose(consortium, number):
    """Studies that differ in their names, the oldest first."""
    studies = [dataclasses.replace(consortium.study, name=f"study {i}") for i in range(number)]
    return [consortium.curator.studies.propose(each) for each in studies]


class NewestFirst(Wrapped):
    """A curator that lists the studies the other way round."""

    def enrol(self, party, identity, **options):
        return self.connection.enrol(party, identity, **options)[::-1]


class WrappingDialer:
    """A dialer whose connections are of a kind."""

    def __init__(self, dialer, kind):
        self.dialer, self.kind = dialer, kind
        self.hang_up = dialer.hang_up

    @contextlib.contextmanager
    def dial(self):
        with self.dialer.dial() as connection:
            yield self.kind(connection)


@contextlib.contextmanager
def joined(party, **changes):
    """A node that takes part in everything until the block ends."""
    endings = {}

    def run():
        with party.context() as context:
            endings.update(party.manager(context, limits=QUICK, **changes).run(once=False))

    running = threading.Thread(target=run)
    running.start()
    try:
        yield endings
    finally:
        party.stopping.set()
        running.join(timeout=60)
    assert not running.is_alive()


def test_more_studies_than_seats_met_in_opposite_orders_all_end_in_releases(consortium):
    north, east = consortium.parties.values()
    nodes = [consortium.session, *propose(consortium, 8)]
    reversing = WrappingDialer(east.dialer(), NewestFirst)
    with joined(north, seats=2), joined(east, seats=2, dialer=reversing):
        wait_for(lambda: all(node.record.state is StudyState.DONE for node in nodes))
        wait_for(lambda: all(ended(party) == len(nodes) for party in (north, east)))
    digests = {node.study.digest for node in nodes}
    assert len(consortium.curator.outcomes) == len(nodes)
    for party in (north, east):
        with party.context() as context:
            spent = {context.ledger.spent(digest.hex()) for digest in digests}
        assert len(spent) == 1, "every study cost the same"


def ended(party):
    with party.context() as context:
        return sum(each.state is JournalState.FINISHED for each in context.journal.studies())


def test_studies_that_their_owner_has_not_decided_about_keep_no_seat_from_an_approved_one(
    consortium, caplog
):
    caplog.set_level(logging.INFO, "party")
    nodes = [consortium.session, *propose(consortium, 3)]
    for party in consortium.parties.values():
        party.policy = dataclasses.replace(party.policy, automatic=False)
    north, east = consortium.parties.values()
    with joined(north, seats=1), joined(east, seats=1):
        wait_for(lambda: caplog.text.count("waits for its owner") == 2 * len(nodes))
        last = consortium.curator.studies.propose(
            dataclasses.replace(consortium.study, name="approved by both")
        )
        for party in (north, east):
            with party.context() as context:  # as another process would
                context.approvals.decide(last.study.digest, YES)
        wait_for(lambda: last.record.state is StudyState.DONE)
    assert {node.record.state for node in nodes} == {StudyState.WAITING}


def test_a_party_that_never_comes_keeps_no_seat_of_the_others(gathering):
    consortium = gathering(3)
    stuck = [consortium.session, *propose(consortium, 2)]
    north, east, _ = consortium.parties.values()
    members = consortium.study.members[:2]
    with joined(north, seats=1), joined(east, seats=1):
        wait_for(lambda: all(node.waiting_for == ("south",) for node in stuck))
        last = consortium.curator.studies.propose(
            dataclasses.replace(consortium.study, name="of two", members=members)
        )
        wait_for(lambda: last.record.state is StudyState.DONE)


def test_messages_are_delivered_at_once_while_there_are_seats(consortium):
    """Not when the nodes look again, which is tomorrow."""
    north, east = consortium.parties.values()
    with joined(north, look_again_s=86400.0), joined(east, look_again_s=86400.0):
        wait_for(lambda: consortium.session.record.state is StudyState.DONE)


def test_no_seat_left_is_said_once_and_the_owner_sees_which_study_waits(consortium, caplog):
    caplog.set_level(logging.INFO, "party")
    propose(consortium, 1)
    north, reading, readable = consortium.parties["north"], threading.Event(), threading.Event()

    class SlowRows(Rows):
        def __init__(self, table):
            reading.set()
            assert readable.wait(60)
            super().__init__(table)

    north.rows = SlowRows
    with joined(north, seats=1), north.context() as context:
        assert reading.wait(60)
        wait_for(context.notes.all)
        ((study, words),) = context.notes.all().items()
        assert words.startswith("waits for a seat (since ")
        assert study != consortium.study.digest, "the oldest comes first"
        readable.set()
        wait_for(lambda: not context.notes.all())
    said = [each.message for each in caplog.records if "no seat is left" in each.message]
    assert said == [
        "no seat is left: all 1 are taken, studies that wait for one: 1 (the setting is `seats`)"
    ]


def test_a_curator_in_trouble_is_waited_out_when_studies_are_looked_for(consortium, monkeypatch):
    curator, failures = consortium.curator, []
    look = curator.studies.summaries

    def failing(party, **options):
        failures.append(party)
        if len(failures) <= 15:
            raise LocalError("the disk is full")
        return look(party, **options)

    monkeypatch.setattr(curator.studies, "summaries", failing)
    north = consortium.parties["north"]
    with joined(north):
        wait_for(lambda: "north" in curator.store.approvals(consortium.study.digest))
    assert len(failures) > 15


def test_a_curator_that_stays_in_trouble_is_given_up_on_after_the_attempts(consortium, monkeypatch):
    def failing(party, **options):
        raise LocalError("the disk is full")

    monkeypatch.setattr(consortium.curator.studies, "summaries", failing)
    north = consortium.parties["north"]
    north.backoff = lambda: type(north).backoff(north, attempts=12)
    with north.context() as context, pytest.raises(WireError) as refusal:
        north.manager(context).run(once=True)
    assert refusal.value.code is ErrorCode.INTERNAL


def test_an_acknowledgement_lost_at_the_very_end_is_made_up_for(consortium):
    north, east = consortium.parties.values()
    store, digest = consortium.curator.store, consortium.study.digest

    class DyingUnacknowledged(Wrapped):
        """Dies when the study is over, before the curator hears that all of it arrived."""

        def acknowledge(self, study, received):
            if store.record(study).state is StudyState.DONE:
                raise Crash
            self.connection.acknowledge(study, received)

    north.dial = wrapping(north, DyingUnacknowledged)
    with joined(east):
        with pytest.raises(Crash):
            north.attend(consortium.study)
        with north.context() as context:
            assert context.journal.state(digest) is JournalState.FINISHED
        assert store.outbox.acknowledged(digest, "north") < store.outbox.newest(digest, "north")
        with joined(north):
            wait_for(
                lambda: (
                    store.outbox.acknowledged(digest, "north")
                    == store.outbox.newest(digest, "north")
                )
            )
        wait_for(
            lambda: store.outbox.acknowledged(digest, "east") == store.outbox.newest(digest, "east")
        )
    assert consortium.curator.database.rows("SELECT COUNT(*) FROM content") == [(0,)]


def test_while_rows_cannot_be_read_every_study_waits_alike_and_then_goes_on(consortium, caplog):
    caplog.set_level(logging.INFO, "party")
    refused = consortium.curator.studies.propose(
        dataclasses.replace(consortium.study, name="outside the policy", epsilon=Fraction(500))
    )
    north, broken = consortium.parties["north"], threading.Event()
    calls = []

    class Watching(Wrapped):
        def __getattr__(self, name):
            calls.append(name)
            return getattr(self.connection, name)

    def check_source():
        if broken.is_set():
            raise InputError("rows.csv, line 7: 'Smith'")

    broken.set()
    north.check_source = check_source
    watched = WrappingDialer(north.dialer(), Watching)
    with joined(north, dialer=watched) as endings, north.context() as context:
        wait_for(lambda: len(context.notes.all()) == 2)
        assert all("rows cannot be read" in words for words in context.notes.all().values())
        assert set(calls) == {"enrol"}, "nothing that depends on a study"
        broken.clear()
        wait_for(lambda: refused.record.state is StudyState.REFUSED)
        wait_for(lambda: "cannot go on here" in caplog.text)  # the node knows it, too
        wait_for(lambda: "north" in consortium.curator.store.approvals(consortium.study.digest))
    said = [each.message for each in caplog.records if "our rows" in each.message]
    assert len(said) == 2
    assert isinstance(endings[refused.study.digest], PolicyError)
    assert "Smith" not in caplog.text, "a log is not about rows"


def test_a_node_that_is_to_stop_when_all_is_done_says_that_its_rows_cannot_be_read(consortium):
    north = consortium.parties["north"]

    def check_source():
        raise InputError("rows.csv: is not there")

    north.check_source = check_source
    with north.context() as context, pytest.raises(InputError, match="is not there"):
        north.manager(context).run(once=True)


class OtherRows(Rows):
    """Another table, of as many rows."""

    @property
    def snapshot(self):
        return dataclasses.replace(super().snapshot, digest="other")


class DyingOfApproval(Wrapped):
    """Dies when the curator has the approval."""

    def approve(self, study, signature):
        self.connection.approve(study, signature)
        raise Crash


class DyingBeforeApproval(Wrapped):
    """Dies before the approval leaves."""

    def approve(self, study, signature):
        raise Crash


def test_rows_that_change_between_the_approval_and_the_beginning_are_noticed(consortium):
    north = consortium.parties["north"]
    with pytest.raises(Crash):
        north.attend(consortium.study, dial=wrapping(north, DyingOfApproval))
    north.rows = OtherRows
    with joined(consortium.parties["east"]), pytest.raises(Exception, match="the data changed"):
        north.attend(consortium.study)
    with north.context() as context:
        assert context.ledger.entries() == []


def test_rows_may_change_before_the_approval_left(consortium):
    north = consortium.parties["north"]
    with pytest.raises(Crash):
        north.attend(consortium.study, dial=wrapping(north, DyingBeforeApproval))
    north.rows = OtherRows
    with joined(consortium.parties["east"]):
        assert north.attend(consortium.study) is JournalState.FINISHED
