"""Events reach a webhook and a command as one JSON object; what does not take them is said."""

import email
import json
import socketserver
import threading
from email import policy
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from common.errors import InputError, LocalError
from common.service.alerts import Hook, check_webhook

EVENT = {"event": "done", "name": "Zürich"}


class Receiver(BaseHTTPRequestHandler):
    status = 204
    taken: list

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.taken.append((self.headers["Content-Type"], json.loads(body)))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *words):
        pass


@pytest.fixture
def receiver(request):
    kind = type("OneReceiver", (Receiver,), {"status": request.param, "taken": []})
    server = HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield kind, f"http://127.0.0.1:{server.server_port}/events"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("receiver", [204], indirect=True)
def test_a_webhook_and_a_command_are_given_the_event(receiver, tmp_path):
    kind, url = receiver
    script = tmp_path / "hook"
    script.write_text(f'#!/bin/sh\ncat > "{tmp_path}/taken"\n')
    script.chmod(0o700)
    Hook(webhook=url, command=script).tell(EVENT)
    assert kind.taken == [("application/json; charset=utf-8", EVENT)]
    assert json.loads((tmp_path / "taken").read_text()) == EVENT


@pytest.mark.parametrize("receiver", [500], indirect=True)
def test_a_webhook_that_fails_is_an_error(receiver):
    with pytest.raises(LocalError, match="500"):
        Hook(webhook=receiver[1]).tell(EVENT)


def test_a_command_that_fails_is_an_error(tmp_path):
    with pytest.raises(LocalError, match="did not take an event"):
        Hook(command=tmp_path / "missing").tell(EVENT)


def test_an_address_that_is_none_is_refused():
    check_webhook("webhook", "")
    with pytest.raises(InputError, match="webhook: 'ftp://x' is not an address"):
        check_webhook("webhook", "ftp://x")


class MailServer(socketserver.StreamRequestHandler):
    """The few words of SMTP that a client without extensions needs."""

    def handle(self):
        self.say(220)
        while (word := self.rfile.readline().strip().upper()) != b"QUIT":
            refused = b"NOBODY@" in word and word.startswith(b"RCPT")
            self.say(550 if refused else 354 if word == b"DATA" else 250)
            if word == b"DATA":
                self.server.taken.append(b"".join(iter(self.rfile.readline, b".\r\n")))
                self.say(250)
        self.say(221)

    def say(self, code):
        self.wfile.write(b"%d\r\n" % code)


def mailed(event, monkeypatch):
    """What the sample program sends, in order."""
    with socketserver.TCPServer(("127.0.0.1", 0), MailServer) as server:
        server.taken = []
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        monkeypatch.setenv("MAIL_SERVER", f"127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("MAIL_TO", "us@example.org")
        root = Path(__file__).resolve().parents[3]
        Hook(command=root / "deploy" / "samples" / "mail-event").tell(event)
        thread.join()
    return [email.message_from_bytes(each, policy=policy.default) for each in server.taken]


WAITS = {
    "event": "waiting", "study": "ab" * 32, "name": "Zürich\nBcc: x",
    "words": "it waits for north", "at": "2026-11-17T03:34:35+00:00",
}  # fmt: skip


def test_the_sample_program_mails_the_event(monkeypatch):
    (message,) = mailed(WAITS, monkeypatch)
    assert message["Subject"] == "Parley: Zürich Bcc: x: waiting"
    assert (message["To"], message["Bcc"]) == ("us@example.org", None)
    assert WAITS["words"] in message.get_content()


def test_the_sample_program_mails_the_owner_that_is_awaited(monkeypatch):
    contacts = {
        "north": "ops@north.example", "east": "extension 4711", "south": "nobody@south.example",
    }  # fmt: skip
    owner, operator = mailed({**WAITS, "contacts": contacts}, monkeypatch)
    assert (owner["To"], operator["To"]) == ("ops@north.example", "us@example.org")
    assert owner["Subject"] == "Parley: Zürich Bcc: x waits for north"
    assert "the node of north: it waits for north" in owner.get_content()
    assert "south was not told" in operator.get_content()
