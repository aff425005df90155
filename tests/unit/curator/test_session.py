"""The curator's shell stores before it acts, and comes back from every crash to the same."""

import datetime as dt
import os
import signal
import stat
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from common.crypto.sums.plan import Aggregation
from common.errors import LocalError, RemoteProtocolError
from common.study.messages import MOST_TEXT, PartyRefused
from common.wire import codec
from common.wire.catalogue import ErrorCode, WireError
from curator.store.records import StudyState
from tests.harness.disks import remove_state
from tests.harness.forked import exit_code, fork
from tests.harness.small_study import make_study
from tests.unit.curator.conftest import HOUR, Parties, queues, share, start

WRITES = ("BEGIN", "INSERT", "UPDATE", "DELETE", "COMMIT", "PRAGMA wal_checkpoint")


def run_through(stage, tables):
    """Run a study to its end; return everything that the parties sent."""
    session = start(stage, stage.studies())
    return Parties(stage.study, stage.identities, tables, session, stage.store).run()


def play(stage, studies, said):
    """Do as the parties would: send everything again from the beginning."""
    session = start(stage, studies)
    for name, sequence, body in said:
        if not session.record.state.over:
            session.receive(name, sequence, body)
    return session


def results(outcome):
    return [
        result if isinstance(result, bytes) else result.tolist() for result in outcome.model.results
    ]


def in_child(stage, said, kill_at=0):
    """Play in a forked process that kills itself at a write; its exit code, or its events."""
    reading, writing = os.pipe()
    child = fork()
    if child:
        os.close(writing)
        code = exit_code(child)
        with os.fdopen(reading) as events:
            return code, int(events.read() or 0)
    events = 0

    def event(statement=""):
        nonlocal events
        if statement.lstrip().startswith(WRITES) or not statement:
            events += 1
        if kill_at and events == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def publish(outcome):
        event()
        return Path("release")

    code = 1
    try:
        studies = stage.studies(publish=publish)
        stage.database._connection.set_trace_callback(event)
        play(stage, studies, said)
        os.write(writing, str(events).encode())
        code = 0
    finally:
        os._exit(code)


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_a_write_it_comes_back_to_the_same_messages_and_release(stage, tables, stride):
    said = run_through(stage, tables)
    steady, expected = queues(stage), results(stage.outcomes.pop())
    remove_state(stage.path)
    code, points = in_child(stage, said)
    assert code == 0
    assert points > 100
    for kill_at in range(1, points + 1, stride):
        remove_state(stage.path)
        code, _ = in_child(stage, said, kill_at)
        assert code == -signal.SIGKILL, f"write {kill_at}"
        session = play(stage, stage.studies(), said)
        assert session.record.state is StudyState.DONE, f"write {kill_at}"
        assert queues(stage) == steady, f"write {kill_at}"
        assert [results(outcome) for outcome in stage.outcomes] in ([], [expected])
        stage.outcomes.clear()
        stage.opened.pop().close()


def test_a_full_disk_loses_nothing_and_the_study_goes_on_when_there_is_room(stage, tables):
    session = start(stage, stage.studies())
    parties = Parties(stage.study, stage.identities, tables, session, stage.store)
    said = []
    while not said:
        said = parties.step()
    ((pages,),) = stage.database.rows("PRAGMA page_count")
    stage.database.rows(f"PRAGMA max_page_count = {pages}")
    before = queues(stage)
    refused = PartyRefused(study=stage.study.digest, step=0, reason="x" * MOST_TEXT)
    ballast = codec.TO_CURATOR.encode(refused)
    with pytest.raises(LocalError, match="could not be written"):
        session.receive("north", 1, ballast)
    assert queues(stage) == before
    assert session.record.state is StudyState.RUNNING
    stage.database.rows("PRAGMA max_page_count = 100000")
    for answer in said:
        session.receive(*answer)
    parties.run()
    assert session.record.state is StudyState.DONE


def test_a_study_under_way_is_rebuilt_with_its_steps_and_phase(stage, tables):
    session = start(stage, stage.studies())
    parties = Parties(stage.study, stage.identities, tables, session, stage.store)
    while session.record.step < 2:
        for answer in parties.step():
            session.receive(*answer)
    before = (session.record, session.waiting_for)
    assert before[0].phase == "replacing"
    again = stage.studies().session(stage.study.digest, "north")
    assert (again.record, again.waiting_for) == before
    parties.session = again
    parties.run()
    names = [step.name for step in stage.outcomes[-1].steps]
    assert names[:2] == ["tables", "choice"]
    assert len(names) == again.record.step


def test_secrets_and_answers_are_wiped_when_the_study_ends(stage, tables):
    run_through(stage, tables)
    assert stage.database.rows("SELECT key FROM step_key UNION SELECT key FROM paillier_key") == []
    assert stage.database.rows("SELECT COUNT(*) FROM received WHERE body IS NOT NULL") == [(0,)]
    assert stat.S_IMODE(stage.path.stat().st_mode) == 0o600


