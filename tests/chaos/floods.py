"""Floods of the curator, bounded in rate and time: by a holder of a certificate, by strangers."""

import contextlib
import socket
import threading
import time

import grpc

from common.crypto.key_files import load_identity
from common.wire.v1 import curator_pb2 as pb
from tests.chaos.world import STRANGER

_SERVICE = "/parley.v1.CuratorService"
_A_SECOND = 20  # calls
_CONNECTIONS = 100
_SILENT_CALLS = 20
_UNDECODABLE = b"\xff" * 40


def undecodable_messages(world, seconds):
    """Bytes that are no message, to a call that takes one."""
    with _channel(world) as channel:
        _call(channel, "FetchStudy", _UNDECODABLE, seconds)


def polls(world, seconds):
    """The call with which a node looks for studies, far more often than a node makes it."""
    identity = load_identity(world.stranger.identity).public.encoded
    request = pb.EnrolRequest(
        protocol=1, software="chaos", party=STRANGER, identity=identity, with_ended=False
    )
    with _channel(world) as channel:
        _call(channel, "Enrol", request.SerializeToString(), seconds)


def silent_calls(world, seconds):
    """Calls that hand in answers and never send any."""
    over = threading.Event()

    def nothing():
        over.wait()
        yield from ()

    with _channel(world) as channel:
        submit = channel.stream_unary(
            f"{_SERVICE}/Submit", request_serializer=bytes, response_deserializer=bytes
        )
        calls = [submit.future(nothing(), timeout=seconds + 5) for _ in range(_SILENT_CALLS)]
        over.wait(seconds)
        over.set()
        for call in calls:
            call.cancel()


def silent_connections(world, seconds):
    """Connections that say nothing, not even TLS."""
    with contextlib.ExitStack() as opened:
        for _ in range(_CONNECTIONS):
            with contextlib.suppress(OSError):  # the curator may be down
                made = socket.create_connection(("127.0.0.1", world.port), timeout=1)
                opened.enter_context(made)
        time.sleep(seconds)


def _channel(world):
    files = world.stranger.files
    return grpc.secure_channel(
        f"127.0.0.1:{world.port}",
        grpc.ssl_channel_credentials(
            files.authority.read_bytes(), files.key.read_bytes(), files.certificate.read_bytes()
        ),
    )


def _call(channel, method, request, seconds):
    call = channel.unary_unary(
        f"{_SERVICE}/{method}", request_serializer=bytes, response_deserializer=bytes
    )
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(grpc.RpcError):
            call(request, timeout=2)
        time.sleep(1 / _A_SECOND)
