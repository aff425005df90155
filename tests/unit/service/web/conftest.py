"""A site on a loopback port, and a client that says exactly what it is told to say."""

import socket
import time
from dataclasses import dataclass, field

import pytest

from common.report.page import element
from common.service.web.exchange import Response, text
from common.service.web.pages import page
from common.service.web.server import WebServer
from common.service.web.sessions import Sessions
from common.service.web.site import LOOPBACK, PageRoute, Site

TOKEN = "t" * 43


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes
    cookies: list = field(default_factory=list)


def parse(raw):
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = [line.split(": ", 1) for line in lines]
    return Answer(
        status=int(first.split()[1]),
        headers={name.lower(): value for name, value in pairs},
        body=body,
        cookies=[value for name, value in pairs if name == "Set-Cookie"],
    )


def exchange(port, raw, *, wrap=lambda plain: plain):
    """Send bytes, read until the other side closes; empty if it closed without a word."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain, wrap(plain) as line:
        try:
            line.sendall(raw)
            pieces = []
            while piece := line.recv(65536):
                pieces.append(piece)
        except ConnectionError:
            pass
        return b"".join(pieces)


class Client:
    """Speaks to one site; keeps its cookie."""

    def __init__(self, port, *, scheme="http", wrap=lambda plain: plain):
        self.port, self.cookie, self.wrap = port, "", wrap
        self.host = f"127.0.0.1:{port}"
        self.origin = f"{scheme}://{self.host}"

    def ask(self, method, path, *, body=b"", **headers):
        standard = {"Host": self.host}
        if method == "POST":
            standard |= {
                "Origin": self.origin,
                "Content-Type": "application/x-www-form-urlencoded",
                "Content-Length": str(len(body)),
            }
        if self.cookie:
            standard["Cookie"] = self.cookie
        standard |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{name}: {value}" for name, value in standard.items() if value is not None]
        raw = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + body
        answer = parse(exchange(self.port, raw, wrap=self.wrap))
        for cookie in answer.cookies:
            self.cookie = cookie.partition(";")[0]
        return answer

    def log_in(self, token=TOKEN):
        return self.ask("POST", "/login", body=f"token={token}".encode())


@dataclass
class Running:
    port: int
    site: Site
    sessions: Sessions
    done: list


@pytest.fixture
def running():
    done = []

    def front(request, session, match):
        return page("Front", "lead", element("p", "<secret>"), csrf=session.csrf)

    def act(request, session, match):
        done.append(match["what"])
        return text(200, "done")

    def pieces(request, session, match):
        return Response(kind="text/plain", body=iter([b"one ", b"two"]))

    def fail(request, session, match):
        raise RuntimeError("a secret of the program")

    sessions = Sessions(TOKEN, now=time.monotonic)
    site = Site(
        title="Test <site>",
        hosts=LOOPBACK,
        sessions=sessions,
        routes=[
            PageRoute(method="GET", path="/", page=front),
            PageRoute(method="POST", path="/act/(?P<what>[a-z]+)", page=act),
            PageRoute(method="GET", path="/pieces", page=pieces),
            PageRoute(method="GET", path="/fail", page=fail),
        ],
        assets={},
    )
    server = WebServer("127.0.0.1:0", site, name="test")
    site.at_port(server.port)
    with server.running():
        yield Running(server.port, site, sessions, done)


@pytest.fixture
def client(running):
    return Client(running.port)