def test_acknowledged_messages_are_dropped_when_nobody_waits_for_them(stage, tables):
    run_through(stage, tables)
    digest = stage.study.digest
    newest = stage.store.outbox.newest(digest, "north")
    ((before,),) = stage.database.rows("SELECT COUNT(*) FROM content")
    stage.store.acknowledge(digest, "north", newest)
    ((half,),) = stage.database.rows("SELECT COUNT(*) FROM content")
    assert half == before, "the other party still needs them"
    stage.store.acknowledge(digest, "east", newest - 1)
    ((left,),) = stage.database.rows("SELECT COUNT(*) FROM content")
    assert left == 1
    assert stage.store.outbox.acknowledged(digest, "east") == newest - 1


def refusal_of(call):
    with pytest.raises(WireError) as refusal:
        call()
    return refusal.value.code


def test_what_is_not_allowed_is_refused_and_changes_nothing(stage, tables):
    studies = stage.studies()
    session = studies.propose(stage.study)
    assert refusal_of(lambda: session.receive("north", 1, share(stage))) is ErrorCode.OUT_OF_TURN
    for name in session.names:
        session.approve(name, stage.signature(name))
    assert refusal_of(lambda: session.receive("north", 2, share(stage))) is ErrorCode.OUT_OF_ORDER
    assert refusal_of(lambda: session.receive("north", 1, b"noise")) is ErrorCode.MALFORMED
    with pytest.raises(RemoteProtocolError, match="step 7"):
        session.receive("north", 1, share(stage, step=7))
    before = list(stage.database.rows("SELECT * FROM received"))
    assert before == []
    Parties(stage.study, stage.identities, tables, session, stage.store).run()
    assert session.record.state is StudyState.DONE


def test_the_wrong_signature_and_the_wrong_study_do_not_approve(stage):
    studies = stage.studies()
    session = studies.propose(stage.study)
    other = make_study(stage.identities, {"north": 40, "east": 50}, epsilon=Fraction(3))
    for signature in (stage.signature("east"), stage.signature("north", other), bytes(64)):
        assert refusal_of(lambda s=signature: session.approve("north", s)) is (
            ErrorCode.APPROVAL_INVALID
        )
    assert session.waiting_for == ("north", "east")
    assert refusal_of(lambda: studies.session(other.digest, "north")) is ErrorCode.STUDY_UNKNOWN
    assert refusal_of(lambda: studies.session(stage.study.digest, "x")) is ErrorCode.STUDY_UNKNOWN


def test_a_declined_study_is_refused_once_and_for_all(stage):
    session = stage.studies().propose(stage.study)
    session.approve("north", stage.signature("north"))
    assert session.decline("east", reason="no") is StudyState.REFUSED
    assert session.decline("east", reason="no") is StudyState.REFUSED
    assert refusal_of(lambda: session.approve("east", stage.signature("east"))) is (
        ErrorCode.STUDY_CLOSED
    )
    assert session.record.cause == "party 'east' declined: no"
    assert len(queues(stage)) == 2, "everybody is told"


def test_a_party_that_withdraws_ends_the_study_by_name(stage):
    session = stage.studies().propose(stage.study)
    session.approve("north", stage.signature("north"))
    assert session.decline("north", reason="no more") is StudyState.REFUSED
    assert session.record.cause == "party 'north' withdrew: no more"


def test_a_study_that_is_not_approved_by_its_last_day_ends_and_costs_nothing(stage):
    stage.study = replace(stage.study, expires=stage.now.date())
    studies = stage.studies()
    session = studies.propose(stage.study)
    session.approve("north", stage.signature("north"))
    studies.open()  # as every second
    assert session.record.state is StudyState.WAITING, "its last day is not over"
    stage.set_clock(dt.timedelta(days=1))
    studies.open()
    stage.set_clock(-dt.timedelta(days=1))
    studies.open()
    stage.now += dt.timedelta(days=1)
    studies.open()
    assert session.record.state is StudyState.WAITING, "a clock may be wrong for a moment"
    stage.now += HOUR
    studies.open()
    assert session.record.state is StudyState.FAILED
    assert session.record.cause == (
        "not approved by east by 2026-01-01, its last day (expires). Nothing was charged"
    )
    told = {name: codec.TO_PARTY.decode(each.body).reason for name, each in last_words(stage)}
    assert told == dict.fromkeys(("north", "east"), session.record.cause)
    assert stage.database.rows("SELECT * FROM step") == []


def test_a_study_that_has_begun_outlives_its_last_day(stage):
    stage.study = replace(stage.study, expires=stage.now.date())
    studies = stage.studies()
    session = start(stage, studies)
    stage.now += dt.timedelta(days=30)
    studies.open()
    assert session.record.state is StudyState.RUNNING


def last_words(stage):
    """Return the first message in each party's queue."""
    for name in ("north", "east"):
        yield name, stage.store.outbox.next(stage.study.digest, name, after=0)


