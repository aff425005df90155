"""A curator reads, keeps and lists its studies, and tries again those that could not go on."""

import logging
from pathlib import Path

import pytest

from common.errors import LocalError
from common.study.document import Study
from curator.store.records import StudyState
from tests.harness.small_study import EveryKindOfStep, make_study
from tests.unit.curator.conftest import Parties, acknowledge_all, end_one, names, start


def test_an_ended_study_is_listed_until_the_party_has_acknowledged_its_end(stage, tables):
    studies = end_one(stage, tables)
    digest = stage.study.digest
    newest = stage.store.outbox.newest(digest, "north")
    stage.store.acknowledge(digest, "north", newest - 1)
    (listed,) = studies.summaries("north", with_ended=False)
    assert (listed.state, listed.acknowledged) == (StudyState.DONE, newest - 1)
    assert listed.queued == newest, "so that the party sees what it has not acknowledged"
    assert listed.submitted == stage.store.inbox.newest(digest, "north") > 0
    acknowledge_all(stage, "north")
    assert names(studies) == []
    assert names(studies, "east") == ["test"], "which has acknowledged nothing"
    (listed,) = studies.summaries("north", with_ended=True)
    assert listed.submitted == stage.store.inbox.newest(digest, "north"), "for its journal"


def test_studies_that_are_over_are_not_read_when_a_curator_starts_or_is_polled(
    stage, tables, monkeypatch
):
    end_one(stage, tables)
    read = []
    reading = Study.from_toml
    monkeypatch.setattr(Study, "from_toml", lambda *a, **k: read.append(a) or reading(*a, **k))
    studies = stage.studies()
    assert names(studies, with_ended=True) == ["test"]
    assert studies.session(stage.study.digest, "north").record.state is StudyState.DONE
    studies.open()
    assert read == []


@pytest.mark.parametrize("with_settled", [False, True])
def test_a_poll_reads_the_lines_of_its_party_by_an_index(stage, with_settled):
    studies = stage.studies()
    studies.propose(stage.study)
    asked = []
    stage.database._connection.set_trace_callback(asked.append)
    stage.store.summaries("north", with_settled=with_settled, most=10)
    stage.store.under_way()
    stage.store.age_queues(hours=1)
    stage.database._connection.set_trace_callback(None)
    assert len(asked) == 3, "one query for all studies of a party"
    plans = [
        row[-1] for query in asked for row in stage.database.rows(f"EXPLAIN QUERY PLAN {query}")
    ]
    assert not [plan for plan in plans if plan.startswith("SCAN") and "USING" not in plan], plans


def test_a_poll_writes_nothing_and_reads_when_something_changed(stage):
    studies = stage.studies()
    studies.propose(stage.study)
    studies.enrol("north", identity=b"n", software="parley 1")
    assert names(studies) == ["test"]
    studies.called("north")  # for whom a step may be held
    asked = []
    stage.database._connection.set_trace_callback(asked.append)
    for _ in range(100):
        studies.enrol("north", identity=b"n", software="parley 1")
        studies.called("north")
        assert names(studies) == ["test"]
    assert asked == []
    studies.enrol("north", identity=b"n", software="parley 2")
    assert {n: p.software for n, p in stage.store.parties().items()} == {"north": "parley 2"}
    session = studies.session(stage.study.digest, "north")
    session.approve("north", stage.signature("north"))
    (listed,) = studies.summaries("north", with_ended=False)
    assert listed.approved
    again = stage.studies()
    del asked[:]
    again.enrol("north", identity=b"n", software="parley 2")
    assert asked == [], "a curator that restarted knows who was here"


def test_what_is_over_is_not_kept_in_memory(stage, tables):
    studies = end_one(stage, tables)
    studies.open()
    assert studies._sessions == {}
    other = make_study(stage.identities, {"north": 40, "east": 50}, name="next")
    studies.propose(other)
    assert set(studies._sessions) == {other.digest}
    assert studies.propose(stage.study).record.state is StudyState.DONE
    assert set(studies._sessions) == {other.digest}


class Failing:
    """Raises so many times, then does what it should."""

    def __init__(self, times, error, then):
        self.left, self.error, self.then, self.tried = times, error, then, 0

    def __call__(self, *arguments):
        self.tried += 1
        if self.left:
            self.left -= 1
            raise self.error
        return self.then(*arguments)


def look(studies, times):
    """Look, as a running curator does every second."""
    for _ in range(times):
        studies.open()


