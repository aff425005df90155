"""Metrics in Prometheus's text format over HTTP: figures about the service, never about rows.

Samples are collected when they are asked for. The endpoint has no access control, so it is
off unless it is given an address; give it an address that only the monitoring can reach.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal

from common.errors import ParleyError
from common.service.process import RateLimit
from common.service.web.exchange import Response, WebRequest, text
from common.service.web.server import WebServer
from common.wire.pki.credentials import CredentialFiles

logger = logging.getLogger(__name__)
logger.addFilter(RateLimit(per_second=1))  # callers can provoke what it says

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MOST_CONNECTIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One figure."""

    name: str  # as Prometheus has them: words joined by `_`, the unit last, `_total` for counters
    help: str  # one line for people
    kind: Literal["counter", "gauge"]  # counters only grow, and begin at 0 when the process does
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)  # what tells samples of one name apart


def gauge(name: str, value: float, words: str, labels: Mapping[str, str] | None = None) -> Sample:
    """Make a figure that goes up and down; `words` are its help."""
    return Sample(name=name, help=words, kind="gauge", value=value, labels=labels or {})


def certificate_gauge(files: CredentialFiles) -> Sample:
    """Measure when a service has to have a new certificate."""
    return gauge(
        "parley_certificate_expires_seconds",
        files.load().certificate.not_valid_after_utc.timestamp(),
        "When the certificate in use expires, in seconds since 1970.",
    )


def render(samples: Iterable[Sample]) -> str:
    """Write samples of one name together, under its help and kind."""
    lines: dict[str, list[str]] = {}
    for sample in samples:
        head = [f"# HELP {sample.name} {sample.help}", f"# TYPE {sample.name} {sample.kind}"]
        labels = ",".join(f'{key}="{_escaped(words)}"' for key, words in sample.labels.items())
        shown = f"{{{labels}}}" if labels else ""
        lines.setdefault(sample.name, head).append(f"{sample.name}{shown} {sample.value!r}")
    return "".join(f"{line}\n" for group in lines.values() for line in group)


def _escaped(words: str) -> str:
    return words.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def metrics_server(listen: str, collect: Callable[[], Iterable[Sample]]) -> WebServer:
    """Make a server that answers GET /metrics in threads of its own."""

    def answer(request: WebRequest) -> Response:
        if (request.method, request.path) != ("GET", "/metrics"):
            return text(HTTPStatus.NOT_FOUND, "The figures are at /metrics.")
        try:
            return Response(kind=CONTENT_TYPE, body=render(collect()).encode())
        except ParleyError as error:
            logger.error("no metrics: %s", " ".join(str(error).split()))
            return text(HTTPStatus.SERVICE_UNAVAILABLE, "No figures now; the log has the cause.")

    return WebServer(listen, answer, name="metrics", most_connections=_MOST_CONNECTIONS)


@contextmanager
def serving_metrics(listen: str, collect: Callable[[], Iterable[Sample]]) -> Iterator[None]:
    """Serve metrics for the length of a block; without an address there are none."""
    if not listen:
        yield
        return
    with metrics_server(listen, collect).running() as port:
        logger.info("metrics on port %s", port)
        yield