def test_a_party_may_withdraw_until_every_result_is_there(stage, tables):
    session = start(stage, stage.studies())
    parties = Parties(stage.study, stage.identities, tables, session, stage.store)
    while session.record.step < 2:
        for answer in parties.step():
            session.receive(*answer)
    assert session.decline("east", reason="no more") is StudyState.REFUSED
    assert session.record.cause == "party 'east' withdrew: no more"
    assert stage.database.rows("SELECT key FROM step_key UNION SELECT key FROM paillier_key") == []
    assert stage.outcomes == []


def test_nobody_withdraws_from_a_release(stage, tables):
    run_through(stage, tables)
    session = stage.studies().session(stage.study.digest, "east")
    assert refusal_of(lambda: session.decline("east", reason="too late")) is ErrorCode.STUDY_CLOSED
    assert session.record.state is StudyState.DONE


def test_a_party_that_refuses_a_step_ends_the_study(stage):
    session = start(stage, stage.studies())
    refused = PartyRefused(study=stage.study.digest, step=0, reason="budget")
    session.receive("east", 1, codec.TO_CURATOR.encode(refused))
    assert session.record.state is StudyState.REFUSED
    assert session.decline("north", reason="late") is StudyState.REFUSED
    assert stage.studies().session(stage.study.digest, "east").record.cause == (
        "party 'east' refused step 0: budget"
    )


@pytest.mark.parametrize("begun", [True, False])
def test_the_longest_reason_of_a_refusal_is_told_to_everybody(stage, begun):
    studies = stage.studies()
    reason = "x" * MOST_TEXT
    if begun:
        session = start(stage, studies)
        refused = PartyRefused(study=stage.study.digest, step=0, reason=reason)
        session.receive("east", 1, codec.TO_CURATOR.encode(refused))
    else:
        session = studies.propose(stage.study)
        session.decline("east", reason=reason)
    assert session.record.state is StudyState.REFUSED
    newest = stage.store.outbox.newest(stage.study.digest, "north")
    told = stage.store.outbox.next(stage.study.digest, "north", after=newest - 1)
    assert codec.TO_PARTY.decode(told.body).reason == session.record.cause
    assert len(session.record.cause) == MOST_TEXT


def test_an_operator_can_give_a_study_up(stage):
    session = start(stage, stage.studies())
    session.abort("the consortium changed its mind")
    session.abort("again")
    assert session.record.state is StudyState.FAILED
    assert session.record.cause == "the consortium changed its mind"


def test_giving_up_a_study_at_work_holds_nobody_up_and_happens_later(stage):
    studies = stage.studies()
    session = start(stage, studies)
    stage.store.ask_to_abort(stage.study.digest, "enough", at="now")
    at_work, done = threading.Event(), threading.Event()

    def work():
        with session._lock:
            at_work.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    at_work.wait()
    try:
        studies.open()  # the same that every call of a party does
        assert session.record.state is StudyState.RUNNING
    finally:
        done.set()
        thread.join()
    studies.open()
    assert session.record.state is StudyState.FAILED


def test_the_key_of_an_encrypted_study_is_made_once_kept_sealed_and_wiped(
    stage, rows, paillier_key, monkeypatch
):
    made = []
    monkeypatch.setattr(
        "curator.live_role.generate_key_pair",
        lambda bits, source: made.append(bits) or paillier_key,
    )
    stage.study = make_study(stage.identities, rows, aggregation=Aggregation.PAILLIER)
    session = start(stage, stage.studies())
    assert start(stage, stage.studies()).record.state is StudyState.RUNNING
    assert made == [2048]
    assert stage.store.paillier_key(stage.study.digest).public_key == paillier_key.public_key
    stage.studies().session(stage.study.digest, "north").abort("enough")
    assert stage.store.paillier_key(stage.study.digest) is None
    assert session.record.state is StudyState.FAILED


def test_a_replay_that_comes_to_something_else_is_noticed(stage, tables):
    session = start(stage, stage.studies())
    parties = Parties(stage.study, stage.identities, tables, session, stage.store)
    while session.record.step < 1:
        for answer in parties.step():
            session.receive(*answer)
    with stage.database.transaction():
        stage.database.write("UPDATE received SET effects = '[]'")
    again = stage.studies().session(stage.study.digest, "north")  # the others go on
    assert "other effects" in again.record.cause
    with pytest.raises(LocalError, match="other effects"):
        again.receive("north", parties.said["north"] + 1, share(stage, step=1))


def test_a_study_proposed_by_another_process_is_noticed(stage):
    studies = stage.studies()
    assert studies.summaries("north", with_ended=False) == []
    stage.studies().propose(stage.study)
    studies.open()  # as a running curator does every second
    (listed,) = studies.summaries("north", with_ended=False)
    assert listed.study == stage.study.digest
    assert studies.summaries("stranger", with_ended=False) == []
