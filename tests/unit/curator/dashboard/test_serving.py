"""Who is let in by a certificate."""

import ssl
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.errors import InputError
from common.wire.pki import certificates
from curator.dashboard.serving import Operators, speaks_tls
from curator.settings import CuratorSettings
from tests.harness.consortium import enrolled
from tests.unit.curator.conftest import NOW
from tests.unit.service.web.conftest import Client


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("192.0.2.1", False), ("hub", False)],
)
def test_plain_http_is_for_loopback_only(host, local):
    listen = f"[{host}]:1" if ":" in host else f"{host}:1"
    folders = dict.fromkeys(("folder", "keys", "releases"), Path())
    settings = CuratorSettings(**folders, dashboard_listen=listen)
    assert speaks_tls(settings) is not local
    assert speaks_tls(replace(settings, dashboard_operators=Path("o")))


@pytest.fixture
def operator(ring, tmp_path):
    """Make a certificate of the consortium for an operator of the dashboard."""
    own = enrolled(ring, tmp_path / "alice", "alice")
    fingerprint = certificates.fingerprint(own.files.load().certificate)
    return SimpleNamespace(files=own.files, fingerprint=fingerprint)


def over_tls(files=None):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if files is not None:
        context.load_cert_chain(files.certificate, files.key)
    return lambda plain: context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_listed_certificate_logs_in_until_it_is_revoked(stage, ring, shown, operator, tmp_path):
    listed = tmp_path / "operators.txt"
    listed.write_text(f"# alice\n{operator.fingerprint}\n")
    page = shown(operators=listed)
    stranger = Client(page.port, scheme="https", wrap=over_tls())
    assert stranger.ask("GET", "/").headers["location"] == "/login"
    alice = Client(page.port, scheme="https", wrap=over_tls(operator.files))
    answer = alice.ask("GET", "/")
    (cookie,) = answer.cookies
    assert cookie.startswith(f"__Host-parley-{page.port}=")
    assert "Secure" in cookie
    front = alice.ask("GET", "/")
    assert front.status == 200
    ring.revoked.write_text(f"{operator.fingerprint}\n")
    assert alice.ask("GET", "/").status == 303


def test_a_certificate_that_is_not_listed_needs_the_token(stage, shown, operator, tmp_path):
    listed = tmp_path / "operators.txt"
    listed.write_text("")
    page = shown(operators=listed)
    alice = Client(page.port, scheme="https", wrap=over_tls(operator.files))
    assert alice.ask("GET", "/").headers["location"] == "/login"
    assert alice.log_in(page.token).status == 303
    assert alice.ask("GET", "/").status == 200


def test_tls_older_than_1_3_is_refused(shown, operator, tmp_path):
    listed = tmp_path / "operators.txt"
    listed.write_text("")
    page = shown(operators=listed)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    old = Client(page.port, scheme="https", wrap=context.wrap_socket)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        old.ask("GET", "/login")


def test_a_list_of_operators_that_cannot_be_read_stops_the_start(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        Operators(tmp_path / "missing", None, lambda: NOW)
    (tmp_path / "bad").write_text("not a fingerprint")
    with pytest.raises(InputError, match="fingerprint"):
        Operators(tmp_path / "bad", None, lambda: NOW)
