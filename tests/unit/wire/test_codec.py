"""Messages survive the journey, and anything else is refused by name."""

import dataclasses
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.crypto.framing import frame
from common.errors import LocalError, RemoteProtocolError
from common.study import messages
from common.wire import codec, strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.v1 import messages_pb2
from tests.harness.rounds import say
from tests.harness.vectors import negative
from tests.unit.wire.conftest import DIGEST


def directions(to_party, to_curator):
    return ((codec.TO_PARTY, to_party), (codec.TO_CURATOR, to_curator))


def test_every_message_comes_back_as_it_was_sent(to_party, to_curator):
    for own, examples in directions(to_party, to_curator):
        assert {type(message) for message in examples} == set(own.kinds.values())
        for message in examples:
            assert own.decode(own.encode(message)) == message


def test_every_round_of_protocol_1_has_an_example(to_party, to_curator):
    for table, examples in (
        (codec.ROUNDS_TO_PARTY, to_party),
        (codec.ROUNDS_TO_CURATOR, to_curator),
    ):
        assert set(table) <= {messages.name_of(message) for message in examples}


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
    "contributions": st.lists(st.binary(min_size=32, max_size=32), max_size=3).map(tuple),
    "missing": st.lists(TEXT.filter(bool), max_size=3).map(tuple),
    "signature": st.binary(min_size=64, max_size=64),
    "secret": st.binary(min_size=32, max_size=32),
}
NEW = st.lists(st.one_of(st.binary(), TEXT, st.integers(0, 2**64)), max_size=4).map(tuple)


def any_message(kinds, forms):
    """Any message of a direction: of each kind, of each round that 0.2 knew, and of a new one."""
    plain = [
        st.builds(
            kind, **{f.name: FIELDS.get(f.name, st.binary()) for f in dataclasses.fields(kind)}
        )
        for kind in get_args(kinds)
        if kind is not messages.StepMessage
    ]
    head = {"study": FIELDS["study"], "step": FIELDS["step"]}
    known = [
        st.builds(
            messages.StepMessage,
            **head,
            round=st.just(name),
            peer=TEXT.filter(bool) if form.peer else st.just(""),
            payload=st.tuples(*(FIELDS.get(part, st.binary()) for part in form.parts)),
        )
        for name, form in forms.items()
    ]
    new = st.builds(messages.StepMessage, **head, round=st.just("new"), peer=TEXT, payload=NEW)
    return st.one_of(*plain, *known, new)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (codec.TO_PARTY, any_message(messages.ToParty, codec.ROUNDS_TO_PARTY)),
        (codec.TO_CURATOR, any_message(messages.ToCurator, codec.ROUNDS_TO_CURATOR)),
    ],
    ids=["to party", "to curator"],
)
def test_any_message_comes_back_as_it_was_sent(own, message):
    @given(message)
    @settings(deadline=None, max_examples=200)
    def comes_back(one):
        assert own.decode(own.encode(one)) == one

    comes_back()


def test_the_same_message_has_the_same_bytes(to_party, to_curator):
    for own, examples in directions(to_party, to_curator):
        for message in examples:
            assert own.encode(message) == own.encode(dataclasses.replace(message))


def test_every_message_has_a_place_in_the_contract_with_the_same_fields():
    for envelope, own, forms, union in (
        (messages_pb2.ToParty, codec.TO_PARTY, codec.ROUNDS_TO_PARTY, messages.ToParty),
        (messages_pb2.ToCurator, codec.TO_CURATOR, codec.ROUNDS_TO_CURATOR, messages.ToCurator),
    ):
        assert set(own.kinds.values()) == set(get_args(union))
        places = {
            name: {f.name for f in dataclasses.fields(kind)} - {"study"}
            for name, kind in own.kinds.items()
        }
        for form in forms.values():
            places[form.field] = {"step", *form.parts, *([form.peer] if form.peer else [])}
        alternatives = envelope.DESCRIPTOR.oneofs_by_name["message"].fields
        assert {field.name for field in alternatives} == set(places)
        for field in alternatives:
            assert {f.name for f in field.message_type.fields} == places[field.name]


def test_rounds_travel_in_the_bytes_of_0_2_and_under_its_names(to_party, to_curator):
    """A node of 0.2 reads them; the journal of a study that 0.2 began goes on."""
    envelope = messages_pb2.ToCurator(encoding=1, study=DIGEST)
    envelope.share_submitted.CopyFrom(messages_pb2.ShareSubmitted(step=2, chunk=3, payload=b"p"))
    share = say("masked input", 3, b"p", study=DIGEST, step=2)
    assert codec.TO_CURATOR.encode(share) == envelope.SerializeToString()
    assert codec.TO_CURATOR.name_of(share) == "ShareSubmitted"
    envelope = messages_pb2.ToParty(encoding=1, study=DIGEST)
    relayed = messages_pb2.KeysRelayed(step=2, missing=["a", "b"], payload=b"k")
    envelope.keys_relayed.CopyFrom(relayed)
    keys = say("share keys", ("a", "b"), b"k", study=DIGEST, step=2)
    assert codec.TO_PARTY.encode(keys) == envelope.SerializeToString()
    assert codec.TO_PARTY.name_of(keys) == "KeysRelayed"
    names = {codec.TO_CURATOR.name_of(message) for message in to_curator}
    assert names == {
        "EnvelopePosted", "ShareSubmitted", "KeysDealt", "BoxRefused", "BoxOpened", "ListSigned",
        "MasksRevealed", "ChoiceSubmitted", "PartyRefused", "StepMessage",
    }  # fmt: skip


def test_a_known_round_has_one_form_only():
    envelope = messages_pb2.ToCurator(encoding=1, study=DIGEST)
    generic = messages_pb2.StepMessage(step=0, round="choice", peer="", payload=frame((b"x",)))
    envelope.step_message.CopyFrom(generic)
    with pytest.raises(WireError, match="round 'choice' has a field of its own"):
        codec.TO_CURATOR.decode(envelope.SerializeToString())
    envelope.step_message.round, envelope.step_message.payload = "new", b"no frame"
    with pytest.raises(WireError, match="FIELD_INVALID"):
        codec.TO_CURATOR.decode(envelope.SerializeToString())


def test_a_message_is_not_sent_in_the_other_direction(to_party, to_curator):
    for message in to_party:
        if not isinstance(message, messages.StepMessage):
            with pytest.raises(LocalError, match="direction"):
                codec.TO_CURATOR.encode(message)
    with pytest.raises(LocalError, match="direction"):
        codec.TO_PARTY.encode(to_curator[-1])


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
        say("envelope", b"", **refusing, peer=""),
        say("envelope", b"", **refusing, peer="n" * 101),
        say("choice", b"", study=DIGEST, step=1 << 40),
        say("choice", b"one", b"two", **refusing),
        say("choice", 7, **refusing),
        say("new", ("a",), **refusing),
    ):
        with pytest.raises(LocalError, match="would be refused"):
            codec.TO_CURATOR.encode(message)
    with pytest.raises(LocalError, match="would be refused"):
        codec.TO_PARTY.encode(messages.StudyAborted(study=DIGEST, reason="r" * 2001))
    monkeypatch.setattr(strict, "MOST_MESSAGE_BYTES", 100)
    with pytest.raises(LocalError, match="at most 100"):
        codec.TO_CURATOR.encode(say("choice", bytes(90), **refusing))
