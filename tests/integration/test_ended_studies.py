"""How studies end before their time, what stays charged, and what both sides count on the way."""

import dataclasses
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from common.errors import RemoteProtocolError
from common.privacy.randomness import OsRandomSource
from common.service.database import Database
from common.study.document import Study
from common.study.signatures import approval_statement
from common.study.transcript import SETTING_UP
from curator.context import ONLINE_FOR_S
from curator.store.records import StudyState, Word
from curator.store.store import KEEP_QUEUES_H, Store
from party.journal import JournalState
from party.owner.decisions import OwnerDecision
from tests.harness.consortium import (
    Consortium,
    Crash,
    Wrapped,
    check_release,
    wrapping,
)


def ask_to_abort(consortium, reason):
    """Ask as the command does: in another process, on the same file."""
    database = Database(consortium.curator.folder / "curator.db")
    Store(database, OsRandomSource()).ask_to_abort(consortium.study.digest, reason, at="now")
    database.close()


def approve(party, study):
    with party.dial() as connection:
        statement = approval_statement(study=study.digest, party=party.name)
        connection.approve(study.digest, party.identity.sign(statement))


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def test_an_aborted_study_ends_for_a_party_at_work_and_its_charge_stays(consortium):
    north, east = consortium.parties.values()
    approve(east, consortium.study)  # and never answers
    ends = []
    attending = threading.Thread(target=lambda: ends.append(north.attend(consortium.study)))
    attending.start()
    store, digest = consortium.curator.store, consortium.study.digest
    wait_for(lambda: store.inbox.newest(digest, "north") > 0)
    ask_to_abort(consortium, "the schema was wrong")
    consortium.curator.studies.open()  # as a running curator does every second
    attending.join(timeout=30)
    assert ends == [JournalState.ABORTED]
    record = consortium.session.record
    assert record.state is StudyState.FAILED
    assert record.cause == "ended by the curator's operator: the schema was wrong"
    with north.context() as context:
        assert "the schema was wrong" in context.journal.studies()[0].reason
        assert context.ledger.spent(digest.hex()) == 1, "what was charged stays charged"


def test_an_abort_asked_of_a_stopped_curator_happens_when_it_starts(consortium):
    approve(consortium.parties["north"], consortium.study)
    consortium.curator.stop()
    ask_to_abort(consortium, "nobody came")
    consortium.curator.start()
    record = consortium.curator.store.record(consortium.study.digest)
    assert (record.state, record.abort_asked) == (StudyState.FAILED, "nobody came")


def test_an_owner_who_is_still_thinking_is_not_waited_for_when_the_study_ends(consortium):
    north = consortium.parties["north"]
    north.policy = dataclasses.replace(north.policy, automatic=False)

    def meanwhile(seconds):
        consortium.session.abort("too late")
        return False

    north.stopping.wait = meanwhile
    assert north.attend(consortium.study) is JournalState.ABORTED
    with north.context() as context:
        assert context.ledger.spent() == 0


def test_an_owner_that_is_gone_costs_the_others_nothing_until_it_calls(gathering):
    consortium = gathering(3)
    curator, study = consortium.curator, consortium.study
    approve(consortium.parties["south"], study)  # and dies
    curator.monotonic = lambda: time.monotonic() + ONLINE_FOR_S
    others = {name: consortium.parties[name] for name in ("north", "east")}
    with ThreadPoolExecutor(3) as threads:
        attending = [threads.submit(party.attend, study) for party in others.values()]
        wait_for(lambda: curator.store.record(study.digest).state is StudyState.RUNNING)
        wait_for(lambda: {"north", "east"} <= curator.studies.presence.online())
        (waits,) = curator.store.awaited(study.digest)
        assert (waits.party, waits.word) == ("south", Word.CALL)
        for party in others.values():
            with party.context() as context:
                assert context.ledger.spent() == 0
        attending.append(threads.submit(consortium.parties["south"].attend, study))
        assert {each.result(timeout=60) for each in attending} == {JournalState.FINISHED}
    check_release(consortium)


class Dying(Wrapped):
    """The party dies when it has the first message on disk."""

    def work(self, study, *, received):
        yield next(self.connection.work(study, received=received))
        raise Crash


def test_a_party_that_comes_back_when_its_queue_is_gone_hears_that_the_study_ended(gathering):
    consortium = gathering(1)
    north, store = consortium.parties["north"], consortium.curator.store
    digest = consortium.study.digest
    with pytest.raises(Crash):
        north.attend(consortium.study, dial=wrapping(north, Dying))
    consortium.session.abort("enough")
    store.age_queues(hours=KEEP_QUEUES_H)
    assert store.outbox.next(digest, "north", after=0) is None
    with north.dial() as connection:
        assert connection.enrol("north", b"", with_ended=False) == []
    assert north.attend(consortium.study) is JournalState.ABORTED


