"""A role comes back from its messages, and never reads a stream twice for two answers."""

import pytest

from common.errors import LocalError, RemoteProtocolError
from common.privacy.secret import Secret
from common.service.durable.messages import Received
from common.service.durable.role import DurableRole


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


def keep(kept, number, effects=None):
    effects = (f"add {number}",) if effects is None else effects
    kept.append(Received(sender="a", sequence=len(kept) + 1, body=bytes([number]), effects=effects))


def test_a_replay_draws_the_same_and_goes_on_where_it_was(live, kept):
    for number in (1, 2, 3):
        live.current().take(number)
        keep(kept, number)
    total = live.current().total
    live.forget()
    assert not live.is_built
    assert live.current().total == total
    live.current().take(4)
    keep(kept, 4)
    after = live.current().total
    live.forget()
    assert live.current().total == after


def test_other_effects_than_when_a_message_came_are_noticed(live, kept):
    keep(kept, 1, effects=("add 2",))
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
