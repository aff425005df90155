"""Messages to bytes and back.

The bytes are an encoded ToParty or ToCurator of protos/common/wire/v1/messages.proto. Version 0.2
knew each round of each exchange as a kind of message, and the bytes are still those: nodes of both
versions finish a study together, and a study that is under way survives an upgrade. A round of a
new exchange travels as the contract's StepMessage. Decoding is strict (see `strict`): whatever
bytes arrive, the outcome is a message that checked itself or a `WireError` with the name of what is
wrong, and memory stays within a small multiple of the input's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar, get_args

from google.protobuf.message import Message

from common.crypto.framing import frame, unframe
from common.errors import LocalError, RemoteProtocolError
from common.study.messages import StepMessage, ToCurator, ToParty
from common.wire import strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.v1 import messages_pb2

ENCODING = 1
_GENERIC = "step_message"  # of rounds without a field of their own


@dataclass(frozen=True, slots=True)
class Form:
    """How one round travels in one direction."""

    field: str  # of the envelope, ToParty or ToCurator
    parts: tuple[str, ...]  # the fields that hold the payload, in order
    peer: str = ""  # the field that names the other party


ROUNDS_TO_PARTY: Mapping[str, Form] = {
    "envelope": Form("envelope_relayed", ("envelope",), peer="sender"),
    "share keys": Form("keys_relayed", ("missing", "payload")),
    "open box": Form("box_disputed", ("receiver", "signature")),
    "judge": Form("box_judged", ("dealer", "receiver", "evidence", "signature", "secret")),
    "consistency check": Form("list_published", ("missing",)),
    "unmask": Form("signatures_relayed", ("payload",)),
}
ROUNDS_TO_CURATOR: Mapping[str, Form] = {
    "envelope": Form("envelope_posted", ("envelope",), peer="recipient"),
    "masked input": Form("share_submitted", ("chunk", "payload")),
    "choice": Form("choice_submitted", ("payload",)),
    "share keys": Form("keys_dealt", ("payload",)),
    "accuse": Form("box_refused", ("dealer", "signature")),
    "open box": Form("box_opened", ("receiver", "secret")),
    "consistency check": Form("list_signed", ("signature",)),
    "unmask": Form("masks_revealed", ("payload",)),
}

_Kind = TypeVar("_Kind", ToParty, ToCurator)


class Codec(Generic[_Kind]):
    """The messages of one direction.

    Args:
        envelope: of the contract: the study, and one field for each kind of message.
        kinds: the union of these kinds. A kind has the name of its field, and the same fields.
        forms: by round, the fields that hold messages of exchanges.
    """

    def __init__(self, envelope: type[Message], kinds: Any, forms: Mapping[str, Form]) -> None:  # noqa: ANN401  # a union
        self._envelope, self._forms = envelope, forms
        self._rounds = {form.field: name for name, form in forms.items()}
        self.kinds: dict[str, type[_Kind]] = {_field(kind): kind for kind in get_args(kinds)}

    def name_of(self, message: _Kind) -> str:
        """Name a message as version 0.2 did: journals and replays go by these names."""
        return _kind_name(self._field_of(message))

    def name_of_round(self, name: str) -> str:
        """Name the messages of a round, as `name_of` does."""
        return _kind_name(self._forms[name].field)

    def _field_of(self, message: _Kind) -> str:
        if isinstance(message, StepMessage) and message.round in self._forms:
            return self._forms[message.round].field
        return _field(type(message))

    def encode(self, message: _Kind) -> bytes:
        """Return the bytes of a message; LocalError if the receiver would refuse it."""
        name, field = type(message).__name__, self._field_of(message)
        if field not in self.kinds and field not in self._rounds:
            raise LocalError(f"a {name} does not travel in this direction")
        envelope: Any = self._envelope()
        try:
            envelope.encoding, envelope.study = ENCODING, message.study
            body = getattr(envelope, field)
            body.SetInParent()
            for key, value in self._values(message, field).items():
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

    def _values(self, message: _Kind, field: str) -> dict[str, Any]:
        """Return what the fields of the message's part of the envelope hold."""
        values = {key: getattr(message, key) for key in _keys(type(message))}
        if not isinstance(message, StepMessage):
            return values
        if field == _GENERIC:
            return {**values, "payload": frame(values["payload"])}
        form = self._forms[message.round]
        parts = dict(zip(form.parts, message.payload, strict=True))
        peer = {form.peer: message.peer} if form.peer else {}
        return {"step": message.step, **peer, **parts}

    def decode(self, data: bytes) -> _Kind:
        """Return the message in some bytes; WireError names what is wrong with them."""
        envelope: Any = strict.parse(self._envelope, data, most=strict.MOST_MESSAGE_BYTES)
        if envelope.encoding != ENCODING:
            raise WireError(ErrorCode.VERSION_MISMATCH, f"encoding {envelope.encoding}")
        field = envelope.WhichOneof("message")  # `parse` refuses an envelope without one
        body, kind = getattr(envelope, field), self.kinds.get(field, StepMessage)
        values = {field.name: _value(body, field) for field in body.DESCRIPTOR.fields}
        try:
            if field == _GENERIC:
                if values["round"] in self._forms:
                    raise RemoteProtocolError(f"round {values['round']!r} has a field of its own")
                values["payload"] = tuple(unframe(values["payload"]))
            elif field in self._rounds:
                values = self._of_round(field, values)
            return kind(study=envelope.study, **values)
        except (RemoteProtocolError, ValueError) as error:  # the message's own checks
            raise WireError(ErrorCode.FIELD_INVALID, str(error)) from error

    def _of_round(self, field: str, values: Mapping[str, Any]) -> dict[str, Any]:
        name = self._rounds[field]
        form = self._forms[name]
        return {
            "step": values["step"],
            "round": name,
            "peer": values[form.peer] if form.peer else "",
            "payload": tuple(values[key] for key in form.parts),
        }


def _value(body: Any, field: Any) -> Any:  # noqa: ANN401  # protobuf's own
    value = getattr(body, field.name)
    return tuple(value) if field.is_repeated else value


def _kind_name(field: str) -> str:
    return "".join(word.capitalize() for word in field.split("_"))


def _field(kind: type) -> str:
    """Name the field of an envelope that holds a kind of message: step_opened for StepOpened."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def _keys(kind: type[Any]) -> list[str]:
    """Name the fields of a message that its own part of the envelope holds."""
    return [field.name for field in fields(kind) if field.name != "study"]


TO_PARTY: Codec[ToParty] = Codec(messages_pb2.ToParty, ToParty, ROUNDS_TO_PARTY)
TO_CURATOR: Codec[ToCurator] = Codec(messages_pb2.ToCurator, ToCurator, ROUNDS_TO_CURATOR)
