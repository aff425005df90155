"""Messages survive the journey, and anything else is refused by name."""

import dataclasses
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError, RemoteProtocolError
from common.study import messages
from common.wire import codec, strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.v1 import messages_pb2
from tests.harness.vectors import negative
from tests.unit.wire.conftest import DIGEST


def coded(message):
    if isinstance(message, messages.ToParty):
        return codec.TO_PARTY.encode(message), codec.TO_PARTY.decode
    return codec.TO_CURATOR.encode(message), codec.TO_CURATOR.decode


def test_every_message_comes_back_as_it_was_sent(one_of_each):
    assert {type(m) for m in one_of_each} == {
        *get_args(messages.ToParty),
        *get_args(messages.ToCurator),
    }
    for message in one_of_each:
        data, decode = coded(message)
        assert decode(data) == message


TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=100)
FIELDS = {
    "study": st.binary(min_size=32, max_size=32),
    "digest": st.binary(min_size=32, max_size=32),
    "step": st.integers(0, 2**32 - 1),
    "chunk": st.integers(0, 2**32 - 1),
    "sender": TEXT.filter(bool),
    "recipient": TEXT.filter(bool),
    **dict.fromkeys(("dealer", "receiver"), TEXT.filter(bool)),
    "reason": TEXT,
    "missing": st.lists(TEXT.filter(bool), max_size=3).map(tuple),
    "signature": st.binary(min_size=64, max_size=64),
    "secret": st.binary(min_size=32, max_size=32),
}
ANY_MESSAGE = st.one_of(
    *(
        st.builds(
            kind, **{f.name: FIELDS.get(f.name, st.binary()) for f in dataclasses.fields(kind)}
        )
        for kind in (*get_args(messages.ToParty), *get_args(messages.ToCurator))
    )
)


@given(ANY_MESSAGE)
@settings(deadline=None, max_examples=300)
def test_any_message_comes_back_as_it_was_sent(message):
    data, decode = coded(message)
    assert decode(data) == message


def test_the_same_message_has_the_same_bytes(one_of_each):
    for message in one_of_each:
        assert coded(message)[0] == coded(dataclasses.replace(message))[0]


def test_every_message_has_a_place_in_the_contract_with_the_same_fields():
    for envelope, kinds, union in (
        (messages_pb2.ToParty, codec.TO_PARTY.kinds, messages.ToParty),
        (messages_pb2.ToCurator, codec.TO_CURATOR.kinds, messages.ToCurator),
    ):
        assert set(kinds.values()) == set(get_args(union))
        alternatives = envelope.DESCRIPTOR.oneofs_by_name["message"].fields
        assert {field.name for field in alternatives} == set(kinds)
        for field in alternatives:
            own = {f.name for f in dataclasses.fields(kinds[field.name])} - {"study"}
            assert {f.name for f in field.message_type.fields} == own


def test_a_message_is_not_sent_in_the_other_direction(one_of_each):
    for message in one_of_each:
        to_party = isinstance(message, messages.ToParty)
        encode = codec.TO_CURATOR.encode if to_party else codec.TO_PARTY.encode
        with pytest.raises(LocalError, match="direction"):
            encode(message)


def share(**changes):
    envelope = messages_pb2.ToCurator(encoding=1, study=DIGEST)
    envelope.share_submitted.CopyFrom(messages_pb2.ShareSubmitted(step=1, chunk=2, payload=b"p"))
    for path, value in changes.items():
        target = envelope
        *parents, name = path.split("__")
        for parent in parents:
            target = getattr(target, parent)
        if value is None:
            target.ClearField(name)
        else:
            setattr(target, name, value)
    return envelope.SerializeToString()


@pytest.mark.parametrize("vector", negative("messages"))
def test_what_is_not_a_whole_known_message_is_refused_by_name(vector):
    data, code = bytes.fromhex(vector["body"]), ErrorCode[vector["code"]]
    with pytest.raises(WireError) as refusal:
        codec.TO_CURATOR.decode(data)
    assert refusal.value.code is code
    assert isinstance(refusal.value, RemoteProtocolError)
    assert code.name in str(refusal.value)


def test_an_oversized_message_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(strict, "MOST_MESSAGE_BYTES", 30)
    with pytest.raises(WireError) as refusal:
        codec.TO_CURATOR.decode(share())
    assert refusal.value.code is ErrorCode.TOO_LARGE


def test_what_the_peer_would_refuse_is_not_sent(monkeypatch):
    refusing = {"study": DIGEST, "step": 1}
    for message in (
        messages.PartyRefused(**refusing, reason="\x1b[2J"),
        messages.PartyRefused(**refusing, reason="\ud800"),
        messages.EnvelopePosted(**refusing, recipient="", envelope=b""),
        messages.EnvelopePosted(**refusing, recipient="n" * 101, envelope=b""),
        messages.ChoiceSubmitted(study=DIGEST, step=1 << 40, payload=b""),
    ):
        with pytest.raises(LocalError, match="would be refused"):
            codec.TO_CURATOR.encode(message)
    with pytest.raises(LocalError, match="would be refused"):
        codec.TO_PARTY.encode(messages.StudyAborted(study=DIGEST, reason="r" * 2001))
    monkeypatch.setattr(strict, "MOST_MESSAGE_BYTES", 100)
    with pytest.raises(LocalError, match="at most 100"):
        codec.TO_CURATOR.encode(messages.ChoiceSubmitted(**refusing, payload=bytes(90)))
