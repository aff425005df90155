"""News reach everybody who listens, once each, and listeners are bounded."""

import itertools
import threading

import pytest

from common.errors import LocalError
from common.service.web import feed as module
from common.service.web.feed import Feed


class Source:
    def __init__(self):
        self.document = b"1"
        self.made = 0

    def __call__(self):
        self.made += 1
        if self.document is None:
            raise LocalError("busy")
        return self.document


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def feed(source, monkeypatch):
    monkeypatch.setattr(module, "HEARTBEAT_S", 0.05)
    feed = Feed(source, every_s=0.01, most=2)
    with feed.running():
        yield feed


def states(stream, number):
    return list(itertools.islice((p for p in stream if p.startswith(b"event: state")), number))


def test_a_listener_gets_the_state_and_then_every_change(feed, source):
    stream = feed.response(lambda: True).body
    assert states(stream, 1) == [b"event: state\ndata: 1\n\n"]
    source.document = b"2"
    assert states(stream, 1) == [b"event: state\ndata: 2\n\n"]
    assert next(stream) == b": still here\n\n"
    stream.close()


def test_nothing_is_made_while_nobody_listens(feed, source):
    assert source.made == 0
    stream = feed.response(lambda: True).body
    states(stream, 1)
    stream.close()
    threading.Event().wait(0.1)
    made = source.made
    threading.Event().wait(0.1)
    assert source.made == made


def test_a_store_that_is_busy_is_asked_again(feed, source, caplog):
    source.document = None
    stream = feed.response(lambda: True).body
    assert next(stream).startswith(b"retry")
    assert next(stream) == b": still here\n\n"
    source.document = b"3"
    assert states(stream, 1) == [b"event: state\ndata: 3\n\n"]
    stream.close()


def test_listeners_are_bounded_and_make_room(feed):
    streams = [feed.response(lambda: True).body for _ in range(2)]
    for stream in streams:
        next(stream)
    full = feed.response(lambda: True)
    assert full.status == 503
    streams[0].close()
    again = feed.response(lambda: True)
    assert again.status == 200
    assert next(again.body)
    late = feed._events(lambda: True)
    assert list(late) == []  # two at the door for one place: one gets an empty stream


def test_whoever_is_logged_out_is_told_so_and_sent_away(feed):
    alive = [True]
    stream = feed.response(lambda: alive[0]).body
    states(stream, 1)
    alive.clear()
    alive.append(False)
    assert list(stream)[-1] == b"event: out\ndata: log in again\n\n"


def test_a_feed_that_ends_sends_everybody_away(source):
    feed = Feed(source, every_s=0.01)
    with feed.running():
        stream = feed.response(lambda: True).body
        states(stream, 1)
    assert list(stream) == []
    assert feed.response(lambda: True).status == 503


def test_a_defect_in_one_document_does_not_stop_the_news(feed, source, caplog, monkeypatch):
    monkeypatch.setattr(source, "document", 1)  # cannot be sent
    monkeypatch.setattr(feed, "_make", lambda: source.document.to_bytes(-1))
    stream = feed.response(lambda: True).body
    assert next(stream).startswith(b"retry")
    assert next(stream) == b": still here\n\n"
    monkeypatch.setattr(feed, "_make", lambda: b"4")
    assert states(stream, 1) == [b"event: state\ndata: 4\n\n"]
    stream.close()
    assert "no news this time" in caplog.text
