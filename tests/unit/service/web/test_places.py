"""Places for connections: whose is taken away when there is none, and which is never taken."""

import socket
from contextlib import ExitStack

import pytest

from common.service.web.places import Places


@pytest.fixture
def connect():
    """Makes connections; each is the server's end of a pair whose other end says if it is open."""
    with ExitStack() as closing:

        def make():
            ours, theirs = (closing.enter_context(end) for end in socket.socketpair())
            theirs.settimeout(0)
            return ours, theirs

        yield make


def closed(theirs):
    try:
        return theirs.recv(1) == b""
    except BlockingIOError:
        return False


def test_the_oldest_slow_connection_of_who_holds_most_makes_room(connect):
    places = Places(4)
    held = [(connect(), address) for address in ("one", "many", "many", "one")]
    entered = [places.enter(ours, address) for (ours, _), address in held]
    # One and many hold two each: the first of equals is the oldest.
    assert places.enter(connect()[0], "new") is not None
    assert [closed(theirs) for (_, theirs), _ in held] == [True, False, False, False]
    assert places.enter(connect()[0], "new") is not None
    assert [closed(theirs) for (_, theirs), _ in held] == [True, True, False, False]
    assert [places.arrived(place) for place in entered] == [False, False, True, True]


def test_a_request_that_has_arrived_keeps_its_place_until_it_is_answered(connect):
    places = Places(2)
    answered = [places.enter(connect()[0], "one") for _ in range(2)]
    assert all(map(places.arrived, answered))
    assert places.enter(connect()[0], "two") is None
    places.leave(answered[0])
    places.leave(answered[0])  # again is harmless, and makes no second place
    slow = places.enter(connect()[0], "two")
    assert slow is not None
    assert places.enter(connect()[0], "three") is not None  # in the place of the slow one
    assert not places.arrived(slow)
    assert not places.arrived(answered[0])


def test_a_connection_under_tls_is_closed_where_it_is_now(connect):
    """The handshake puts another object around the connection; that one is closed."""
    places = Places(1)
    place = places.enter(connect()[0], "one")
    ours, theirs = connect()
    assert places.wrap(place, ours)
    places.enter(connect()[0], "two")
    assert closed(theirs)
    assert not places.wrap(place, ours), "its place is gone: the handshake ends there"


def test_a_connection_that_has_ended_already_makes_room_too(connect):
    places = Places(1)
    ours, _ = connect()
    places.enter(ours, "one")
    ours.close()
    assert places.enter(connect()[0], "two") is not None
