"""Messages to bytes and back.

    data = encode_to_curator(message)      # what a party journals, and sends
    message = decode_to_curator(data)      # what the curator's role receives

The bytes are an encoded ToParty or ToCurator of protos/common/wire/v1/messages.proto. Decoding is
strict (see `strict`): whatever bytes arrive, the outcome is a message that checked itself or a
`WireError` with the name of what is wrong, and memory stays within a small multiple of the input's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from common.errors import LocalError, RemoteProtocolError
from common.study.messages import (
    ChoiceSubmitted,
    EnvelopePosted,
    EnvelopeRelayed,
    KeysDealt,
    KeysRelayed,
    ListPublished,
    ListSigned,
    MasksRevealed,
    PartyRefused,
    ResultPublished,
    ShareSubmitted,
    SignaturesRelayed,
    StepOpened,
    StudyAborted,
    StudyFinished,
    StudyOpened,
    ToCurator,
    ToParty,
)
from common.wire import strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.v1 import messages_pb2

ENCODING = 1
TO_PARTY: Mapping[str, type[ToParty]] = {
    "study_opened": StudyOpened,
    "step_opened": StepOpened,
    "envelope_relayed": EnvelopeRelayed,
    "result_published": ResultPublished,
    "study_finished": StudyFinished,
    "study_aborted": StudyAborted,
    "keys_relayed": KeysRelayed,
    "list_published": ListPublished,
    "signatures_relayed": SignaturesRelayed,
}
TO_CURATOR: Mapping[str, type[ToCurator]] = {
    "envelope_posted": EnvelopePosted,
    "share_submitted": ShareSubmitted,
    "choice_submitted": ChoiceSubmitted,
    "party_refused": PartyRefused,
    "keys_dealt": KeysDealt,
    "list_signed": ListSigned,
    "masks_revealed": MasksRevealed,
}

_Envelope = TypeVar("_Envelope", messages_pb2.ToParty, messages_pb2.ToCurator)


def encode_to_party(message: ToParty) -> bytes:
    """The bytes of a message to a party.

    Raises:
        LocalError: the message is one that the receiver would refuse.
    """
    return _encode(messages_pb2.ToParty(), message, TO_PARTY)


def encode_to_curator(message: ToCurator) -> bytes:
    """The bytes of a message to the curator.

    Raises:
        LocalError: the message is one that the receiver would refuse.
    """
    return _encode(messages_pb2.ToCurator(), message, TO_CURATOR)


def decode_to_party(data: bytes) -> ToParty:
    """The message to a party in some bytes.

    Raises:
        WireError: naming what is wrong with them.
    """
    return cast(ToParty, _decode(messages_pb2.ToParty, data, TO_PARTY))


def decode_to_curator(data: bytes) -> ToCurator:
    """The message to the curator in some bytes.

    Raises:
        WireError: naming what is wrong with them.
    """
    return cast(ToCurator, _decode(messages_pb2.ToCurator, data, TO_CURATOR))


def _encode(
    envelope: _Envelope, message: ToParty | ToCurator, kinds: Mapping[str, type[Any]]
) -> bytes:
    kind = next((name for name, known in kinds.items() if type(message) is known), None)
    if kind is None:
        raise LocalError(f"a {type(message).__name__} does not travel in this direction")
    try:
        envelope.encoding, envelope.study = ENCODING, message.study
        body = getattr(envelope, kind)
        body.SetInParent()
        for name in _names(type(message)):
            value = getattr(message, name)
            if isinstance(value, tuple):
                getattr(body, name).extend(value)
            else:
                setattr(body, name, value)
        data = envelope.SerializeToString()
        strict.check(envelope, size=len(data))
    except (WireError, TypeError, ValueError) as error:
        raise LocalError(f"this {type(message).__name__} would be refused: {error}") from error
    if len(data) > strict.MOST_MESSAGE_BYTES:
        raise LocalError(
            f"a {type(message).__name__} of {len(data):,} bytes would be refused: "
            f"at most {strict.MOST_MESSAGE_BYTES:,}"
        )
    return data


def _decode(
    envelope_kind: type[_Envelope], data: bytes, kinds: Mapping[str, type[Any]]
) -> ToParty | ToCurator:
    envelope = strict.parse(envelope_kind, data, most=strict.MOST_MESSAGE_BYTES)
    if envelope.encoding != ENCODING:
        raise WireError(ErrorCode.VERSION_MISMATCH, f"encoding {envelope.encoding}")
    kind = envelope.WhichOneof("message")
    if kind is None:  # `parse` refuses it; said again for the type checker
        raise WireError(ErrorCode.FIELD_UNKNOWN, "no message we know")
    body, message_kind = getattr(envelope, kind), kinds[kind]
    try:
        message: ToParty | ToCurator = message_kind(
            study=envelope.study, **{name: _value(body, name) for name in _names(message_kind)}
        )
    except RemoteProtocolError as error:  # the message's own checks
        raise WireError(ErrorCode.FIELD_INVALID, str(error)) from error
    return message


def _value(body: Message, name: str) -> object:
    """A field as messages have it: a list is a tuple there."""
    value = getattr(body, name)
    repeated = body.DESCRIPTOR.fields_by_name[name].is_repeated
    return tuple(value) if repeated else value


def _names(kind: type[ToParty | ToCurator]) -> list[str]:
    """The fields that the message's own part of the envelope holds, by the same names."""
    return [field.name for field in fields(kind) if field.name != "study"]
