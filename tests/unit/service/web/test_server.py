"""A browser that is slow, greedy or broken gets nowhere, and takes nobody along."""

import contextlib
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from common.errors import InputError
from common.service.process import system_clock
from common.service.web import server as module
from common.service.web.exchange import text
from common.service.web.server import Places, WebServer
from common.wire.pki.keyring import init_curator
from curator.dashboard.serving import browser_tls
from tests.unit.service.web.conftest import Client, exchange, parse


def test_what_is_too_large_is_refused(client):
    body = b"x" * (module.MOST_BODY_BYTES + 1)
    assert client.ask("POST", "/login", body=b"", Content_Length=str(len(body))).status == 413
    assert client.ask("POST", "/login", Content_Length="99999999999999999999").status == 413
    assert client.ask("GET", "/" + "a" * module.MOST_PATH).status == 414


@pytest.mark.parametrize("length", ["-1", "1e3", "+5", "٣", "5, 5", ""])
def test_a_length_that_is_no_number_is_refused(client, length):
    assert client.ask("POST", "/login", Content_Length=length).status in (400, 413)


def test_a_head_without_end_is_cut_off(running):
    endless = b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 90 + b"Y: " + b"y" * module.MOST_REQUEST_BYTES
    assert exchange(running.port, endless) == b""
    assert Client(running.port).ask("GET", "/login").status == 200


@pytest.mark.parametrize(
    "lines",
    [
        "Transfer-Encoding: chunked",
        "Content-Length: 3\r\nContent-Length: 4",
        "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example",
    ],
)
def test_what_two_servers_could_read_differently_is_refused(running, lines):
    raw = f"POST /login HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\nabc".encode()
    assert parse(exchange(running.port, raw)).status in (400, 411)


def test_one_request_per_connection(running):
    raw = b"GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2
    answer = exchange(running.port, raw)
    assert answer.count(b"HTTP/1.1 200") == 1
    assert parse(answer).headers["connection"] == "close"


@pytest.mark.parametrize(
    "raw", [b"\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET * HTTP/1.1\r\n\r\n", b""]
)
def test_what_is_no_request_does_no_harm(running, raw):
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as line:
        line.sendall(raw)
        line.shutdown(socket.SHUT_WR)
        while line.recv(4096):
            pass
    assert Client(running.port).ask("GET", "/login").status == 200


def test_a_silent_connection_is_closed(monkeypatch):
    monkeypatch.setattr(module, "ARRIVE_WITHIN_S", 0.2)
    server = WebServer("127.0.0.1:0", lambda request: text(200, "here"), name="test")
    with (
        server.running() as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as line,
    ):
        line.sendall(b"GET / HT")
        assert line.recv(1) == b""


ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@contextlib.contextmanager
def serving(application=lambda request: text(200, "here"), **settings):
    server = WebServer("127.0.0.1:0", application, name="test", **settings)
    with contextlib.ExitStack() as lines, server.running() as port:

        def dribble(address="127.0.0.1", begun=ASKED[:5]):
            """Open a connection that is never done with its request."""
            line = socket.create_connection(
                ("127.0.0.1", port), timeout=30, source_address=(address, 0)
            )
            lines.enter_context(line)
            line.sendall(begun)
            return line

        yield port, dribble


def closed(line):
    try:
        return line.recv(1) == b""
    except ConnectionResetError:
        return True


def test_slow_connections_make_room_for_a_prompt_one():
    with serving(most_connections=3) as (port, dribble):
        held = [dribble() for _ in range(3)]
        for _ in range(5):
            assert parse(exchange(port, ASKED)).status == 200
            held.append(dribble())
        assert closed(held[0]), "the oldest makes room"


def test_who_holds_most_places_loses_them_first():
    with serving(most_connections=4) as (_, dribble):
        ours = dribble("127.0.0.2")
        theirs = [dribble() for _ in range(20)]
        assert all(closed(line) for line in theirs[:10])
        ours.sendall(ASKED[5:])
        assert parse(ours.recv(4096)).status == 200


