"""Nobody comes in without the token, and no other site acts in the name of who is in."""

import re

import pytest

from common.service.web.exchange import WebRequest
from tests.unit.service.web.conftest import TOKEN, Client

WANTED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
}


def csrf_of(answer):
    return re.search(r'name="csrf" value="([^"]+)"', answer.body.decode())[1]


def test_without_a_session_there_is_only_the_login_page(client):
    assert (client.ask("GET", "/").status, client.ask("GET", "/").headers["location"]) == (
        303,
        "/login",
    )
    assert client.ask("GET", "/pieces").status == 401
    page = client.ask("GET", "/login")
    assert page.status == 200
    assert b"Test &lt;site&gt;" in page.body
    assert b'<label for="token">' in page.body


def test_the_right_token_gives_a_cookie_that_scripts_and_other_sites_do_not_get(client, running):
    answer = client.log_in()
    assert answer.status == 303
    (cookie,) = answer.cookies
    assert cookie.startswith(f"parley-{running.port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    front = client.ask("GET", "/")
    assert front.status == 200
    assert b"&lt;secret&gt;" in front.body


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN.upper()])
def test_a_wrong_token_is_refused(client, token):
    answer = client.log_in(token)
    assert answer.status == 403
    assert not answer.cookies
    assert client.ask("GET", "/").status == 303


def test_many_wrong_tokens_close_the_door_for_a_while(client):
    statuses = [client.log_in("wrong").status for _ in range(11)]
    assert statuses == [403] * 10 + [429]
    assert client.log_in().status == 429


def test_wrong_tokens_from_elsewhere_close_no_door_here(client, running, caplog):
    form = {"content-type": "application/x-www-form-urlencoded", "host": client.host,
            "origin": client.origin}  # fmt: skip

    def log_in(token, address):
        body = f"token={token}".encode()
        request = WebRequest(method="POST", path="/login", headers=form, body=body, address=address)
        return running.site(request).status

    statuses = [log_in("wrong", "192.0.2.1") for _ in range(60)]
    assert statuses == [403] * 10 + [429] * 50
    assert log_in(TOKEN, "192.0.2.1") == 429
    assert log_in(TOKEN, "192.0.2.2") == 303
    assert client.log_in().status == 303
    assert caplog.messages.count("a wrong token was refused") < 10


@pytest.mark.parametrize("path", ["/", "/login", "/style.css", "/nothing", "/fail", "/pieces"])
def test_every_response_has_the_security_headers(client, path):
    client.log_in()
    answer = client.ask("GET", path)
    assert WANTED.items() <= answer.headers.items()
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_a_defect_is_told_without_its_text(client):
    client.log_in()
    answer = client.ask("GET", "/fail")
    assert answer.status == 500
    assert b"secret" not in answer.body


def test_a_form_needs_its_token_and_its_origin(client, running):
    client.log_in()
    csrf = csrf_of(client.ask("GET", "/"))
    body = f"csrf={csrf}".encode()
    for refused in (
        client.ask("POST", "/act/a", body=b""),
        client.ask("POST", "/act/a", body=b"csrf=wrong"),
        client.ask("POST", "/act/a", body=body, Origin=None),
        client.ask("POST", "/act/a", body=body, Origin="null"),
        client.ask("POST", "/act/a", body=body, Origin="http://evil.example"),
        client.ask("POST", "/act/a", body=body, Origin=f"http://127.0.0.1:{running.port + 1}"),
        client.ask("POST", "/act/a", body=body, Origin=client.origin.replace("http", "https")),
        client.ask("POST", "/act/a", body=body, Sec_Fetch_Site="cross-site"),
    ):
        assert refused.status == 403
    assert running.done == []
    assert client.ask("POST", "/act/a", body=body, Sec_Fetch_Site="same-origin").status == 200
    assert running.done == ["a"]


def test_the_token_of_one_session_is_no_use_in_another(client, running):
    client.log_in()
    csrf = csrf_of(client.ask("GET", "/"))
    other = Client(running.port)
    other.log_in()
    assert other.ask("POST", "/act/a", body=f"csrf={csrf}".encode()).status == 403


def test_an_action_needs_a_session(client, running):
    assert client.ask("POST", "/act/a", body=b"csrf=").status == 401
    client.cookie = f"parley-{running.port}=made-up"
    assert client.ask("POST", "/act/a", body=b"csrf=").status == 401
    assert running.done == []


def test_login_from_another_site_is_refused(client):
    answer = client.ask("POST", "/login", body=f"token={TOKEN}".encode(), Origin="http://evil.test")
    assert answer.status == 403
    assert not answer.cookies


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil", "[::2]"])
def test_another_name_for_this_machine_is_refused(client, host):
    assert client.ask("GET", "/login", Host=host).status == 421


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1", "[::1]:7444", "LOCALHOST"])
def test_the_names_of_loopback_are_good_at_any_port(client, host):
    assert client.ask("GET", "/login", Host=host).status == 200


def test_logging_out_ends_the_session(client):
    client.log_in()
    cookie = client.cookie
    body = f"csrf={csrf_of(client.ask('GET', '/'))}".encode()
    assert client.ask("POST", "/logout", body=body).status == 303
    client.cookie = cookie
    assert client.ask("GET", "/").status == 303


def test_unknown_pages_and_methods(client):
    client.log_in()
    assert client.ask("GET", "/nothing").status == 404
    assert client.ask("GET", "/act/a").status == 405
    assert client.ask("GET", "/../../etc/passwd").status == 404
    assert client.ask("PUT", "/").status == 501
    assert client.ask("GET", "/pieces").body == b"one two"


def test_a_body_that_is_no_form_is_refused(client):
    answer = client.ask("POST", "/login", body=b"{}", Content_Type="application/json")
    assert answer.status == 400


def test_a_certificate_opens_a_session_that_ends_with_its_welcome(running):
    site, welcome = running.site, {"AA:BB"}
    site._holder_of = lambda der: "AA:BB" if der == b"der" else None
    site._admits = lambda fingerprint: fingerprint in welcome

    def ask(certificate, cookie=""):
        headers = {"host": "localhost", "cookie": cookie}
        return site(WebRequest(method="GET", path="/", headers=headers, certificate=certificate))

    assert dict(ask(b"other").headers) == {"Location": "/login"}
    headers = dict(ask(b"der").headers)
    assert headers["Location"] == "/"
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert ask(b"der", cookie).status == 200
    welcome.clear()
    assert ask(b"der", cookie).status == 303
