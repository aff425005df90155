"""Messages to bytes and back.

    data = TO_CURATOR.encode(message)      # what a party journals, and sends
    message = TO_CURATOR.decode(data)      # what the curator's role receives

The bytes are an encoded ToParty or ToCurator of protos/common/wire/v1/messages.proto. Decoding is
strict (see `strict`): whatever bytes arrive, the outcome is a message that checked itself or a
`WireError` with the name of what is wrong, and memory stays within a small multiple of the input's.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, Generic, TypeVar, get_args

from google.protobuf.message import Message

from common.errors import LocalError, RemoteProtocolError
from common.study.messages import ToCurator, ToParty
from common.wire import strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.v1 import messages_pb2

ENCODING = 1

_Kind = TypeVar("_Kind", ToParty, ToCurator)


class Codec(Generic[_Kind]):
    """The messages of one direction.

    Args:
        envelope: of the contract: the study, and one field for each kind of message.
        kinds: the union of these kinds. A kind has the name of its field, and the same fields.
    """

    def __init__(self, envelope: type[Message], kinds: Any) -> None:  # noqa: ANN401  # a union
        self._envelope = envelope
        self.kinds: dict[str, type[_Kind]] = {_field(kind): kind for kind in get_args(kinds)}

    def encode(self, message: _Kind) -> bytes:
        """Return the bytes of a message; LocalError if the receiver would refuse it."""
        name, field = type(message).__name__, _field(type(message))
        if field not in self.kinds:
            raise LocalError(f"a {name} does not travel in this direction")
        envelope: Any = self._envelope()
        try:
            envelope.encoding, envelope.study = ENCODING, message.study
            body = getattr(envelope, field)
            body.SetInParent()
            for key in _keys(type(message)):
                value = getattr(message, key)
                if isinstance(value, tuple):
                    getattr(body, key).extend(value)
                else:
                    setattr(body, key, value)
            data = bytes(envelope.SerializeToString())
            strict.check(envelope, size=len(data))
        except (WireError, TypeError, ValueError) as error:
            raise LocalError(f"this {name} would be refused: {error}") from error
        if len(data) > strict.MOST_MESSAGE_BYTES:
            raise LocalError(
                f"a {name} of {len(data):,} bytes would be refused: "
                f"at most {strict.MOST_MESSAGE_BYTES:,}"
            )
        return data

    def decode(self, data: bytes) -> _Kind:
        """Return the message in some bytes; WireError names what is wrong with them."""
        envelope: Any = strict.parse(self._envelope, data, most=strict.MOST_MESSAGE_BYTES)
        if envelope.encoding != ENCODING:
            raise WireError(ErrorCode.VERSION_MISMATCH, f"encoding {envelope.encoding}")
        field = envelope.WhichOneof("message")  # `parse` refuses an envelope without one
        body, kind = getattr(envelope, field), self.kinds[field]
        values = {key: getattr(body, key) for key in _keys(kind)}
        for key, value in values.items():
            if body.DESCRIPTOR.fields_by_name[key].is_repeated:
                values[key] = tuple(value)
        try:
            return kind(study=envelope.study, **values)
        except RemoteProtocolError as error:  # the message's own checks
            raise WireError(ErrorCode.FIELD_INVALID, str(error)) from error


def _field(kind: type) -> str:
    """Name the field of an envelope that holds a kind of message: step_opened for StepOpened."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def _keys(kind: type[Any]) -> list[str]:
    """Name the fields of a message that its own part of the envelope holds."""
    return [field.name for field in fields(kind) if field.name != "study"]


TO_PARTY: Codec[ToParty] = Codec(messages_pb2.ToParty, ToParty)
TO_CURATOR: Codec[ToCurator] = Codec(messages_pb2.ToCurator, ToCurator)
