"""No bytes crash a decoder: they are a message, or a refusal with a name."""

import base64
import contextlib
import os
import resource
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from cryptography.hazmat.primitives import serialization
from google.protobuf.message import DecodeError
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.study import messages
from common.wire import codec, strict
from common.wire.catalogue import TRAILER, WireError, received
from common.wire.frames import Assembler, NumberedMessage, split
from common.wire.pki import certificates
from common.wire.pki.certificates import Role, Subject
from common.wire.pki.credentials import parse_certificates, parse_request
from common.wire.v1 import curator_pb2, errors_pb2, messages_pb2
from tests.harness.forked import exit_code, fork

DIGEST = bytes(range(32))
CALLS = [
    getattr(curator_pb2, name)
    for name in curator_pb2.DESCRIPTOR.message_types_by_name
    if name != "Frame"
]


@st.composite
def damaged(draw, valid):
    """Damage valid bytes by a few cuts, changes, insertions and repetitions."""
    data = bytearray(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["cut", "change", "insert", "remove", "repeat"])):
            case "cut":
                del data[place:]
            case "change":
                data[place : place + 1] = draw(st.binary(min_size=1, max_size=1))
            case "insert":
                data[place:place] = draw(st.binary(max_size=12))
            case "remove":
                del data[place : place + draw(st.integers(1, 8))]
            case "repeat":
                data += data[:place]
    return bytes(data)


def survives(decode, encode, data):
    """Decoding ends in a refusal, or in a message that means the same when sent on."""
    try:
        message = decode(data)
    except WireError:
        return
    assert decode(encode(message)) == message


@pytest.fixture(scope="module")
def valid(to_party, to_curator):
    return {
        messages.ToParty: list(map(codec.TO_PARTY.encode, to_party)),
        messages.ToCurator: list(map(codec.TO_CURATOR.encode, to_curator)),
    }


@given(data=st.binary(max_size=300))
@settings(deadline=None, max_examples=200)
def test_random_bytes_are_refused_or_understood(data):
    survives(codec.TO_PARTY.decode, codec.TO_PARTY.encode, data)
    survives(codec.TO_CURATOR.decode, codec.TO_CURATOR.encode, data)


@given(choice=st.data())
@settings(deadline=None, max_examples=250)
def test_damaged_messages_are_refused_or_understood(valid, choice):
    data = choice.draw(damaged(valid[messages.ToParty]))
    survives(codec.TO_PARTY.decode, codec.TO_PARTY.encode, data)
    data = choice.draw(damaged(valid[messages.ToCurator]))
    survives(codec.TO_CURATOR.decode, codec.TO_CURATOR.encode, data)


def test_messages_cut_at_every_byte_are_refused(valid):
    for decode, each in (
        (codec.TO_PARTY.decode, valid[messages.ToParty]),
        (codec.TO_CURATOR.decode, valid[messages.ToCurator]),
    ):
        for data in each:
            for end in range(len(data)):
                with pytest.raises(WireError):
                    decode(data[:end])


def an_example(kind):
    """Make a valid call of a kind, from its limits."""
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        length = min(strict.LIMITS.get(field.name, [1])[0] or 1, 64)
        if field.message_type is not None:
            inner = an_example(getattr(curator_pb2, field.message_type.name))
            if field.is_repeated:
                getattr(message, field.name).append(inner)
            else:
                getattr(message, field.name).CopyFrom(inner)
        elif field.type == field.TYPE_STRING:
            if field.is_repeated:
                getattr(message, field.name).append("x")
            else:
                setattr(message, field.name, "x" * length)
        elif field.type == field.TYPE_BYTES:
            setattr(message, field.name, b"x" * length)
        else:
            setattr(message, field.name, 1)
    return message


@pytest.mark.parametrize("kind", CALLS, ids=lambda kind: kind.__name__)
@given(choice=st.data())
@settings(deadline=None, max_examples=25)
def test_calls_are_refused_or_understood(kind, choice):
    valid = an_example(kind).SerializeToString()
    assert strict.parse(kind, valid).SerializeToString() == valid
    for data in (choice.draw(damaged([valid])), choice.draw(st.binary(max_size=100))):
        survives(
            lambda data: strict.parse(kind, data), lambda message: message.SerializeToString(), data
        )


