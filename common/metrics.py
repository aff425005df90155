"""Metrics in Prometheus's text format over HTTP: figures about the service, never about rows.

    with serving_metrics("127.0.0.1:9100", lambda: [Sample(...), ...]):
        ...

Samples are collected when they are asked for. The endpoint has no access control, so it is
off unless it is given an address; give it one that only the monitoring can reach.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

from common.errors import InputError, ParleyError

logger = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One figure.

    Attributes:
        name: as Prometheus has them: words joined by `_`, the unit last, `_total` for counters.
        help: one line for people.
        kind: counters only grow, and begin at 0 when the process does.
        value: the figure.
        labels: what tells samples of one name apart.
    """

    name: str
    help: str
    kind: Literal["counter", "gauge"]
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def render(samples: Iterable[Sample]) -> str:
    """The text: samples of one name together, under its help and kind."""
    lines: dict[str, list[str]] = {}
    for sample in samples:
        head = [f"# HELP {sample.name} {sample.help}", f"# TYPE {sample.name} {sample.kind}"]
        labels = ",".join(f'{key}="{_escaped(text)}"' for key, text in sample.labels.items())
        shown = f"{{{labels}}}" if labels else ""
        lines.setdefault(sample.name, head).append(f"{sample.name}{shown} {sample.value!r}")
    return "".join(f"{line}\n" for group in lines.values() for line in group)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


class MetricsServer:
    """Answers GET /metrics in threads of its own.

    Args:
        listen: address and port; port 0 takes a free one.
        collect: the samples of this moment; called in any thread.

    Raises:
        InputError: the address cannot be used.
    """

    def __init__(self, listen: str, collect: Callable[[], Iterable[Sample]]) -> None:
        host, _, port = listen.rpartition(":")
        try:
            self._server = _Server((host, int(port)), _handler(collect))
        except (OSError, ValueError, OverflowError) as error:
            raise InputError(f"metrics: cannot listen on {listen!r}: {error}") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="metrics"
        )

    def start(self) -> int:
        """Listen; the port."""
        self._thread.start()
        return int(self._server.server_address[1])

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def serving_metrics(listen: str, collect: Callable[[], Iterable[Sample]]) -> Iterator[None]:
    """Serve metrics for the length of a block; without an address there are none."""
    if not listen:
        yield
        return
    server = MetricsServer(listen, collect)
    logger.info("metrics on port %s", server.start())
    try:
        yield
    finally:
        server.stop()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A line in the log, as everything else that goes wrong."""
        logger.warning("a call for metrics failed", exc_info=True)


def _handler(collect: Callable[[], Iterable[Sample]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # seconds; a client that says nothing is not waited for

        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            try:
                body = render(collect()).encode()
            except ParleyError as error:
                logger.error("no metrics: %s", " ".join(str(error).split()))
                self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as inherited
            """A scrape every few seconds is not worth a line."""

    return Handler
