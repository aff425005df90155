"""Callers that mean harm or are broken, over real gRPC and mutual TLS: others do not feel them."""

import contextlib
import select
import socket
import threading
import time
from pathlib import Path

import grpc
import pytest

from common.service.process import system_clock
from common.study.signatures import approval_statement
from common.wire import strict, tls
from common.wire.catalogue import ErrorCode, received
from common.wire.frames import NumberedMessage, split
from common.wire.pki import certificates
from common.wire.pki.certificates import Role
from common.wire.pki.credentials import CredentialFiles
from common.wire.v1 import curator_pb2 as pb
from curator.server import admission
from curator.server.admission import CallKind
from curator.server.service import CuratorServer
from curator.store.records import StudyState
from party.client.dialer import Address, Dialer
from tests.harness.process_consortium import ProcessConsortium

SERVICE = "/parley.v1.CuratorService/"
CALLS = [
    *(SERVICE + method.name for method in pb.DESCRIPTOR.services_by_name["CuratorService"].methods),
    "/grpc.health.v1.Health/Check",
]
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
SILENT_CALLS = 300  # more than there were threads
UNDECODABLE = b"\xff" * 7


def dial(party, port=None):
    credentials = tls.channel_credentials(party.ring.files.load())
    options = (*tls.channel_options(proxy=None), ("grpc.use_local_subchannel_pool", 1))
    return grpc.secure_channel(f"127.0.0.1:{port or party.curator.port}", credentials, options)


def is_answered(consortium, name="east"):
    """Make a call of another party, which must be answered."""
    party = consortium.parties[name]
    with party.dial() as connection:
        (summary,) = connection.enrol(name, party.identity.public.encoded)
    return (summary.study, summary.state) == (consortium.study.digest, "waiting for parties")


def code_of(error):
    return received(error.code(), error.trailing_metadata()).code


def refusal_of(channel, call, *messages):
    """Return the code that a call with these bytes is refused with."""
    with pytest.raises(grpc.RpcError) as caught:
        list(channel.stream_stream(call)(iter(messages), timeout=20))
    return code_of(caught.value)


