"""The server's life: listen, serve, finish what is under way, stop."""

from __future__ import annotations

import datetime as dt
import functools
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from common.crypto.identities.identity import Identity
from common.errors import InputError, naming_extras
from common.service.process import raise_open_files
from common.wire import strict
from common.wire.pki.credentials import CredentialFiles
from common.wire.pki.peers import Revocations
from common.wire.tls import most_connections, server_credentials, server_options
from common.wire.v1.curator_pb2 import DESCRIPTOR
from curator.metrics import CallCounter
from curator.server.admission import Admission, AdmittedCall, CallKind, limits
from curator.server.connections import Connections, Room
from curator.server.front import Front, each, one
from curator.server.servicer import CuratorServicer
from curator.studies import Studies

logger = logging.getLogger(__name__)

_SERVICE = DESCRIPTOR.services_by_name["CuratorService"]
_SPARE_THREADS = 16  # for refusing what is not admitted
_LOOK_EVERY_S = 1.0
_SERVING, _NOT_SERVING = 1, 2  # of grpc.health.v1
_KINDS = {"Work": CallKind.WORK, "FetchRelease": CallKind.RELEASE}


class CuratorServer:
    """One port.

    Replaced key files and a changed revocation list are taken into use by themselves.
    """

    def __init__(
        self,
        studies: Studies,
        *,
        files: CredentialFiles,
        revoked: Path,
        listen: str,
        clock: Callable[[], dt.datetime],
        software: str,
        identity: Identity | None = None,
        most_streams: int = 200,
        frame_timeout_s: float = 60.0,
        reflection: bool = False,
    ) -> None:
        self._studies = studies
        self._listen = listen
        self._serving = False
        self._stopped = threading.Event()
        most = limits(most_streams)
        threads = sum(limit.total for limit in most.values()) + _SPARE_THREADS
        self._threads = ThreadPoolExecutor(threads, "call")  # made when they are needed
        files_allowed = raise_open_files()
        room = Room(connections=most_connections(open_files=files_allowed), files=files_allowed)
        options = server_options(connections=room.connections)
        self._server = grpc.server(self._threads, options=options)
        revocations = Revocations(revoked)
        self.connections = Connections(room, revocations)
        self._admission = Admission(most, revocations, timeout_s=frame_timeout_s)
        servicer = CuratorServicer(
            studies,
            revocations=revocations,
            clock=clock,
            software=software,
            admission=self._admission,
            identity=identity,
        )
        self.calls = CallCounter()
        front = Front(self._admission, servicer.identify, self.calls, self.connections)
        handlers = [
            _curator_handler(front, servicer),
            _health_handler(front, lambda: self._serving),
        ]
        if reflection:
            handlers.append(_reflection_handler(front))
        self._server.add_generic_rpc_handlers(handlers)
        self._credentials = server_credentials(files)

    def start(self) -> int:
        """Listen, and return the port; InputError if the address cannot be used."""
        try:
            port = self._server.add_secure_port(self._listen, self._credentials)
        except RuntimeError as error:
            raise InputError(
                f"cannot listen on {self._listen}: is it in use? Another curator may run already. "
                "Ask `parley doctor curator`"
            ) from error
        self.connections.port = port
        self._server.start()
        self._serving = True
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        logger.info("listening on port %s", port)
        return port

    def stop(self, *, grace_s: float) -> None:
        """Take no more calls, let those under way finish, and stop."""
        self._serving = False
        self._studies.close()
        self._server.stop(grace_s).wait()
        self._stopped.set()
        self._threads.shutdown(wait=True)
        logger.info("stopped")

    def _watch(self) -> None:
        while not self._stopped.wait(_LOOK_EVERY_S):
            try:
                self._admission.look()
                self.connections.look()
            except Exception:  # the boundary of a thread that must not end
                logger.exception("looking at calls and connections failed")


def _curator_handler(front: Front, servicer: CuratorServicer) -> grpc.GenericRpcHandler:
    handlers = {}
    for method in _SERVICE.methods:
        parse = functools.partial(strict.parse, GetMessageClass(method.input_type))
        read = each(parse) if method.client_streaming else one(parse)
        handlers[method.name] = front.handler(
            method.name,
            read,
            getattr(servicer, method.name),
            streams=method.server_streaming,
            kind=_KINDS.get(method.name, CallKind.SHORT),
        )
    return grpc.method_handlers_generic_handler(_SERVICE.full_name, handlers)


def _reflection_handler(front: Front) -> grpc.GenericRpcHandler:
    with naming_extras("reflection = true"):
        from grpc_reflection.v1alpha.reflection import SERVICE_NAME, ReflectionServicer
        from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

    reflection = ReflectionServicer((_SERVICE.full_name, SERVICE_NAME))
    name = "ServerReflectionInfo"
    read = each(functools.partial(strict.decode, ServerReflectionRequest))
    handler = front.handler(name, read, reflection.ServerReflectionInfo, streams=True)
    return grpc.method_handlers_generic_handler(SERVICE_NAME, {name: handler})


def _health_handler(front: Front, serving: Callable[[], bool]) -> grpc.GenericRpcHandler:
    """Serve the standard health service, grpc.health.v1: `Check` and nothing else.

    Its two messages are a text and a number in field 1, which is what protobuf's own StringValue
    and Int32Value are on the wire; so no further package and no generated code is needed. `Watch`
    is left out: clients that find it missing fall back to `Check`, by the service's own rules.
    """

    def check(request: StringValue, call: AdmittedCall) -> Int32Value:
        if request.value not in ("", _SERVICE.full_name):
            call.context.set_code(grpc.StatusCode.NOT_FOUND)
            call.context.set_details("there is no such service here")
        return Int32Value(value=_SERVING if serving() else _NOT_SERVING)

    read = one(lambda data: strict.decode(StringValue, data))
    method = front.handler("Check", read, check, streams=False)
    return grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": method})
