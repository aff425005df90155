"""Messages are kept until they are acknowledged, and a role comes back from its messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError, RemoteProtocolError
from common.privacy.secret import Secret
from common.service.database import Database
from common.service.durable import DurableRole, Inbox, Outbox, Received
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
                outbox.acknowledge(STUDY, name, value, over=False)
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


class Adder:
    """Adds up what it is given and what it draws."""

    def __init__(self, source_of):
        self.source_of, self.total = source_of, 0

    def take(self, number):
        if number < 0:
            raise RemoteProtocolError("negative")
        self.total += number + self.source_of(0).random_bytes(1)[0]
        if number == 13:
            raise RemoteProtocolError("too late to refuse")
        return [f"add {number}"]


@pytest.fixture
def kept():
    return []


@pytest.fixture
def live(kept):
    return DurableRole(
        "sums",
        begin=Adder,
        feed=lambda role, message: role.take(message.body[0]),
        messages=lambda: kept,
        key_of=lambda step: Secret(bytes([step]) * 32),
        private=False,
    )


def remember(kept, number, effects=None):
    effects = (f"add {number}",) if effects is None else effects
    kept.append(Received(sender="a", sequence=len(kept) + 1, body=bytes([number]), effects=effects))


def test_a_replay_draws_the_same_and_goes_on_where_it_was(live, kept):
    for number in (1, 2, 3):
        live.current().take(number)
        remember(kept, number)
    total = live.current().total
    live.forget()
    assert not live.is_built
    assert live.current().total == total
    live.current().take(4)
    remember(kept, 4)
    after = live.current().total
    live.forget()
    assert live.current().total == after


def test_other_effects_than_when_a_message_came_are_noticed(live, kept):
    remember(kept, 1, effects=("add 2",))
    for _ in range(2):
        with pytest.raises(LocalError, match="other effects now"):
            live.current()
        assert not live.is_built


@pytest.mark.parametrize(
    ("number", "error", "stays"),
    [(-1, RemoteProtocolError, True), (13, RemoteProtocolError, False), (1, OSError, False)],
)
def test_a_role_that_may_be_ahead_of_the_disk_is_forgotten(live, number, error, stays):
    role = live.current()

    def take():
        with live.guarded():
            role.take(number)
            raise OSError("disk full")

    with pytest.raises(error):
        take()
    assert live.is_built is stays


def test_a_role_that_failed_to_begin_is_forgotten(live):
    def begin():
        with live.guarded():
            live.begin()
            raise RemoteProtocolError("no")

    with pytest.raises(RemoteProtocolError):
        begin()
    assert not live.is_built
