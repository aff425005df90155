"""What a poll costs, and what is kept of studies that ended."""

import datetime as dt

import pytest

from common.service.clock import stamp
from common.study.document import Study
from curator.store.records import StudyState
from curator.store.store import KEEP_QUEUES
from curator.upkeep import WRITE_CALLS_EVERY, Upkeep, WaitingLimits
from tests.harness.small_study import make_study
from tests.unit.curator.conftest import NOW, Parties
from tests.unit.curator.test_node import start


def end_one(stage, tables):
    """A study with its release; no party acknowledges it by itself."""
    studies = stage.studies()
    node = start(stage, studies)
    Parties(stage.study, stage.identities, tables, node, stage.store).run()
    assert node.record.state is StudyState.DONE
    return studies


def names(studies, party="north", *, with_ended=False):
    return [each.name for each in studies.summaries(party, with_ended=with_ended)]


def acknowledge_all(stage, party):
    digest = stage.study.digest
    stage.store.acknowledge(digest, party, stage.store.outbox.newest(digest, party))


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
    assert studies.node(stage.study.digest, "north").record.state is StudyState.DONE
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
    stage.store.drop_queues(ended_before="")
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
    asked = []
    stage.database._connection.set_trace_callback(asked.append)
    for _ in range(100):
        studies.enrol("north", identity=b"n", software="parley 1")
        studies.called("north")
        assert names(studies) == ["test"]
    assert asked == []
    studies.enrol("north", identity=b"n", software="parley 2")
    assert stage.store.parties() == {"north": "parley 2"}
    node = studies.node(stage.study.digest, "north")
    node.approve("north", stage.signature("north"))
    (listed,) = studies.summaries("north", with_ended=False)
    assert listed.approved
    again = stage.studies()
    del asked[:]
    again.enrol("north", identity=b"n", software="parley 2")
    assert asked == [], "a curator that restarted knows who was here"


def test_calls_are_on_disk_within_a_minute_and_when_asked_for(stage):
    studies = stage.studies()
    studies.enrol("north", identity=b"", software="parley")
    upkeep = Upkeep(studies, WaitingLimits(deadline=dt.timedelta(days=1), end_overdue=False))
    upkeep.look()
    for _ in range(3):
        stage.now += WRITE_CALLS_EVERY / 4
        studies.called("north")
        upkeep.look()
    assert stage.store.last_calls() == {"north": stamp(NOW)}
    upkeep.write_calls()
    assert stage.store.last_calls() == {"north": stamp(NOW + 3 * WRITE_CALLS_EVERY / 4)}
    stage.now += WRITE_CALLS_EVERY
    studies.called("north")
    upkeep.look()
    assert stage.store.last_calls() == {"north": stamp(stage.now)}


def test_a_queue_that_is_never_acknowledged_goes_after_a_while(stage, tables):
    studies = end_one(stage, tables)
    acknowledge_all(stage, "north")
    upkeep = Upkeep(studies, WaitingLimits(deadline=dt.timedelta(days=1), end_overdue=False))
    stage.now += KEEP_QUEUES
    upkeep.look()
    assert stage.database.rows("SELECT COUNT(*) FROM content") != [(0,)]
    assert names(studies, "east") == ["test"]
    stage.now += dt.timedelta(hours=2)
    upkeep.look()
    assert stage.database.rows("SELECT COUNT(*) FROM content") == [(0,)]
    assert names(studies, "east") == []
    assert names(studies, "east", with_ended=True) == ["test"], "how it ended can be asked for"
    assert stage.store.outbox.next(stage.study.digest, "east", after=0) is None


def test_an_open_study_keeps_its_queue_however_old_it_is(stage):
    studies = stage.studies()
    node = start(stage, studies)
    stage.now += 10 * KEEP_QUEUES
    Upkeep(studies, WaitingLimits(deadline=20 * KEEP_QUEUES, end_overdue=True)).look()
    assert node.record.state is StudyState.RUNNING
    assert stage.store.outbox.next(stage.study.digest, "east", after=0) is not None


def test_what_is_over_is_not_kept_in_memory(stage, tables):
    studies = end_one(stage, tables)
    studies.open()
    assert studies._nodes == {}
    other = make_study(stage.identities, {"north": 40, "east": 50}, name="next")
    studies.propose(other)
    assert set(studies._nodes) == {other.digest}
    assert studies.propose(stage.study).record.state is StudyState.DONE
    assert set(studies._nodes) == {other.digest}
