"""Single sign-on by OpenID Connect: the authorization code flow with PKCE, of a relying party.

    [dashboard_oidc]
    issuer = "https://login.example.org/realms/health"
    client_id = "parley"
    groups = "parley-operators"          # or: subjects = "...", or both; comma-separated

An attempt is a state, a nonce and a verifier, drawn here and used once within ten minutes. It is
bound to a browser by a cookie of its own. The identity token comes from the issuer's token endpoint
and must have an asymmetric signature by a key of its JWKS, our audience, its issuer, times that
hold, and the attempt's nonce (OpenID Connect Core 1.0, 3.1.3.7). Who it names must be listed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import InputError, PolicyError, located, naming_extras
from common.files import read_private_key
from common.schema.toml import read_table, text
from common.service.web.sessions import same
from common.service.web.site import ATTEMPT_S, LOOPBACK

if TYPE_CHECKING:
    from jwt import PyJWKClient

CALLBACK = "/login/callback"
MOST_ATTEMPTS = 256
_KEYS = ("issuer", "client_id", "subjects", "groups", "groups_claim", "scope")
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
_REQUIRED = ("iss", "sub", "aud", "exp", "iat")
_LEEWAY_S = 60
_TIMEOUT_S = 10.0
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The issuer, what it knows us by, and who of its users may log in."""

    issuer: str
    client_id: str
    subjects: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    groups_claim: str = "groups"  # the claim that lists a user's groups
    scope: str = "openid"
    secret_file: Path | None = None  # of a confidential client; None for a public one

    @classmethod
    def of(cls, table: Mapping[str, str], secret_file: Path | None) -> Provider:
        """Read the settings; InputError names the key and what would do."""
        with located("dashboard_oidc"):
            values = read_table(table, dict.fromkeys(_KEYS, text), required=("issuer", "client_id"))
            listed = {
                key: frozenset(filter(None, map(str.strip, values.pop(key, "").split(","))))
                for key in ("subjects", "groups")
            }
            if not any(listed.values()):
                raise InputError(
                    "without subjects and groups every user of the issuer could log in. Name who "
                    "may: subjects, groups, or both"
                )
            _require_safe("issuer", values["issuer"])
            return cls(**(values | listed), secret_file=secret_file)

    def admits(self, claims: Mapping[str, Any]) -> bool:
        """Return whether the user of these claims is listed, or in a group that is."""
        stated = claims.get(self.groups_claim)
        groups = stated if isinstance(stated, list) else [stated]
        memberships = {group for group in groups if isinstance(group, str)}
        return claims["sub"] in self.subjects or not self.groups.isdisjoint(memberships)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One way to the issuer and back."""

    browser: str  # the value of its cookie
    nonce: str
    verifier: str
    redirect: str
    ends: float


class SignOn:
    """Sends browsers to an issuer, and says who came back. Threads may share it."""

    def __init__(self, provider: Provider, *, now: Callable[[], float]) -> None:
        with naming_extras("dashboard_oidc"):
            import jwt

        self._jwt, self._provider, self._now = jwt, provider, now
        self._lock = threading.Lock()
        self._attempts: dict[str, _Attempt] = {}  # by state, the oldest first

    @cached_property
    def _endpoints(self) -> Mapping[str, str]:
        """The issuer's endpoints, by its discovery document."""
        issuer = self._provider.issuer
        document = _fetched(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != issuer:
            raise PolicyError(f"the issuer calls itself {document.get('issuer')!r}, not {issuer!r}")
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        try:
            for name in names:
                _require_safe(name, document.get(name))
        except InputError as error:
            raise PolicyError(f"the issuer's {error}") from None
        return {name: document[name] for name in names}

    @cached_property
    def _keys(self) -> PyJWKClient:
        return self._jwt.PyJWKClient(self._endpoints["jwks_uri"], timeout=_TIMEOUT_S)

    def start(self, here: str) -> tuple[str, str]:
        """Return where to send a browser, and the value of the cookie that it is known by."""
        endpoint = self._endpoints["authorization_endpoint"]
        state, nonce, verifier, browser = (secrets.token_urlsafe(32) for _ in range(4))
        attempt = _Attempt(browser, nonce, verifier, here + CALLBACK, self._now() + ATTEMPT_S)
        with self._lock:
            while len(self._attempts) >= MOST_ATTEMPTS:
                del self._attempts[next(iter(self._attempts))]
            self._attempts[state] = attempt
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
        parameters = {
            "response_type": "code", "client_id": self._provider.client_id,
            "redirect_uri": attempt.redirect, "scope": self._provider.scope, "state": state,
            "nonce": nonce, "code_challenge": challenge.decode().rstrip("="),
            "code_challenge_method": "S256",
        }  # fmt: skip
        joint = "&" if "?" in endpoint else "?"
        return f"{endpoint}{joint}{urllib.parse.urlencode(parameters)}", browser

    def finish(self, browser: str, answer: Mapping[str, str]) -> str:
        """Return the subject that signed on; PolicyError if none did, or one that may not."""
        with self._lock:
            attempt = self._attempts.pop(answer.get("state", ""), None)  # used once
        if attempt is None or attempt.ends <= self._now():
            raise PolicyError("this attempt to sign on is over. Try again")
        if not same(browser, secret=attempt.browser):
            raise PolicyError("this attempt to sign on was begun in another browser. Try again")
        if "code" not in answer:
            raise PolicyError("the issuer did not let you sign on")
        claims = self._claims(self._token(answer["code"], attempt), attempt.nonce)
        if not self._provider.admits(claims):
            raise PolicyError(f"{claims['sub']!r} signed on, and is not among who may log in here")
        return str(claims["sub"])

    def _token(self, code: str, attempt: _Attempt) -> str:
        """Exchange a code for the identity token."""
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": attempt.redirect,
            "client_id": self._provider.client_id, "code_verifier": attempt.verifier,
        }  # fmt: skip
        if self._provider.secret_file is not None:
            secret = read_private_key(self._provider.secret_file).decode(errors="replace")
            form["client_secret"] = secret.strip()
        token = _fetched(self._endpoints["token_endpoint"], form).get("id_token")
        if not isinstance(token, str):
            raise PolicyError("the issuer sent no identity token")
        return token

    def _claims(self, token: str, nonce: str) -> Mapping[str, Any]:
        provider = self._provider
        try:
            claims = self._jwt.decode(
                token,
                self._keys.get_signing_key_from_jwt(token),
                algorithms=_ALGORITHMS,
                audience=provider.client_id,
                issuer=provider.issuer,
                leeway=_LEEWAY_S,
                options={"require": list(_REQUIRED)},
            )
        except (self._jwt.PyJWTError, ValueError) as error:
            raise PolicyError(f"the identity token is refused: {error}") from None
        if not same(str(claims.get("nonce", "")), secret=nonce):
            raise PolicyError("the identity token is refused: it is of another attempt (nonce)")
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if ("azp" in claims or several) and claims.get("azp") != provider.client_id:
            raise PolicyError("the identity token is refused: it is for another client (azp)")
        return claims


def _require_safe(key: str, address: object) -> None:
    """Refuse an address that is not https, but for one on this machine."""
    if isinstance(address, str) and address.isascii() and address.isprintable():
        parts = urllib.parse.urlsplit(address)
        local = parts.scheme == "http" and parts.hostname in LOOPBACK
        if parts.hostname and " " not in address and (parts.scheme == "https" or local):
            return
    raise InputError(f"{key}: {address!r} is no address to trust. Write https://HOST/PATH")


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow no redirection: an endpoint is where the issuer says that it is."""


def _fetched(address: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON object at an address of the issuer, which a form may be posted to."""
    data = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request(  # noqa: S310  # the scheme is checked
        address, data=data, headers={"Accept": "application/json"}
    )
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=_TIMEOUT_S) as response:
            document = json.loads(response.read(_MOST_BYTES))
    except (OSError, ValueError) as error:  # an answer other than 2xx is an OSError, too
        raise PolicyError(f"the issuer cannot be asked: {error}") from error
    if not isinstance(document, dict):
        raise PolicyError("the issuer cannot be asked: it did not answer with an object")
    return document
