"""A site: login in front, pages behind it.

Before a page is asked, the site checks

- `Host`: only the names it is meant to be reached by, so that no foreign name can be pointed at it
  (DNS rebinding);
- the session cookie: HttpOnly, SameSite=Strict, one name per port, because ports share cookies.
  A browser on its way to an issuer and back has another one, SameSite=Lax, which opens nothing;
- of every form: `Origin` is the site itself, and the form carries the session's own token.

A client certificate opens a session by itself if its fingerprint is listed; the session then ends
when the certificate is taken off the list or revoked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

from common.errors import InputError, ParleyError, PolicyError
from common.report.page import element
from common.service.process import RateLimit
from common.service.web.exchange import Response, WebRequest, see_other, text
from common.service.web.pages import Asset, filled, shared_assets
from common.service.web.sessions import LIFE_S, SIGNED_ON_S, Session, Sessions

logger = logging.getLogger(__name__)
logger.addFilter(RateLimit(per_second=1))  # callers can provoke every line of this module

Page = Callable[[WebRequest, Session, Mapping[str, str]], Response]
ATTEMPT_S = 600.0  # in which a browser must be back from signing on
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoute:
    """A page: its method, its path as a regular expression with named groups, and its maker."""

    method: str
    path: str
    page: Page


class SingleSignOn(Protocol):
    """Who logs in elsewhere; a PolicyError says why not."""

    def start(self, here: str) -> tuple[str, str]:
        """Return where to send a browser, and the value of the cookie that it is known by."""

    def finish(self, browser: str, answer: Mapping[str, str]) -> str:
        """Return who came back, by the cookie and the query of the browser."""


class Site:
    """An application for `WebServer`.

    `holder_of` returns the fingerprint of a client certificate that may open a session, `admits`
    whether the certificate of a fingerprint still may.
    """

    def __init__(
        self,
        *,
        title: str,
        hosts: Sequence[str],
        sessions: Sessions,
        routes: Sequence[PageRoute],
        assets: Mapping[str, Asset],
        secure: bool = False,
        holder_of: Callable[[bytes], str | None] = lambda certificate: None,
        admits: Callable[[str], bool] = lambda fingerprint: False,
        sign_on: SingleSignOn | None = None,
    ) -> None:
        self._title = title
        self._hosts = frozenset(host.lower() for host in hosts)
        self._sessions = sessions
        self._routes = [(route, re.compile(route.path)) for route in routes]
        self._assets = {**shared_assets(), **assets}
        self._secure = secure
        self._holder_of, self._admits, self._sign_on = holder_of, admits, sign_on
        self._cookie = "parley"

    def at_port(self, port: int) -> None:
        """Name the cookie after the port, once it is known: browsers keep one jar per host."""
        self._cookie = f"{'__Host-' if self._secure else ''}parley-{port}"

    def alive(self, session: Session) -> bool:
        active = self._sessions.find(session.key)
        return active is not None and (not active.certificate or self._admits(active.certificate))

    def __call__(self, request: WebRequest) -> Response:
        try:
            return self._answer(request)
        except InputError as error:
            return text(HTTPStatus.BAD_REQUEST, str(error))
        except ParleyError as error:
            return text(HTTPStatus.CONFLICT, str(error))

    def _answer(self, request: WebRequest) -> Response:
        if _name_in(request.headers.get("host", "")) not in self._hosts:
            logger.warning("a request for another host was refused")
            return text(HTTPStatus.MISDIRECTED_REQUEST, "This site has another name.")
        if request.method == "POST" and not self._from_here(request):
            logger.warning("a form from another site was refused")
            return text(HTTPStatus.FORBIDDEN, "This form is not from this site.")
        if request.method == "GET" and request.path in self._assets:
            return self._assets[request.path].response()
        if request.path == "/login":
            return self._log_in(request) if request.method == "POST" else self._login_page()
        if self._sign_on is not None and request.method == "GET":
            if request.path == "/login/sign-on":
                return self._send_away(request, self._sign_on)
            if request.path == "/login/callback":
                return self._take_back(request, self._sign_on)
        session = self._session(request)
        if session is None:
            return self._turn_away(request)
        if request.method == "POST":
            form = request.form()
            if not session.vouches_for(form.get("csrf", "")):
                logger.warning("a form without its token was refused")
                return text(HTTPStatus.FORBIDDEN, "This form is out of date. Reload the page.")
        if (request.method, request.path) == ("POST", "/logout"):
            self._sessions.close(session)
            return see_other("/login", self._set_cookie("", life_s=0))
        return self._page(request, session)

    def _page(self, request: WebRequest, session: Session) -> Response:
        known = False
        for route, pattern in self._routes:
            match = pattern.fullmatch(request.path)
            if match and route.method == request.method:
                return route.page(request, session, match.groupdict())
            known = known or match is not None
        if known:
            return text(HTTPStatus.METHOD_NOT_ALLOWED, "Not in this way.")
        return text(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _session(self, request: WebRequest) -> Session | None:
        session = self._sessions.find(request.cookie(self._cookie))
        return session if session is not None and self.alive(session) else None

    def _turn_away(self, request: WebRequest) -> Response:
        if request.method != "GET" or request.path != "/":
            return text(HTTPStatus.UNAUTHORIZED, "Log in first.")
        holder = None if request.certificate is None else self._holder_of(request.certificate)
        if holder is None:
            return see_other("/login")
        logger.info("a certificate opened a session: %s", holder)
        return see_other("/", self._set_cookie(self._sessions.open(holder).key))

    def _login_page(self, complaint: str = "", status: HTTPStatus = HTTPStatus.OK) -> Response:
        shown = element("p", complaint, class_="warning", role="alert") if complaint else ""
        link = element("a", "Single sign-on", href="/login/sign-on", class_="button")
        other = "" if self._sign_on is None else element("p", link)
        page = filled("login.html", title=self._title, complaint=shown, sign_on=other)
        return Response(status=status, body=page)

    def _send_away(self, request: WebRequest, sign_on: SingleSignOn) -> Response:
        try:
            address, browser = sign_on.start(self._here(request))
        except PolicyError as error:
            return self._not_signed_on(error)
        return see_other(address, self._attempt_cookie(browser))

    def _take_back(self, request: WebRequest, sign_on: SingleSignOn) -> Response:
        try:
            who = sign_on.finish(request.cookie(f"{self._cookie}-sign-on"), request.asked())
        except PolicyError as error:
            return self._not_signed_on(error)
        logger.info("%r signed on", who)
        session = self._sessions.open(life_s=SIGNED_ON_S)
        # No redirection: what another site set off does not send a SameSite=Strict cookie along.
        cookies = (
            self._set_cookie(session.key, life_s=SIGNED_ON_S), self._attempt_cookie("", life_s=0)
        )  # fmt: skip
        return Response(body=filled("signed-on.html", title=self._title), headers=cookies)

    def _not_signed_on(self, error: PolicyError) -> Response:
        logger.warning("no one signed on: %s", error)
        return self._login_page(f"Single sign-on failed: {error}.", HTTPStatus.FORBIDDEN)

    def _attempt_cookie(self, value: str, *, life_s: float = ATTEMPT_S) -> tuple[str, str]:
        name, cookie = self._set_cookie(value, life_s=life_s)
        return name, cookie.replace("=", "-sign-on=", 1).replace("SameSite=Strict", "SameSite=Lax")

    def _log_in(self, request: WebRequest) -> Response:
        try:
            offered = request.form().get("token", "").strip()
            session = self._sessions.login(offered, address=request.address)
        except PolicyError as error:
            return self._login_page(str(error), HTTPStatus.TOO_MANY_REQUESTS)
        if session is None:
            logger.warning("a wrong token was refused")
            return self._login_page("That is not the token.", HTTPStatus.FORBIDDEN)
        return see_other("/", self._set_cookie(session.key))

    def _set_cookie(self, value: str, *, life_s: float = LIFE_S) -> tuple[str, str]:
        manners = "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if self._secure else "")
        return "Set-Cookie", f"{self._cookie}={value}; Max-Age={life_s:.0f}; {manners}"

    def _from_here(self, request: WebRequest) -> bool:
        origin = request.headers.get("origin", "").lower()
        fetched = request.headers.get("sec-fetch-site", "same-origin")
        return origin == self._here(request) and fetched == "same-origin"

    def _here(self, request: WebRequest) -> str:
        scheme = "https" if self._secure else "http"
        return f"{scheme}://{request.headers.get('host', '').lower()}"


def _name_in(host: str) -> str:
    """Return a `Host` header without its port, which a tunnel may change."""
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::\d{1,5})?", host)
    return "" if match is None else (match[1] or match[2]).lower()
