"""Single sign-on at the dashboard: a real issuer on loopback, real HTTP, real RS256 tokens."""

import base64
import hmac
import http.client
import json
import time
from dataclasses import replace
from urllib.parse import urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from common.errors import InputError
from common.service.web.server import WebServer
from common.service.web.sessions import Sessions
from common.service.web.site import ATTEMPT_S, LOOPBACK, PageRoute, Site
from curator.dashboard.sign_on import MOST_ATTEMPTS, Provider, SignOn
from tests.harness.issuer import CLIENT, serving_issuer
from tests.unit.service.web.conftest import TOKEN, Client

STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def issuer_once():
    with serving_issuer() as issuer:
        yield issuer


@pytest.fixture
def issuer(issuer_once):
    issuer_once.begin_anew()
    return issuer_once


class Clock:
    ahead = 0.0

    def __call__(self):
        return time.monotonic() + self.ahead


class Browser(Client):
    """Keeps every cookie, as a browser does."""

    def __init__(self, port):
        super().__init__(port)
        self.jar = {}

    def ask(self, method, path, **more):
        self.cookie = "; ".join(f"{name}={value}" for name, value in self.jar.items())
        answer = super().ask(method, path, **more)
        for cookie in answer.cookies:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.jar[name] = value
        return answer

    def leave(self):
        """Go to the issuer, sign on there, and return the address to come back to."""
        away = urlsplit(self.ask("GET", "/login/sign-on").headers["location"])
        line = http.client.HTTPConnection(away.hostname, away.port, timeout=30)
        try:
            line.request("GET", f"{away.path}?{away.query}")
            back = urlsplit(line.getresponse().headers["Location"])
        finally:
            line.close()
        assert back.netloc == self.host
        return f"{back.path}?{back.query}"

    def sign_on(self):
        return self.ask("GET", self.leave())


@pytest.fixture
def provider(issuer):
    return Provider.of({"issuer": issuer.address, "client_id": CLIENT, "subjects": "alice"}, None)


@pytest.fixture
def site(provider):
    """Serve a site behind the issuer; `site(...)` changes who may log in."""
    running = []

    def start(**changes):
        clock = Clock()
        made = Site(
            title="Hub", hosts=LOOPBACK, sessions=Sessions(TOKEN, now=clock), assets={},
            routes=[PageRoute(method="GET", path="/", page=lambda *_: page("inside"))],
            sign_on=SignOn(replace(provider, **changes), now=clock),
        )  # fmt: skip
        server = WebServer("127.0.0.1:0", made, name="test")
        made.at_port(server.port)
        context = server.running()
        running.append(context)
        browser = Browser(context.__enter__())
        browser.clock = clock
        return browser

    yield start
    for context in running:
        context.__exit__(None, None, None)


def page(words):
    from common.service.web.exchange import Response

    return Response(body=words.encode())


def test_a_listed_user_is_let_in_with_a_cookie_of_an_hour(site, issuer):
    browser = site()
    assert b'href="/login/sign-on"' in browser.ask("GET", "/login").body
    answer = browser.sign_on()
    assert answer.status == 200
    assert b'content="0;url=/"' in answer.body, "no redirection: the cookie is SameSite=Strict"
    session, attempt = answer.cookies
    assert session.startswith(f"parley-{browser.port}=")
    assert session.endswith("Max-Age=3600; Path=/; HttpOnly; SameSite=Strict")
    assert "Max-Age=0" in attempt
    assert browser.ask("GET", "/").body == b"inside"
    (asked,) = issuer.asked
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert (asked["scope"], asked["client_id"], asked["tenant"]) == ("openid", CLIENT, "1")
    browser.clock.ahead = 3601
    assert browser.ask("GET", "/").status == 303


def test_the_cookies_are_secure_where_the_site_speaks_tls(provider):
    made = Site(
        title="Hub", hosts=LOOPBACK, sessions=Sessions(TOKEN, now=time.monotonic), assets={},
        routes=[], secure=True, sign_on=SignOn(provider, now=time.monotonic),
    )  # fmt: skip
    made.at_port(7444)
    for name, (_, cookie) in {
        "__Host-parley-7444": made._set_cookie("x"),
        "__Host-parley-7444-sign-on": made._attempt_cookie("x"),
    }.items():
        assert cookie.startswith(f"{name}=x; ")
        assert "; Secure" in cookie
        assert "; HttpOnly" in cookie
    assert "SameSite=Lax" in made._attempt_cookie("x")[1]


def test_the_secret_of_a_confidential_client_is_sent(site, issuer, tmp_path):
    secret = tmp_path / "oidc.secret"
    secret.write_text("hush\n")
    secret.chmod(0o600)
    assert site(secret_file=secret).sign_on().status == 200
    assert issuer.secrets == ["hush"]


@pytest.mark.parametrize("stated", [["staff", 3, "operators"], "operators"])
def test_a_group_will_do(site, issuer, stated):
    browser = site(subjects=frozenset(), groups=frozenset({"operators"}))
    issuer.claims = {"groups": stated}
    assert browser.sign_on().status == 200


