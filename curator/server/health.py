"""The standard health service, grpc.health.v1: `Check` and nothing else.

Its two messages are a text and a number in field 1, which is what protobuf's own StringValue and
Int32Value are on the wire; so no further package and no generated code is needed. `Watch` is left
out: clients that find it missing fall back to `Check`, by the service's own rules.
"""

from __future__ import annotations

from collections.abc import Callable

import grpc
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from common.wire import strict
from curator.server.admission import AdmittedCall, Kind
from curator.server.front import Front, one

_SERVING, _NOT_SERVING = 1, 2
SERVICES = ("", "parley.v1.CuratorService")


def health_handler(front: Front, serving: Callable[[], bool]) -> grpc.GenericRpcHandler:
    """Answers whether this server takes calls."""

    def check(request: StringValue, call: AdmittedCall) -> Int32Value:
        if request.value not in SERVICES:
            call.context.set_code(grpc.StatusCode.NOT_FOUND)
            call.context.set_details("there is no such service here")
        return Int32Value(value=_SERVING if serving() else _NOT_SERVING)

    read = one(lambda data: strict.decode(StringValue, data))
    method = front.answering("Check", read, check, Kind.SHORT)
    return grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": method})
