"""Which studies a curator reads, keeps and lists."""

import pytest

from common.study.document import Study
from curator.store.records import StudyState
from tests.harness.small_study import make_study
from tests.unit.curator.conftest import acknowledge_all, end_one, names


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
    assert {n: p.software for n, p in stage.store.parties().items()} == {"north": "parley 2"}
    node = studies.node(stage.study.digest, "north")
    node.approve("north", stage.signature("north"))
    (listed,) = studies.summaries("north", with_ended=False)
    assert listed.approved
    again = stage.studies()
    del asked[:]
    again.enrol("north", identity=b"n", software="parley 2")
    assert asked == [], "a curator that restarted knows who was here"


def test_what_is_over_is_not_kept_in_memory(stage, tables):
    studies = end_one(stage, tables)
    studies.open()
    assert studies._nodes == {}
    other = make_study(stage.identities, {"north": 40, "east": 50}, name="next")
    studies.propose(other)
    assert set(studies._nodes) == {other.digest}
    assert studies.propose(stage.study).record.state is StudyState.DONE
    assert set(studies._nodes) == {other.digest}