class Lying(Wrapped):
    """The curator's first result is not the one that everybody else was told."""

    def work(self, study, *, received):
        for whole in self.connection.work(study, received=received):
            if whole.sequence == 3:
                yield dataclasses.replace(whole, body=whole.body[:-3])
            else:
                yield whole


def test_a_party_that_is_told_nonsense_ends_the_study_for_everybody(consortium):
    north, east = consortium.parties.values()
    ends = []
    other = threading.Thread(target=lambda: ends.append(east.attend(consortium.study)))
    other.start()
    with pytest.raises(RemoteProtocolError):
        north.attend(consortium.study, dial=wrapping(north, Lying))
    other.join(timeout=30)
    assert ends == [JournalState.ABORTED]
    record = consortium.session.record
    assert record.state is StudyState.REFUSED
    assert "party 'north' refused" in record.cause
    assert "not one that the approved study allows" in record.cause
    with north.context() as context:
        assert context.journal.state(consortium.study.digest) is JournalState.REFUSED


def test_both_sides_count_the_same_bytes_and_rounds_phase_by_phase(consortium):
    assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
    (outcome,) = consortium.curator.outcomes
    phases = outcome.traffic
    assert list(phases) == [SETTING_UP, "counting", "choosing", "replacing"]
    assert [traffic.rounds for traffic in phases.values()] == [0, 1, 1, 3]
    after = consortium.curator.store.traffic.phases(consortium.study.digest)
    for name, party in consortium.parties.items():
        with party.context() as context:
            own = context.journal.traffic.phases(consortium.study.digest)
            left = sum(each.size for each in context.journal.sent_log())
        assert list(own) == list(phases)
        for phase, traffic in own.items():
            assert traffic.rounds == after[phase].rounds
            assert traffic.sent[name] == after[phase].sent[name]
            assert traffic.received[name] == after[phase].received[name] > 0
            assert traffic.seconds >= 0
        assert sum(traffic.sent[name] for traffic in own.values()) == left


def test_a_node_that_stops_blames_nobody(consortium, caplog):
    north, ends = consortium.parties["north"], []

    def run():
        with north.context() as context:
            ends.append(north.manager(context).run(once=False))

    with caplog.at_level(logging.INFO):
        running = threading.Thread(target=run)
        running.start()
        wait_for(lambda: "north" in consortium.curator.store.approvals(consortium.study.digest))
        north.stopping.set()
        running.join(timeout=30)
    assert ends == [{consortium.study.digest: None}]
    assert [record.message for record in caplog.records if record.levelno > logging.INFO] == []
    assert "this node is stopping" in caplog.text


def test_the_log_tells_a_quiet_study_from_beginning_to_end(consortium, caplog):
    """Log a quiet study, and repeat nothing: a silent node looks dead."""
    north, east = consortium.parties.values()
    north.policy = dataclasses.replace(north.policy, automatic=False)
    with caplog.at_level(logging.INFO, "party"), north.context() as context:
        manager = north.manager(context, look_again_s=0.02)
        ends = []
        attending = threading.Thread(target=lambda: ends.append(manager.run(once=True)))
        attending.start()
        wait_for(lambda: "waits for its owner" in caplog.text)
        time.sleep(0.2)  # it looks again, and says nothing of it
        decision = OwnerDecision(
            approved=True, epsilon=consortium.study.epsilon, reason="", decided_by="owner",
            decided_at=context.now(),
        )  # fmt: skip
        context.approvals.decide(consortium.study.digest, decision)
        assert east.attend(consortium.study) is JournalState.FINISHED
        attending.join(timeout=60)
        spent = context.ledger.spent()
    assert ends == [{consortium.study.digest: JournalState.FINISHED}]
    name = f"study {consortium.study.digest.hex()[:16]}"
    said = [record.message for record in caplog.records]
    told = [
        "the curator is reached; studies that list us: 1",
        f"{name} waits for its owner: `parley party approve`, or `decline`",
        f"{name} is approved, and the curator knows",
        f"{name}: finished, epsilon {spent} spent",
    ]
    assert said.count(told[1]) == 1
    assert [message for message in dict.fromkeys(said) if message in told] == told  # east's, too


def test_a_signature_travels_with_the_invitation_and_is_checked_before_anything_is_signed(
    tmp_path,
):
    made = Consortium(tmp_path, ("north",))
    signer = made.parties["north"].identity  # anybody's will do
    north = made.parties["north"]
    north.policy = dataclasses.replace(north.policy, signers=(signer.public.fingerprint,))
    made.curator.start()
    try:
        made.curator.studies.propose(made.study.signed_by(signer))
        with north.dial() as connection:
            text = connection.fetch_study(made.study.digest)
        assert Study.from_toml(text).signer == signer.public.fingerprint
        assert north.attend(made.study) is JournalState.FINISHED
    finally:
        made.curator.stop()
