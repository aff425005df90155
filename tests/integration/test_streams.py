"""Streams of gRPC: messages above the limit of a call, and calls that nobody took."""

import socket
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from common.study.signatures import approval_statement
from common.wire import codec, strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.frames import NumberedMessage
from common.wire.tls import channel_options
from common.wire.v1 import curator_pb2, curator_pb2_grpc
from tests.harness.consortium import finish
from tests.harness.rounds import say


def test_a_message_above_the_limit_of_a_call_arrives_whole(gathering):
    """In frames, and is refused for what it says when the last one is there."""
    consortium = gathering(2)
    study = consortium.study.digest
    for name, party in consortium.parties.items():
        with party.dial() as connection:
            statement = approval_statement(study=study, party=name)
            connection.approve(study, party.identity.sign(statement))
    long = say("masked input", 0, bytes(9 * strict.MIB), study=study, step=0)
    body = codec.TO_CURATOR.encode(long) + b"\0"  # which makes it no message
    message = NumberedMessage(sequence=1, body=body)
    with consortium.parties["north"].dial() as connection, pytest.raises(WireError) as refusal:
        connection.submit(study, [message])
    assert refusal.value.code is ErrorCode.MALFORMED
    finish(consortium)


def http2_frame(kind, payload=b"", *, flags=0):
    """Return an HTTP/2 frame of the whole connection."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + bytes(4) + payload


def refuse_streams(listener, refused):
    """Answer every stream of every connection as a server that stops: it was not looked at."""
    headers, settings, goaway = 1, 4, 7
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # closed: the test is over
            return
        with connection, connection.makefile("rb") as stream:
            stream.read(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
            connection.sendall(http2_frame(settings))
            while head := stream.read(9):
                stream.read(int.from_bytes(head[:3], "big"))
                if head[3] == headers:
                    refused.append(head)
                    connection.sendall(http2_frame(goaway, bytes(8)))  # last stream 0, no error
                    break


def test_a_call_that_a_stopping_server_did_not_take_fails_and_is_not_sent_again():
    """A call that gRPC sends again by itself may wait for ever; the node tries again anyway."""
    refused = []
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        threads.submit(refuse_streams, listener, refused)
        target = f"127.0.0.1:{listener.getsockname()[1]}"
        with grpc.insecure_channel(target, options=channel_options(proxy=None)) as channel:
            stub = curator_pb2_grpc.CuratorServiceStub(channel)
            work = stub.Work(curator_pb2.WorkRequest(study=bytes(32), received=0), timeout=30)
            with pytest.raises(grpc.RpcError) as refusal:
                next(work)
            assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
        listener.shutdown(socket.SHUT_RDWR)
    assert len(refused) == 1