def test_requests_that_are_answered_are_not_disturbed(caplog):
    going_on, answered = threading.Semaphore(0), threading.Event()

    def slow(request):
        going_on.release()
        answered.wait(30)
        return text(200, "here")

    with serving(slow, most_connections=2) as (port, dribble), ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(exchange, port, ASKED) for _ in range(2)]
        for _ in asked:
            going_on.acquire(timeout=30)
        assert [closed(dribble()) for _ in range(20)] == [True] * 20
        answered.set()
        assert [parse(each.result(30)).status for each in asked] == [200, 200]
        assert parse(exchange(port, ASKED)).status == 200, "their places are free again"
    refused = [each for each in caplog.messages if "too many requests" in each]
    assert 1 <= len(refused) < 20, "the log does not repeat itself"


def test_silent_connections_do_not_keep_tls_out(tmp_path):
    ring = init_curator(
        tmp_path / "keys", "hub", ("127.0.0.1",), now=system_clock(), external=False
    )
    trusting = ssl.create_default_context(cafile=ring.files.authority)
    with serving(tls=browser_tls(ring.files), most_connections=3) as (port, dribble):
        held = [dribble(begun=b"") for _ in range(10)]
        answer = exchange(
            port, ASKED,
            wrap=lambda plain: trusting.wrap_socket(plain, server_hostname="127.0.0.1"),
        )  # fmt: skip
        assert parse(answer).status == 200
        assert closed(held[0])


@pytest.mark.parametrize("raw", [b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"a b c d\r\n\r\n"])
def test_what_is_no_request_line_is_refused_with_a_status_and_the_headers(running, raw):
    answer = parse(exchange(running.port, raw))
    assert answer.status == 400
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "nowhere..:1"])
def test_an_address_that_cannot_be_used_is_said(listen):
    with pytest.raises(InputError, match="test: cannot listen"):
        WebServer(listen, lambda request: text(200, ""), name="test")


def test_ip_6_is_spoken():
    try:
        server = WebServer("[::1]:0", lambda request: text(200, "six"), name="test")
    except InputError:
        pytest.skip("there is no IPv6 on this machine")
    with server.running() as port, socket.create_connection(("::1", port), timeout=30) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200")


@pytest.fixture
def connect():
    """Make connections; of each, return the server's end and the client's."""
    with ExitStack() as closing:

        def make():
            ours, theirs = (closing.enter_context(end) for end in socket.socketpair())
            theirs.settimeout(0)
            return ours, theirs

        yield make


def was_shut(theirs):
    try:
        return theirs.recv(1) == b""
    except BlockingIOError:
        return False


def test_the_oldest_slow_connection_of_who_holds_most_makes_room(connect):
    places = Places(4)
    held = [(connect(), address) for address in ("one", "many", "many", "one")]
    assert all(places.enter(ours, address) for (ours, _), address in held)
    # One and many hold two each: the first of equals is the oldest.
    assert places.enter(connect()[0], "new")
    assert [was_shut(theirs) for (_, theirs), _ in held] == [True, False, False, False]
    assert places.enter(connect()[0], "new")
    assert [was_shut(theirs) for (_, theirs), _ in held] == [True, True, False, False]
    assert [places.arrived(ours) for (ours, _), _ in held] == [False, False, True, True]


def test_a_request_that_has_arrived_keeps_its_place_until_it_is_answered(connect):
    places = Places(2)
    answered, slow = [connect()[0] for _ in range(2)], connect()[0]
    assert all(places.enter(ours, "one") for ours in answered)
    assert all(map(places.arrived, answered))
    assert not places.enter(slow, "two")
    places.leave(answered[0])
    places.leave(answered[0])  # again is harmless, and makes no second place
    assert places.enter(slow, "two")
    assert places.enter(connect()[0], "three")  # in the place of the slow one
    assert not places.arrived(slow)
    assert not places.arrived(answered[0])


def test_a_connection_that_has_ended_already_makes_room_too(connect):
    places = Places(1)
    ours, _ = connect()
    places.enter(ours, "one")
    ours.close()
    assert places.enter(connect()[0], "two")