NOW = int(time.time())


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"aud": "other"}, b"Audience doesn"),
        ({"aud": None}, b"missing the &quot;aud&quot; claim"),
        ({"exp": NOW - 3600}, b"Signature has expired"),
        ({"exp": None}, b"missing the &quot;exp&quot; claim"),
        ({"iat": NOW + 3600}, b"not yet valid"),
        ({"nonce": "another"}, b"of another attempt"),
        ({"nonce": None}, b"of another attempt"),
        ({"iss": "https://other.example"}, b"Invalid issuer"),
        ({"aud": [CLIENT, "other"]}, b"for another client"),
        ({"azp": "other"}, b"for another client"),
        ({"sub": "mallory"}, b"not among who may log in"),
        ({"sub": "mallory", "groups": {"operators": 1}}, b"not among who may log in"),
    ],
)
def test_a_token_that_is_not_ours_opens_nothing(site, issuer, claims, words):
    browser = site()
    issuer.claims = claims
    refused(browser, browser.sign_on(), words)


def refused(browser, answer, words):
    assert answer.status == 403
    assert words in answer.body.replace(b"&#34;", b"&quot;")
    assert all("-sign-on=" in cookie for cookie in answer.cookies)
    assert browser.ask("GET", "/").status == 303


def by_hand(algorithm, sign):
    """Return a signer of tokens that no library would make."""

    def signed(claims):
        header = {"alg": algorithm, "kid": "first"}
        parts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in (header, claims)]
        whole = b".".join(part.rstrip(b"=") for part in parts)
        return b".".join([whole, base64.urlsafe_b64encode(sign(whole)).rstrip(b"=")]).decode()

    return signed


def test_a_signature_that_is_not_the_issuers_opens_nothing(site, issuer):
    browser = site()
    issuer.sign = lambda claims: jwt.encode(claims, STRANGER, "RS256", headers={"kid": "first"})
    refused(browser, browser.sign_on(), b"Signature verification failed")
    public = issuer.own.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    # The public key as the secret of a symmetric signature; no signature at all; no token at all.
    for sign in (
        by_hand("HS256", lambda whole: hmac.digest(public, whole, "sha256")),
        by_hand("none", lambda whole: b""),
        lambda claims: "a.b.c",
        lambda claims: None,
    ):
        issuer.sign = sign
        refused(browser, browser.sign_on(), b"identity token")


def test_a_key_that_came_later_is_fetched(site, issuer):
    browser = site()
    issuer.keys["second"] = STRANGER
    issuer.kid = "second"
    assert browser.sign_on().status == 200


def test_a_state_is_used_once_in_its_own_browser_and_in_time(site, issuer):
    browser, other = site(), None
    back = browser.leave()
    assert browser.ask("GET", back).status == 200
    replayed = Browser(browser.port)
    replayed.jar = {name: value for name, value in browser.jar.items() if "sign-on" in name}
    refused(replayed, replayed.ask("GET", back), b"is over")
    other = Browser(browser.port)
    refused(other, other.ask("GET", browser.leave()), b"in another browser")
    late = browser.leave()
    browser.clock.ahead = ATTEMPT_S + 1
    fresh = Browser(browser.port)
    fresh.jar = dict(browser.jar)
    assert fresh.ask("GET", late).status == 403
    unknown = Browser(browser.port)
    refused(unknown, unknown.ask("GET", "/login/callback?code=c&state=s"), b"is over")
    refused(unknown, unknown.ask("GET", "/login/callback"), b"is over")


def test_an_issuer_that_refuses_or_errs_is_told(site, issuer):
    browser = site()
    issuer.refuses = True
    refused(browser, browser.sign_on(), b"did not let you sign on")
    issuer.refuses = False
    back = browser.leave()
    issuer.codes.clear()
    refused(browser, browser.ask("GET", back), b"cannot be asked")


@pytest.mark.parametrize(
    ("discovered", "words"),
    [
        ({"issuer": "https://other.example"}, b"calls itself"),
        ({"token_endpoint": "http://other.example/token"}, b"is no address to trust"),
        ({"authorization_endpoint": "https://a.example/\r\nSet-Cookie: x=y"}, b"no address"),
        ({"jwks_uri": 7}, b"is no address to trust"),
    ],
)
def test_a_discovery_that_leads_elsewhere_is_refused(site, issuer, discovered, words):
    issuer.discovered = discovered
    browser = site()
    answer = browser.ask("GET", "/login/sign-on")
    assert answer.status == 403
    assert words in answer.body


def test_attempts_are_bounded(provider, issuer):
    sign_on = SignOn(provider, now=time.monotonic)
    for _ in range(MOST_ATTEMPTS + 5):
        sign_on.start("http://127.0.0.1")
    assert len(sign_on._attempts) == MOST_ATTEMPTS


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"client_id": "parley", "subjects": "a"}, "issuer"),
        ({"issuer": "https://a.example", "client_id": "parley"}, "every user of the issuer"),
        ({"issuer": "https://a.example", "client_id": "p", "subjects": " , "}, "every user"),
        ({"issuer": "http://a.example", "client_id": "p", "subjects": "a"}, "Write https"),
        ({"issuer": "https://a.example", "client_id": "p", "group": "a"}, "group"),
    ],
)
def test_settings_that_let_in_too_many_are_refused(table, words):
    with pytest.raises(InputError, match=f"dashboard_oidc: .*{words}"):
        Provider.of(table, None)
