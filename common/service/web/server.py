"""HTTP for a handful of people: Python's own server, with limits on everything.

It is Python's `http.server` and not a framework: a few pages for one operator need no event loop
and no further dependency beside the data, and it hands out the verified client certificate, which
ASGI servers do not. Its documentation warns that it only does basic checks, so what it leaves open
is closed here:

- the number of connections, each a thread of its own; slow ones make room (`Places`);
- how long a request may take to arrive, TLS handshake included, and how many bytes it may have;
- one request per connection, with one statement of its length: nothing to smuggle;
- every response, errors too, has the security headers.

The threads are this server's own, so that a slow or hostile browser takes nothing from the service
beside it.
"""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from common.errors import InputError
from common.service.process import RateLimit
from common.service.web.exchange import SECURITY_HEADERS, Response, WebRequest, text

logger = logging.getLogger(__name__)
logger.addFilter(RateLimit(per_second=1))  # callers can provoke every line of this module

MOST_CONNECTIONS = 48
MOST_REQUEST_BYTES = 32 << 10
MOST_BODY_BYTES = 8 << 10
MOST_PATH = 500
MOST_ADDRESS = 8 << 10  # with the query, which has an issuer's code
ARRIVE_WITHIN_S = 15.0
WRITE_WITHIN_S = 30.0
_ONCE = ("host", "content-length", "origin", "cookie", "content-type")

Application = Callable[[WebRequest], Response]


class WebServer:
    """Serves one application in threads of its own.

    Port 0 takes a free one. The application is called in any thread, `tls` at every handshake.

    Raises:
        InputError: the address cannot be used.
    """

    def __init__(
        self,
        listen: str,
        application: Application,
        *,
        name: str,
        tls: Callable[[], ssl.SSLContext] | None = None,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        host, _, port = listen.rpartition(":")
        try:
            address = (host.strip("[]"), int(port))
            self._server = _Server(address, application, tls, most_connections)
        except (OSError, ValueError, OverflowError) as error:
            raise InputError(f"{name}: cannot listen on {listen!r}: {error}") from error
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name=name
        )

    @contextmanager
    def running(self) -> Iterator[int]:
        """Listen for the length of a block, and finish the responses then; yield the port."""
        self._thread.start()
        try:
            yield self.port
        finally:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


class Places:
    """The places for connections of one server. Threads may share it.

    A connection whose request has arrived keeps its place until it is answered. A connection that
    is still sending keeps its place while there is room; when there is none, a new connection takes
    the place of the oldest connection of the address that has the most. So a request that arrives
    promptly is served, however many slow connections are held open, and an address that holds many
    loses its own first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._arriving: dict[socket.socket, str] = {}  # with their addresses, oldest first
        self._answered: set[socket.socket] = set()

    def enter(self, connection: socket.socket, address: str) -> bool:
        """Give a new connection a place; return False if requests in progress have all places."""
        with self._lock:
            if len(self._arriving) + len(self._answered) >= self._most:
                if not self._arriving:
                    return False
                self._take_away(self._slowest())
            self._arriving[connection] = address
            return True

    def arrived(self, connection: socket.socket) -> bool:
        """Keep a place until `leave`; return False if it was taken away before."""
        with self._lock:
            if self._arriving.pop(connection, None) is None:
                return False
            self._answered.add(connection)
            return True

    def leave(self, connection: socket.socket) -> None:
        """Give a place back; to repeat this is harmless."""
        with self._lock:
            self._arriving.pop(connection, None)
            self._answered.discard(connection)

    def _slowest(self) -> socket.socket:
        numbers = Counter(self._arriving.values())
        # The first of equals.
        return max(self._arriving, key=lambda connection: numbers[self._arriving[connection]])

    def _take_away(self, connection: socket.socket) -> None:
        address = self._arriving.pop(connection)
        logger.warning("a slow connection of %s was closed: every place was taken", address)
        with contextlib.suppress(OSError):  # it ended
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # without a word of TLS


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 16

    def __init__(
        self,
        address: tuple[str, int],
        application: Application,
        tls: Callable[[], ssl.SSLContext] | None,
        most_connections: int,
    ) -> None:
        self.application, self._tls = application, tls
        self._places = Places(most_connections)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        if self._tls is not None:
            connection = self._tls().wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # inherited
        if not self._places.enter(request, client_address[0]):
            logger.warning("a connection was closed: too many requests are being answered")
            self.shutdown_request(request)
            return
        try:
            threading.Thread(
                target=self._serve, args=(request, client_address), daemon=True
            ).start()
        except RuntimeError:  # no more threads; `handle_error` says it
            self._places.leave(request)
            raise

    def _serve(self, connection: socket.socket, client_address: Any) -> None:  # noqa: ANN401  # inherited
        """Shake hands, answer one request and close; in a thread, because it may be slow."""
        try:
            connection.settimeout(ARRIVE_WITHIN_S)
            if isinstance(connection, ssl.SSLSocket):
                connection.do_handshake()
            _Handler(connection, client_address, self, lambda: self._places.arrived(connection))
        except OSError as error:  # TLS that failed, a browser that left or said nothing
            logger.debug("a connection ended: %s", type(error).__name__)
        except Exception:
            logger.exception("a request failed")
        finally:
            self._places.leave(connection)
            self.shutdown_request(connection)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what kept a connection from getting a thread."""
        logger.exception("a connection could not be served")