@given(choice=st.data())
@settings(deadline=None, max_examples=150)
def test_damaged_frames_never_yield_another_message(choice):
    sent = [
        curator_pb2.WorkResponse(frame=frame).SerializeToString()
        for frame in split(NumberedMessage(sequence=1, body=b"a message"))
    ]
    assembler = Assembler(stored=0)
    try:
        call = curator_pb2.WorkResponse.FromString(choice.draw(damaged(sent)))
        whole = assembler.add(call)
    except (WireError, DecodeError):  # gRPC itself refuses what cannot be parsed
        return
    assert whole is None or whole.body == b"a message"


@given(data=st.binary(max_size=50))
@settings(deadline=None)
def test_a_damaged_trailer_is_still_an_error_with_a_name(data):
    assert received(grpc.StatusCode.UNKNOWN, ((TRAILER, data),)).code.name


REQUEST = certificates.make_request(
    certificates.new_key(), Subject(role=Role.PARTY, name="north")
).public_bytes(serialization.Encoding.DER)
AUTHORITY_KEY = certificates.new_key()
FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
AUTHORITY = certificates.make_authority(AUTHORITY_KEY, "consortium", first=FIRST, last=LAST)


def as_pem(data, what):
    return b"-----BEGIN %s-----\n%s-----END %s-----\n" % (what, base64.encodebytes(data), what)


@example(data=REQUEST.replace(b"\x02\x01\x00", b"\x02\x01\x01", 1))  # a version that does not exist
@given(data=damaged([REQUEST]))
@settings(deadline=None, max_examples=150)
def test_a_damaged_request_gets_no_certificate(data):
    assume(data != REQUEST)
    with contextlib.suppress(InputError):
        request = parse_request(as_pem(data, b"CERTIFICATE REQUEST"), where=Path("request"))
        certificates.issue(
            request, authority=AUTHORITY, authority_key=AUTHORITY_KEY, first=FIRST, last=LAST
        )
        assert request.public_bytes(serialization.Encoding.DER) == REQUEST


@given(data=damaged([AUTHORITY.public_bytes(serialization.Encoding.DER)]))
@settings(deadline=None, max_examples=200)
def test_a_damaged_certificate_opens_no_door(data):
    with contextlib.suppress(InputError, WireError):
        for certificate in parse_certificates(as_pem(data, b"CERTIFICATE"), where=Path("c")):
            certificates.verify(certificate, [AUTHORITY], role=Role.PARTY, at=FIRST)
            raise AssertionError("taken for a party")


def fits(work, most_bytes):
    """Return whether a process of its own, with that much more memory, can do the work."""
    child = fork()
    if child == 0:
        code = 1
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + most_bytes
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            work()
            code = 0
        finally:
            os._exit(code)
    return exit_code(child) == 0


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        (curator_pb2.EnrolResponse, b"\x1a\x00"),  # two bytes for a list's entry
        (messages_pb2.ListPublished, b"\x12\x00"),
        (messages_pb2.ToCurator, b"\xf8\x01\x01"),  # unknown fields
        (messages_pb2.ToCurator, b"\xfb\x01"),  # groups within groups
        (errors_pb2.ErrorDetail, b"\x08\x01"),  # one field, a million times
    ],
)
def test_the_densest_call_allowed_stays_within_memory(kind, unit):
    data = unit * (strict.MOST_CALL_BYTES // len(unit))

    def parse():
        with contextlib.suppress(WireError):
            strict.parse(kind, data)

    assert fits(parse, 100 * strict.MOST_CALL_BYTES)


def test_a_call_that_takes_more_memory_would_be_noticed():
    assert not fits(lambda: bytes(200 * strict.MOST_CALL_BYTES), 100 * strict.MOST_CALL_BYTES)
