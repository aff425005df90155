"""The journal keeps what it must, forgets what it should, and shows what left."""

import stat

import pytest

from common.errors import LocalError, RemoteProtocolError
from common.service.database import Database
from common.study.messages import StudyAborted
from party.journal import CURATOR, JournalState, Notes
from tests.harness.disks import state_bytes

ONE, OTHER = bytes(32), bytes(31) + b"\1"


def run(stage, messages=None):
    node = stage.node()
    for number, body in enumerate(messages or stage.script, start=1):
        node.receive(number, body)
    return node


def test_the_transcript_lists_everything_that_left(stage):
    run(stage)
    transcript = stage.journal.sent_log()
    assert [line.sequence for line in transcript] == [1, 2, 3, 4, 5, 6]
    assert [line.recipient for line in transcript[:2]] == ["curator", "party b, sealed"]
    assert [line.kind for line in transcript[:2]] == ["ShareSubmitted", "EnvelopePosted"]
    assert [line.size for line in transcript] == [len(out.body) for out in stage.sent]
    assert {line.study_name for line in transcript} == {"a study"}
    assert all(line.acknowledged_at is None for line in transcript)


def test_the_transcript_outlives_the_bytes(stage):
    node = run(stage)
    before = stage.journal.sent_log()
    node.acknowledge(6)
    after = stage.journal.sent_log()
    assert [line.digest for line in after] == [line.digest for line in before]
    assert all(line.acknowledged_at == "2026-01-01T00:00:00+00:00" for line in after)


def test_secrets_are_gone_from_the_file_when_the_study_ends(stage):
    node = run(stage, stage.script[:-1])
    keys = [key for (key,) in stage.database.rows("SELECT key FROM step_key")]
    assert len(keys) == 3
    assert all(key in state_bytes(stage.path) for key in keys)
    node.receive(len(stage.script), stage.script[-1])
    node.acknowledge(6)
    content = state_bytes(stage.path)
    assert not any(key in content for key in keys)
    assert not any(out.body in content for out in stage.sent)
    assert not any(message in content for message in stage.script)


def test_the_file_is_readable_by_its_owner_only(stage):
    stage.node()
    assert stat.S_IMODE(stage.path.stat().st_mode) == 0o600


def test_the_key_of_a_step_is_drawn_once_and_differs_between_steps(stage):
    stage.node()
    first = stage.journal.step_key(stage.study, 0).reveal()
    assert stage.journal.step_key(stage.study, 1).reveal() != first
    stage.node()
    assert stage.journal.step_key(stage.study, 0).reveal() == first


def test_a_study_that_ended_gives_no_key_and_no_message(stage):
    run(stage, [stage.codec.encode(StudyAborted(study=stage.study, reason="enough"))])
    with pytest.raises(LocalError, match="no keys any more"):
        stage.journal.step_key(stage.study, 0)
    with pytest.raises(LocalError, match=r"message 1 of study .* was wiped"):
        list(stage.journal.inbox.messages(stage.study))
    (record,) = stage.journal.studies()
    assert (record.state, record.reason) == (JournalState.ABORTED, "enough")
    assert record.ended_at is not None


def test_an_acknowledgement_of_what_was_never_sent_is_refused(stage):
    node = run(stage, stage.script[:2])
    with pytest.raises(RemoteProtocolError, match="never sent"):
        node.acknowledge(3)
    node.acknowledge(1)
    node.acknowledge(1)
    assert [each.sequence for each in stage.journal.outbox.due(stage.study, CURATOR)] == [2]


def test_an_unknown_study_is_named(stage):
    stage.node()
    with pytest.raises(LocalError, match="never begun"):
        stage.journal.state(bytes(32))


def test_a_change_outside_of_a_transaction_is_a_mistake(tmp_path):
    database = Database(tmp_path / "x.db")
    with pytest.raises(LocalError, match="transaction"):
        database.write("CREATE TABLE t (x)")
    database.close()


def test_a_transaction_inside_another_is_a_part_of_it(tmp_path):
    database = Database(tmp_path / "x.db")
    database.add_tables("CREATE TABLE t (x)")

    def fail_after_an_inner_transaction():
        with database.transaction():
            with database.transaction():
                database.write("INSERT INTO t VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_an_inner_transaction()
    assert database.rows("SELECT * FROM t") == []
    database.close()


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "x.db"
    path.write_bytes(b"not a database at all, but long enough to be one" * 100)
    with pytest.raises(LocalError, match=r"x\.db: it cannot be opened"):
        Database(path).add_tables("CREATE TABLE t (x)")


def test_the_last_word_about_each_study_is_kept_until_it_is_cleared(tmp_path):
    with Database(tmp_path / "party.db") as file:
        notes = Notes(file)
        notes.write(ONE, "waits for the curator", at="noon")
        notes.write(ONE, "counts", at="one")
        notes.write(OTHER, "refused", at="two")
    with Database(tmp_path / "party.db") as file:
        notes = Notes(file)
        assert notes.all() == {ONE: "counts (since one)", OTHER: "refused (since two)"}
        notes.write(ONE, "", at="three")
        assert list(notes.all()) == [OTHER]
        notes.clear()
        assert notes.all() == {}
