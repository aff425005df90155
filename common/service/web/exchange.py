"""A request and a response of a site, and the headers that every response carries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs

from common.errors import InputError

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json; charset=utf-8"

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Nothing but our own files, no frames, no forms to elsewhere, nothing cached.
SECURITY_HEADERS = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    # Not `no-referrer`: browsers then send `Origin: null` with our own forms.
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), microphone=(), geolocation=()"),
    ("Cache-Control", "no-store"),
)

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """A request of a browser."""

    method: str  # GET or POST
    path: str  # without query
    headers: Mapping[str, str]  # by their names in small letters
    body: bytes = b""  # of a POST
    certificate: bytes | None = None  # the client's, in DER, if TLS has verified one
    address: str = ""  # the client's, without its port
    query: str = ""  # what follows the path; only who comes back from signing on has one

    def cookie(self, name: str) -> str:
        """Return the value of a cookie; "" if there is none."""
        for part in self.headers.get("cookie", "").split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value
        return ""

    def form(self) -> Mapping[str, str]:
        """Return the fields of a form, the first of each name; InputError without a form."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise InputError("expected a form")
        return _fields(self.body)

    def asked(self) -> Mapping[str, str]:
        """Return the fields of the query, the first of each name."""
        return _fields(self.query.encode())


def _fields(encoded: bytes) -> Mapping[str, str]:
    try:
        fields = parse_qs(encoded.decode("utf-8"), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise InputError("the form cannot be read") from error
    return {name: values[0] for name, values in fields.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer: bytes, or an iterator of them that ends with the connection."""

    status: HTTPStatus = HTTPStatus.OK
    kind: str = HTML
    body: bytes | Iterator[bytes] = b""
    headers: Headers = field(default=())


def text(status: HTTPStatus, words: str, *headers: tuple[str, str]) -> Response:
    return Response(status=status, kind=TEXT, body=f"{words}\n".encode(), headers=headers)


def download(name: str, pieces: Iterator[bytes]) -> Response:
    """Offer a .zip to be saved, under a name that file systems and headers can hold."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    disposition = ("Content-Disposition", f'attachment; filename="{name}"')
    return Response(kind="application/zip", body=pieces, headers=(disposition,))


def see_other(path: str, *headers: tuple[str, str]) -> Response:
    """Redirect; after a form, so that reloading does not send it again."""
    return Response(status=HTTPStatus.SEE_OTHER, kind=TEXT, headers=(("Location", path), *headers))