def test_a_study_whose_start_failed_at_the_last_approval_begins_by_itself(stage, tables):
    plan = Failing(3, LocalError("unable to open database file"), EveryKindOfStep)
    studies = stage.studies(begin=plan)
    session = studies.propose(stage.study)
    session.approve("north", stage.signature("north"))
    with pytest.raises(LocalError, match="unable to open"):
        session.approve("east", stage.signature("east"))
    assert session.record.state is StudyState.WAITING
    assert session.waiting_for == (), "for no party, so no party's call will start it"
    look(studies, 1)
    assert session.record.cause == (
        "the study cannot go on: unable to open database file. The curator tries again by itself"
    )
    look(studies, 10)
    assert (session.record.state, session.record.cause) == (StudyState.RUNNING, "")
    Parties(stage.study, stage.identities, tables, session, stage.store).run()
    assert session.record.state is StudyState.DONE


def test_a_release_that_failed_is_made_by_itself_with_growing_pauses(stage, tables):
    publish = Failing(6, OSError("No space left on device"), lambda outcome: Path("release"))
    studies = stage.studies(publish=publish)
    session = start(stage, studies)
    parties = Parties(stage.study, stage.identities, tables, session, stage.store)
    while session.record.state is StudyState.RUNNING:
        for answer in parties.step():
            session.receive(*answer)
    assert session.record.state is StudyState.PUBLISHING
    assert session.record.cause == (
        "the release cannot be made: No space left on device. The curator tries again by itself"
    )
    look(studies, 100)
    assert publish.tried == 6, "after 2, 4, 8, 16, 32 looks"
    look(studies, 100)
    assert publish.tried == 7
    assert (session.record.state, session.record.cause) == (StudyState.DONE, "")


def test_a_full_disk_that_cannot_even_hold_the_cause_is_got_over(stage, tables, monkeypatch):
    publish = Failing(1, OSError("No space left on device"), lambda outcome: Path("release"))
    studies = stage.studies(publish=publish)
    session = start(stage, studies)
    with monkeypatch.context() as patch:
        patch.setattr(stage.store, "note_cause", Failing(9, LocalError("full"), None))
        parties = Parties(stage.study, stage.identities, tables, session, stage.store)
        while session.record.state is StudyState.RUNNING:
            for answer in parties.step():
                session.receive(*answer)
    assert (session.record.state, session.record.cause) == (StudyState.PUBLISHING, "")
    look(studies, 2)
    assert session.record.state is StudyState.DONE


def test_a_release_under_way_is_not_begun_a_second_time(stage, tables):
    tasks = []
    studies = stage.studies(later=tasks.append)
    session = start(stage, studies)
    parties = Parties(stage.study, stage.identities, tables, session, stage.store)
    while session.record.state is StudyState.RUNNING:
        for answer in parties.step():
            session.receive(*answer)
    look(studies, 5)
    (task,) = tasks
    task()
    assert session.record.state is StudyState.DONE
    look(studies, 5)
    assert len(tasks) == 1


def forget_how_to_read(stage, study):
    """Do as a later version may: write a text that this version does not allow."""
    with stage.database.transaction():
        stage.database.write(
            "UPDATE study SET document = replace(document, 'method = ', 'method = \"gone\" #') "
            "WHERE study = ?", (study.digest,),
        )  # fmt: skip


def test_an_ended_study_that_cannot_be_read_stops_nothing(stage, tables):
    session = start(stage, stage.studies())
    Parties(stage.study, stage.identities, tables, session, stage.store).run()
    forget_how_to_read(stage, stage.study)
    studies = stage.studies()
    ended = studies.session(stage.study.digest, "north")
    assert ended.record.state is StudyState.DONE
    (listed,) = studies.summaries("north", with_ended=False)
    assert (listed.study, listed.state) == (stage.study.digest, StudyState.DONE)
    stage.study = make_study(stage.identities, {"north": 40, "east": 50}, name="next")
    assert start(stage, studies).record.state is StudyState.RUNNING


def test_an_open_study_that_cannot_be_read_is_marked_and_the_others_go_on(stage, caplog):
    studies = stage.studies()
    studies.propose(stage.study)
    session = studies.propose(make_study(stage.identities, {"north": 40, "east": 50}, name="next"))
    unreadable = stage.study
    forget_how_to_read(stage, unreadable)
    with caplog.at_level(logging.ERROR):
        studies = stage.studies()
    record = stage.store.record(unreadable.digest)
    assert record.unreadable
    assert unreadable.digest.hex()[:16] in record.cause
    assert "'test'" in record.cause, "by name"
    assert unreadable.digest.hex()[:16] in caplog.text
    stage.study = session.study
    assert start(stage, studies).record.state is StudyState.RUNNING
    studies.open()  # as while it runs
    assert {each.name for each in studies.summaries("east", with_ended=False)} == {"test", "next"}
