"""A browser that is slow, greedy or broken gets nowhere, and takes nobody along."""

import socket

import pytest

from common.errors import InputError
from common.web import server as module
from common.web.exchange import text
from common.web.server import WebServer
from tests.unit.web.conftest import Client, exchange, parse


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
    port = server.start()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
            line.sendall(b"GET / HT")
            assert line.recv(1) == b""
    finally:
        server.stop()


def test_connections_are_bounded_and_come_back():
    server = WebServer(
        "127.0.0.1:0", lambda request: text(200, "here"), name="test", most_connections=2
    )
    port = server.start()
    try:
        held = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(2)]
        assert exchange(port, b"") == b""  # the third is closed at once
        for line in held:
            line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in line.recv(100)
            while line.recv(4096):
                pass
            line.close()
        for _ in range(100):  # a place is free as soon as its thread has ended
            if answer := exchange(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
                break
        assert parse(answer).status == 200
    finally:
        server.stop()


@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "nowhere..:1"])
def test_an_address_that_cannot_be_used_is_said(listen):
    with pytest.raises(InputError, match="test: cannot listen"):
        WebServer(listen, lambda request: text(200, ""), name="test")


def test_ip_6_is_spoken():
    try:
        server = WebServer("[::1]:0", lambda request: text(200, "six"), name="test")
    except InputError:
        pytest.skip("there is no IPv6 on this machine")
    port = server.start()
    try:
        with socket.create_connection(("::1", port), timeout=30) as line:
            line.sendall(b"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n")
            assert line.recv(4096).startswith(b"HTTP/1.1 200")
    finally:
        server.stop()
