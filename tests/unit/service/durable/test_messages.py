"""Messages are kept until they are acknowledged, and say nothing once they are wiped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError
from common.service.database import Database
from common.service.durable.messages import Inbox, Outbox
from common.wire.catalogue import ErrorCode, WireError

STUDY = bytes(32)
_STUDIES = "CREATE TABLE IF NOT EXISTS study (study BLOB PRIMARY KEY) STRICT;"


@pytest.fixture
def database(quick_folder):
    made = opened(quick_folder / "a.db")
    yield made
    made.close()


def opened(path):
    database = Database(path)
    database.add_tables(_STUDIES)
    with database.transaction():
        database.write("INSERT OR IGNORE INTO study VALUES (?)", (STUDY,))
    return database


def keep(database, inbox, sender, sequence, body, effects=()):
    with database.transaction():
        inbox.add(STUDY, sender, sequence=sequence, body=body, effects=effects, at="now")


def test_a_message_is_next_again_too_early_or_another(database):
    inbox = Inbox(database)
    keep(database, inbox, "north", 1, b"one")
    assert not inbox.is_duplicate(STUDY, "north", sequence=2, body=b"two")
    assert inbox.is_duplicate(STUDY, "north", sequence=1, body=b"one")
    for sequence, body, code in (
        (1, b"other", ErrorCode.SEQUENCE_REUSED),
        (3, b"three", ErrorCode.OUT_OF_ORDER),
        (0, b"one", ErrorCode.OUT_OF_ORDER),
    ):
        with pytest.raises(WireError) as refusal:
            inbox.is_duplicate(STUDY, "north", sequence=sequence, body=body)
        assert refusal.value.code is code
    assert not inbox.is_duplicate(STUDY, "east", sequence=1, body=b"one")


def test_messages_come_back_in_the_order_in_which_they_came(database):
    inbox = Inbox(database)
    for sender, sequence in (("north", 1), ("east", 1), ("north", 2)):
        keep(database, inbox, sender, sequence, sender.encode(), ("send x",))
    assert [(m.sender, m.sequence) for m in inbox.messages(STUDY)] == [
        ("north", 1), ("east", 1), ("north", 2),
    ]  # fmt: skip
    assert {message.effects for message in inbox.messages(STUDY)} == {("send x",)}
    digests = inbox.digests(STUDY, "north")
    with database.transaction():
        inbox.wipe(STUDY)
    assert inbox.digests(STUDY, "north") == digests
    assert inbox.bodies(STUDY, "north") == []
    with pytest.raises(LocalError, match="was wiped"):
        list(inbox.messages(STUDY))


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from("ab"), st.integers(0, 3)),
            st.tuples(st.just("acknowledge"), st.sampled_from("ab"), st.integers(0, 8)),
        ),
        max_size=20,
    )
)
def test_what_is_kept_is_what_is_due(tmp_path_factory, actions):
    """Against a plain list for every recipient: acknowledged messages go, shared ones stay."""
    database = opened(tmp_path_factory.mktemp("outbox") / "a.db")
    outbox = Outbox(database)
    sent, acknowledged = {"a": [], "b": []}, {"a": 0, "b": 0}
    for action, name, value in actions:
        with database.transaction():
            if action == "add":
                body = bytes([value])
                assert outbox.add(STUDY, name, body).sequence == len(sent[name]) + 1
                sent[name].append(body)
            else:
                outbox.acknowledge(STUDY, name, value)
                acknowledged[name] = max(acknowledged[name], min(value, len(sent[name])))
    due = {name: sent[name][acknowledged[name] :] for name in sent}
    for name, expected in due.items():
        assert [each.body for each in outbox.due(STUDY, name)] == expected
        assert outbox.acknowledged(STUDY, name) == acknowledged[name]
        assert outbox.newest(STUDY, name) == len(sent[name])
    kept = {body for (body,) in database.rows("SELECT body FROM content")}
    assert kept == {body for bodies in due.values() for body in bodies}
    with database.transaction():
        outbox.drop(STUDY)
    assert list(outbox.due(STUDY, "a")) == []
    database.close()
