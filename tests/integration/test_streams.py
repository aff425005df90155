"""Large messages over real gRPC streams, in both directions, cut and resumed."""

import socket
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from common.wire import codec, strict
from common.wire.catalogue import ErrorCode, WireError, classify, received
from common.wire.frames import Assembler, NumberedMessage, split
from common.wire.tls import SERVER_OPTIONS, channel_options
from common.wire.v1 import curator_pb2, curator_pb2_grpc
from tests.harness.rounds import say

STUDY = bytes(range(32))


class Servicer(curator_pb2_grpc.CuratorServiceServicer):
    """Stores what is submitted, and sends it back as work: as little as shows the contract."""

    def __init__(self):
        self.stored = []

    def Submit(self, requests, context):
        assembler = Assembler(stored=len(self.stored))
        try:
            for request in requests:
                self._store(assembler.add(request))
            assembler.finish()
        except WireError as error:
            refusal = classify(error)
            context.set_trailing_metadata(refusal.trailer())
            context.abort(refusal.code.status, refusal.code.public)
        return curator_pb2.SubmitResponse(submitted=len(self.stored))

    def _store(self, whole):
        if whole is None:
            return
        if whole.sequence > len(self.stored):
            self.stored.append(whole)
        elif self.stored[whole.sequence - 1].body != whole.body:
            raise WireError(ErrorCode.SEQUENCE_REUSED)

    def Work(self, request, context):
        for whole in self.stored[request.received :]:
            for frame in split(whole):
                yield curator_pb2.WorkResponse(frame=frame)


@pytest.fixture
def servicer():
    return Servicer()


@pytest.fixture
def stub(servicer):
    server = grpc.server(ThreadPoolExecutor(2), options=SERVER_OPTIONS)
    curator_pb2_grpc.add_CuratorServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    options = channel_options(proxy=None)
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield curator_pb2_grpc.CuratorServiceStub(channel)
    server.stop(None).wait()


def share(size, chunk=0):
    message = say("masked input", chunk, bytes(size), study=STUDY, step=1)
    return codec.TO_CURATOR.encode(message)


def requests(data, sequence):
    for frame in split(NumberedMessage(sequence=sequence, body=data)):
        yield curator_pb2.SubmitRequest(study=STUDY, frame=frame)


def refusal_of(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return received(caught.value.code(), caught.value.trailing_metadata()).code


def test_a_message_above_the_limit_of_a_call_goes_there_and_back(stub, servicer):
    data = share(9 * strict.MIB)
    assert stub.Submit(requests(data, 1), timeout=60).submitted == 1
    assembler = Assembler(stored=0)
    work = stub.Work(curator_pb2.WorkRequest(study=STUDY, received=0), timeout=60)
    arrived = [assembler.add(response) for response in work]
    assert len(arrived) == 10
    assert codec.TO_CURATOR.decode(arrived[-1].body) == codec.TO_CURATOR.decode(data)


def test_a_submission_that_breaks_off_is_sent_again_and_stored_once(stub, servicer):
    data = share(3 * strict.MIB)
    half = list(requests(data, 1))[:2]
    assert refusal_of(lambda: stub.Submit(iter(half), timeout=60)) is ErrorCode.OUT_OF_ORDER
    assert servicer.stored == []
    for _ in range(2):
        assert stub.Submit(requests(data, 1), timeout=60).submitted == 1


def test_another_answer_under_the_same_number_is_refused(stub, servicer):
    assert stub.Submit(requests(share(10), 1), timeout=60).submitted == 1
    other = requests(share(10, chunk=1), 1)
    assert refusal_of(lambda: stub.Submit(other, timeout=60)) is ErrorCode.SEQUENCE_REUSED
    assert codec.TO_CURATOR.decode(servicer.stored[0].body).payload[0] == 0


def test_a_gap_is_refused_and_work_goes_on_after_what_was_received(stub, servicer):
    assert refusal_of(lambda: stub.Submit(requests(share(1), 2))) is ErrorCode.OUT_OF_ORDER
    for number in (1, 2, 3):
        stub.Submit(requests(share(number), number), timeout=60)
    work = stub.Work(curator_pb2.WorkRequest(study=STUDY, received=2), timeout=60)
    assert [response.frame.sequence for response in work] == [3]


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
            work = stub.Work(curator_pb2.WorkRequest(study=STUDY, received=0), timeout=30)
            assert refusal_of(lambda: next(work)) is ErrorCode.UNAVAILABLE
        listener.shutdown(socket.SHUT_RDWR)
    assert len(refused) == 1
