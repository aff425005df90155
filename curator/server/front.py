"""The front of every call: it identifies, admits and decodes, then answers or refuses.

gRPC is given handlers that take streams of bytes, whatever the contract says of a method. By itself
gRPC waits, in a thread that is counted nowhere, for the one message of a call; and a message that
it cannot decode keeps its call, and its memory, for ever. On the wire there is no difference.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.message import Message

from common.service.process import RateLimit
from common.wire.catalogue import ErrorCode, WireError, classify
from common.wire.pki.peers import Peer
from curator.metrics import CallCounter
from curator.server.admission import Admission, AdmittedCall, CallKind
from curator.server.connections import Connections

logger = logging.getLogger(__name__)
logger.addFilter(RateLimit())

_BROKEN_OFF = "the party broke the call off"
_Request = TypeVar("_Request")
Reader = Callable[[Iterator[bytes], AdmittedCall], Any]
"""Makes of a call's bytes what its method takes: one request, or an iterator of them."""


def each(parse: Callable[[bytes], _Request]) -> Callable[..., Iterator[_Request]]:
    """Make a reader of all the messages of a call; the peer must send each in time."""

    def read(frames: Iterator[bytes], call: AdmittedCall) -> Iterator[_Request]:
        while True:
            with call.in_time():
                data = next(frames, None)
            if data is None:
                return
            yield parse(data)

    return read


def one(parse: Callable[[bytes], _Request]) -> Callable[..., _Request]:
    """Make a reader of the one message of a call."""

    def read(frames: Iterator[bytes], call: AdmittedCall) -> _Request:
        for request in each(parse)(frames, call):
            return request
        raise WireError(ErrorCode.FIELD_MISSING, "a call without a message")

    return read


class Front:
    """Makes gRPC handlers of methods; `identify` returns who calls, or raises a WireError."""

    def __init__(
        self,
        admission: Admission,
        identify: Callable[[grpc.ServicerContext], Peer],
        calls: CallCounter,
        connections: Connections,
    ) -> None:
        self._admission, self._identify, self._calls = admission, identify, calls
        self._connections = connections

    def handler(
        self,
        name: str,
        read: Reader,
        method: Callable[[Any, AdmittedCall], Any],
        *,
        streams: bool,
        kind: CallKind = CallKind.SHORT,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """Make a handler of a method that answers with one message, or streams its answer."""

        def answer(frames: Iterator[bytes], context: grpc.ServicerContext) -> Message:
            with self._under_way(name, context, kind) as call:
                answered: Message = method(read(frames, call), call)
            return answered

        def stream(frames: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Message]:
            with self._under_way(name, context, kind) as call:
                yield from method(read(frames, call), call)

        if streams:
            return grpc.stream_stream_rpc_method_handler(stream, None, _serialize)
        return grpc.stream_unary_rpc_method_handler(answer, None, _serialize)

    @contextlib.contextmanager
    def _under_way(
        self, name: str, context: grpc.ServicerContext, kind: CallKind
    ) -> Iterator[AdmittedCall]:
        """Surround a call: an error in it is logged, and refused by its code."""
        party = ""
        try:
            peer = self._peer(context)
            party = peer.name
            with self._admission.admitted(kind, peer, context) as call:
                try:
                    yield call
                except grpc.RpcError:
                    raise call.ended or WireError(ErrorCode.UNAVAILABLE, _BROKEN_OFF) from None
        except Exception as error:  # noqa: BLE001  # logged, and the call is aborted
            self._refuse(name, party, error, context)
        self._calls.add(name, outcome="OK")

    def _peer(self, context: grpc.ServicerContext) -> Peer:
        """Return the party that makes a call, and note whose the connection is."""
        try:
            peer = self._identify(context)
        except WireError as error:
            if error.code is ErrorCode.CERTIFICATE_REVOKED:
                self._connections.refused(context.peer())
            raise
        self._connections.called(peer, context.peer())
        return peer

    def _refuse(
        self, name: str, party: str, error: Exception, context: grpc.ServicerContext
    ) -> NoReturn:
        """Log an error, and end the call with its code and nothing else."""
        refusal = classify(error)
        defect = refusal.code is ErrorCode.INTERNAL
        level = logging.INFO if refusal.detail == _BROKEN_OFF else logging.WARNING
        logger.log(
            logging.ERROR if defect else level,
            "%s of %s refused: %s (%s)", name, party or "a stranger", refusal.code.name,
            refusal.detail, exc_info=error if defect else None,
            extra={"kind": (name, party, refusal.code)},
        )  # fmt: skip
        self._calls.add(name, outcome=refusal.code.name)
        context.set_trailing_metadata(refusal.trailer())
        context.abort(refusal.code.status, refusal.code.public)


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