class Silent:
    """Calls that send these bytes and then nothing, until the end of a block."""

    def __init__(self):
        self._ended = threading.Event()
        self.calls = []

    def open(self, channel, call, *messages):
        def sent():
            yield from messages
            self._ended.wait()

        self.calls.append(channel.stream_unary(call).future(sent()))
        return self.calls[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for call in self.calls:
            call.cancel()
        self._ended.set()


@pytest.fixture
def silent():
    with Silent() as made:
        yield made


def begin(consortium):
    """Approve for every party, so that the study runs."""
    digest = consortium.study.digest
    for name, party in consortium.parties.items():
        with party.dial() as connection:
            statement = approval_statement(study=digest, party=name)
            connection.approve(digest, party.identity.sign(statement))
    assert consortium.session.record.state is StudyState.RUNNING


def frames(study, mebibytes=4):
    """Return the calls that bring a message of that size."""
    message = NumberedMessage(sequence=1, body=bytes(mebibytes * strict.MIB))
    return [
        pb.SubmitRequest(study=study.digest, frame=frame).SerializeToString()
        for frame in split(message)
    ]


def test_bytes_that_are_no_message_are_refused_by_name_and_hold_nothing(consortium, caplog):
    times = dict(tls.SERVER_OPTIONS)["grpc.max_concurrent_streams"] // len(CALLS) + 2
    with dial(consortium.parties["north"]) as channel:
        for _ in range(times):
            for call in CALLS:
                assert refusal_of(channel, call, UNDECODABLE) is ErrorCode.MALFORMED
        asked = pb.FetchStudyRequest(study=consortium.study.digest).SerializeToString()
        assert channel.unary_unary(SERVICE + "FetchStudy")(asked, timeout=20)
    counted = dict(consortium.curator.server.calls.counted())
    assert {counted[call.rpartition("/")[2], "MALFORMED"] for call in CALLS} == {times}
    told = [record for record in caplog.records if "MALFORMED" in record.getMessage()]
    assert 0 < len(told) < times * len(CALLS), "the log is not flooded"


def test_refused_calls_that_their_caller_leaves_open_hold_nothing(consortium, silent):
    with dial(consortium.parties["north"]) as channel:
        for _ in range(dict(tls.SERVER_OPTIONS)["grpc.max_concurrent_streams"] + 10):
            call = silent.open(channel, SERVICE + "Submit", UNDECODABLE)
            assert code_of(call.exception(timeout=20)) is ErrorCode.MALFORMED
        assert refusal_of(channel, SERVICE + "FetchStudy", UNDECODABLE) is ErrorCode.MALFORMED


def test_the_list_of_calls_refuses_bytes_that_are_no_message(consortium):
    curator = consortium.curator
    server = CuratorServer(
        curator.studies, files=curator.ring.files, revoked=curator.ring.revoked,
        listen="127.0.0.1:0", clock=system_clock, software="test", reflection=True,
    )  # fmt: skip
    port = server.start()
    try:
        with dial(consortium.parties["north"], port) as channel:
            for _ in range(110):
                assert refusal_of(channel, REFLECTION, UNDECODABLE) is ErrorCode.MALFORMED
    finally:
        server.stop(grace_s=0)


@pytest.mark.slow
def test_thousands_of_bytes_that_are_no_message_fill_no_memory(consortium):
    def resident_kb():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    def flood(calls):
        for _ in range(calls // 50):
            with dial(consortium.parties["north"]) as channel:
                for _ in range(50):
                    refusal_of(channel, SERVICE + "FetchStudy", UNDECODABLE)

    flood(500)
    before = resident_kb()
    flood(4000)
    assert resident_kb() - before < 20_000, "it was 19 kB for each of them"


def test_silent_calls_of_a_party_keep_no_other_party_out(gathering, silent):
    consortium = gathering(3)
    party = consortium.parties["south"]
    with contextlib.ExitStack() as stack:
        for _ in range(SILENT_CALLS // 60):
            channel = stack.enter_context(dial(party))
            for call in ("Submit", "FetchStudy", "Work"):
                for _ in range(20):
                    silent.open(channel, SERVICE + call)
        assert is_answered(consortium)
        limits = admission.limits(200)
        kept = limits[CallKind.SHORT].of_a_party + limits[CallKind.WORK].of_a_party
        refused = in_order_of_their_end(silent.calls, SILENT_CALLS - kept)[: SILENT_CALLS - kept]
        assert {code_of(call.exception()) for call in refused} == {ErrorCode.TOO_MANY_CALLS}
        assert sum(not call.done() for call in silent.calls) == kept


def test_a_call_that_stays_silent_is_ended(gathering, silent):
    consortium = gathering(2)
    consortium.curator.frame_timeout_s = 0.2
    consortium.curator.restart()
    with dial(consortium.parties["north"]) as channel:
        calls = [silent.open(channel, SERVICE + "Submit") for _ in range(3)]
        calls.append(silent.open(channel, SERVICE + "FetchStudy"))
        assert {code_of(c.exception(timeout=20)) for c in calls} == {ErrorCode.UNAVAILABLE}


def test_revoking_a_certificate_ends_the_calls_made_with_it(consortium, silent):
    north = consortium.parties["north"]
    with dial(north) as channel:
        call = silent.open(channel, SERVICE + "Submit")
        waiting = pb.WorkRequest(study=consortium.study.digest, received=0).SerializeToString()
        work = channel.unary_stream(SERVICE + "Work")(waiting)
        assert is_answered(consortium, "north")
        fingerprint = certificates.fingerprint(north.ring.files.load().certificate)
        consortium.curator.ring.revoke(fingerprint, reason="stolen")
        assert code_of(call.exception(timeout=20)) is ErrorCode.UNAVAILABLE
        assert code_of(work.exception(timeout=20)) is ErrorCode.UNAVAILABLE
    assert is_answered(consortium)


def test_a_message_to_a_study_that_does_not_run_is_refused_at_its_first_frame(consortium, silent):
    first, *_ = frames(consortium.study)
    with dial(consortium.parties["north"]) as channel:
        call = silent.open(channel, SERVICE + "Submit", first)
        assert code_of(call.exception(timeout=20)) is ErrorCode.OUT_OF_TURN
        consortium.session.abort("enough")
        call = silent.open(channel, SERVICE + "Submit", first)
        assert code_of(call.exception(timeout=20)) is ErrorCode.STUDY_CLOSED


def in_order_of_their_end(calls, ended=1):
    """Calls, those first that have ended when so many have."""
    deadline = time.monotonic() + 20
    while sum(call.done() for call in calls) < ended:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return sorted(calls, key=lambda call: not call.done())


def test_a_party_has_one_unfinished_message_in_a_study(consortium, silent):
    begin(consortium)
    first, second, *_ = frames(consortium.study)
    with dial(consortium.parties["north"]) as channel:
        calls = [silent.open(channel, SERVICE + "Submit", first, second) for _ in range(2)]
        older, newer = in_order_of_their_end(calls)
        assert code_of(older.exception()) is ErrorCode.UNAVAILABLE
        assert not newer.done()


def test_unfinished_messages_of_all_parties_fill_bounded_memory(consortium, silent, monkeypatch):
    monkeypatch.setattr(admission, "MOST_UNFINISHED_BYTES", 5 * strict.MIB)
    begin(consortium)
    *most, last = frames(consortium.study)
    with contextlib.ExitStack() as stack:
        channels = {n: stack.enter_context(dial(p)) for n, p in consortium.parties.items()}
        calls = [silent.open(channel, SERVICE + "Submit", *most) for channel in channels.values()]
        refused, kept = in_order_of_their_end(calls)
        assert code_of(refused.exception()) is ErrorCode.TOO_MANY_CALLS
        kept.cancel()
        for channel in channels.values():
            refused = refusal_of(channel, SERVICE + "Submit", *most, last)
            assert refused is ErrorCode.MALFORMED, "all of it arrived, and it is only zeros"


def test_connections_that_say_nothing_are_closed(consortium, monkeypatch):
    assert dict(tls.SERVER_OPTIONS)["grpc.server_handshake_timeout_ms"] <= 10_000
    sooner = dict(tls.SERVER_OPTIONS) | {"grpc.server_handshake_timeout_ms": 300}
    monkeypatch.setattr(tls, "SERVER_OPTIONS", tuple(sooner.items()))
    consortium.curator.restart()
    with contextlib.ExitStack() as stack:
        strangers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", consortium.curator.port)))
            for _ in range(20)
        ]
        assert all(select.select([each], [], [], 20)[0] for each in strangers)
        assert is_answered(consortium)


class Limited:
    """Runs the services with so many descriptors."""

    def __init__(self, descriptors):
        self.descriptors = descriptors

    def curator_address(self, _):
        return "127.0.0.1"

    def within(self, _):
        return ["sh", "-c", f'ulimit -n {self.descriptors} && exec "$@"', "sh"]


@pytest.mark.slow
def test_strangers_who_take_every_connection_leave_the_curator_its_files(tmp_path):
    consortium = ProcessConsortium(tmp_path, country=Limited(400))
    consortium.propose()
    try:
        consortium.start("curator")
        address = Address(
            target=f"127.0.0.1:{consortium.port}", proxy=None, software="test",
            files=CredentialFiles.in_folder(tmp_path / "north keys", Role.PARTY),
        )  # fmt: skip
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(Dialer(address, system_clock).dial())
            assert connection.enrol("north", b"")
            for _ in range(450):
                stack.enter_context(socket.create_connection(("127.0.0.1", consortium.port)))
            assert connection.enrol("north", b""), "it writes into the store"
    finally:
        consortium.stop()