class _Bounded(io.RawIOBase):
    """Reads a connection, up to a number of bytes and a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + ARRIVE_WITHIN_S
        self._left = MOST_REQUEST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # as inherited
        remaining_s = self._deadline - time.monotonic()
        if remaining_s <= 0 or self._left <= 0:
            raise TimeoutError("the request takes too long, or is too long")
        self._connection.settimeout(remaining_s)
        got = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= got
        return got


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def __init__(
        self,
        connection: socket.socket,
        client_address: tuple[str, int],
        server: _Server,
        arrived: Callable[[], bool] = lambda: True,
    ) -> None:
        self._arrived = arrived
        super().__init__(connection, client_address, server)

    def version_string(self) -> str:
        return "parley"

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Bounded(self.connection))

    def do_GET(self) -> None:
        refusal = _refusal(self.headers, self.path)
        if refusal is not None:
            self._send(refusal)
            return
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if len(body) != length or not self._arrived():
            return
        request = WebRequest(
            method=self.command,
            path=self.path.partition("?")[0],
            query=self.path.partition("?")[2],
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            certificate=self._certificate(),
            address=self.client_address[0],
        )
        try:
            response = self.server.application(request)
        except Exception:  # the boundary: a defect is logged, and told as one
            logger.exception("%s %.80r failed", self.command, request.path)
            words = "A failure of our own; the log has the cause."
            response = text(HTTPStatus.INTERNAL_SERVER_ERROR, words)
        self._send(response)

    do_POST = do_GET

    def _certificate(self) -> bytes | None:
        if isinstance(self.connection, ssl.SSLSocket):
            return self.connection.getpeercert(binary_form=True)
        return None

    def _send(self, response: Response) -> None:
        self.close_connection = True
        # A request that is none gets a status line, too.
        self.request_version = self.protocol_version
        self.connection.settimeout(WRITE_WITHIN_S)
        self.send_response(response.status)
        for name, value in (*SECURITY_HEADERS, *response.headers):
            self.send_header(name, value)
        self.send_header("Content-Type", response.kind)
        self.send_header("Connection", "close")
        if isinstance(response.body, bytes):
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)
            return
        self.end_headers()
        for piece in response.body:
            self.wfile.write(piece)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send an error that the inherited parser finds like any other, without a quotation."""
        status = HTTPStatus(code)
        self._send(text(status, status.phrase))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as inherited
        """Log nothing; the site logs what it refuses."""


def _refusal(headers: Message, path: str) -> Response | None:
    """Refuse a request for its headers or its path."""
    for name in _ONCE:
        if len(cast(list[str], headers.get_all(name, []))) > 1:
            return text(HTTPStatus.BAD_REQUEST, f"{name} is there more than once.")
    if "Transfer-Encoding" in headers:
        return text(HTTPStatus.LENGTH_REQUIRED, "A body needs its length.")
    length = headers.get("Content-Length", "0")
    if not (length.isascii() and length.isdecimal()):
        return text(HTTPStatus.BAD_REQUEST, "The length is not a number.")
    if len(length) > 9 or int(length) > MOST_BODY_BYTES:
        return text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large.")
    if len(path.partition("?")[0]) > MOST_PATH or len(path) > MOST_ADDRESS:
        return text(HTTPStatus.REQUEST_URI_TOO_LONG, "The address is too long.")
    if not path.startswith("/") or not path.isascii() or not path.isprintable():
        return text(HTTPStatus.BAD_REQUEST, "The address cannot be read.")
    return None
