"""The server's life: listen, serve, finish what is under way, stop.

server = CuratorServer(studies, listen="0.0.0.0:7443", files=..., revoked=..., ...)
port = server.start()
...
server.stop(grace_s=10)
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_reflection.v1alpha.reflection import SERVICE_NAME, enable_server_reflection

from common.errors import InputError
from common.wire.credentials import CredentialFiles
from common.wire.peers import Revocations
from common.wire.tls import SERVER_OPTIONS, server_credentials
from common.wire.v1.curator_pb2 import DESCRIPTOR
from common.wire.v1.curator_pb2_grpc import add_CuratorServiceServicer_to_server
from curator.server.health import health_handler
from curator.server.servicer import CuratorServicer
from curator.studies import Studies

logger = logging.getLogger(__name__)

CURATOR_SERVICE = DESCRIPTOR.services_by_name["CuratorService"].full_name
_SHORT_CALLS = 16  # threads that are never taken by parties waiting for work


class CuratorServer:
    """One port.

    Args:
        studies: what is served.
        files: the server's key and certificate; replaced files are taken into use by themselves.
        revoked: the revocation list; the same.
        listen: address and port; port 0 takes a free one.
        clock: the time.
        software: what to tell the parties we are.
        most_streams: how many parties may wait for work at a time, over all studies.
        reflection: whether to tell callers which calls there are.
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
        most_streams: int = 200,
        reflection: bool = False,
    ) -> None:
        self._studies = studies
        self._listen = listen
        self._serving = False
        self._threads = ThreadPoolExecutor(most_streams + _SHORT_CALLS, "call")
        self._server = grpc.server(self._threads, options=SERVER_OPTIONS)
        servicer = CuratorServicer(
            studies,
            revocations=Revocations(revoked),
            clock=clock,
            software=software,
            most_streams=most_streams,
        )
        self.calls = servicer.calls
        self.presence = servicer.presence
        add_CuratorServiceServicer_to_server(servicer, self._server)  # type: ignore[no-untyped-call]  # generated
        self._server.add_generic_rpc_handlers((health_handler(lambda: self._serving),))
        if reflection:
            names = (CURATOR_SERVICE, SERVICE_NAME)
            enable_server_reflection(names, self._server)
        self._credentials = server_credentials(files)

    def start(self) -> int:
        """Listen; the port.

        Raises:
            InputError: the address cannot be used.
        """
        try:
            port = self._server.add_secure_port(self._listen, self._credentials)
        except RuntimeError as error:
            raise InputError(
                f"cannot listen on {self._listen}: is it in use? Another curator may run already; "
                "`parley doctor curator` tells what it can"
            ) from error
        self._server.start()
        self._serving = True
        logger.info("listening on port %s", port)
        return port

    def stop(self, *, grace_s: float) -> None:
        """Take no more calls, let those under way finish, and stop."""
        self._serving = False
        self._studies.close()
        self._server.stop(grace_s).wait()
        self._threads.shutdown(wait=True)
        logger.info("stopped")
