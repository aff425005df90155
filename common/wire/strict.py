"""Strict reading: a message is whole, known and within its limits, or it is refused.

protobuf itself accepts a message without its fields, keeps what it does not know, and has no limits
below 2 GB. `parse` and `check` refuse all of that. Every field of the contract with a length has a
limit in `LIMITS`, so the memory a peer can make us use is bounded, too.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from common.errors import LocalError
from common.schema.limits import MOST_PARTIES
from common.study.messages import DIGEST_BYTES, MOST_TEXT
from common.wire.catalogue import ErrorCode, WireError

MIB = 1 << 20
MOST_FRAME_BYTES = MIB
MOST_CALL_BYTES = 4 * MIB  # what gRPC takes at once; a frame and its envelope fit well
MOST_MESSAGE_BYTES = 256 * MIB  # a message of many frames; held in memory once per open submission
MOST_STUDY_BYTES = 2 * MIB
MOST_NAME = 100
MOST_LISTED = 1_000  # studies in one answer to a party
SIGNATURE_BYTES = 64
SECRET_BYTES = 32
MOST_ANSWER_BYTES = 128  # of a dispute: a secret, and in a hybrid study a seed with its signature
MOST_EVIDENCE_BYTES = 1024  # of a dispute: a key and a box

_NAME = range(1, MOST_NAME + 1)
_PAYLOAD = range(MOST_MESSAGE_BYTES + 1)
_PART = range(1, MOST_FRAME_BYTES + 1)
_KEY = range(16 * 1024 + 1)
LIMITS: dict[str, range] = {
    **dict.fromkeys(
        ("study", "digest", "after", "challenge"), range(DIGEST_BYTES, DIGEST_BYTES + 1)
    ),
    **dict.fromkeys(("sender", "recipient", "party", "name", "software"), _NAME),
    **dict.fromkeys(("dealer", "receiver", "round"), _NAME),
    "peer": range(MOST_NAME + 1),
    **dict.fromkeys(("payload", "envelope", "opening", "result"), _PAYLOAD),
    **dict.fromkeys(("public_key", "identity"), _KEY),
    "reason": range(MOST_TEXT + 1),
    "studies": range(MOST_LISTED + 1),
    "evidence": range(MOST_EVIDENCE_BYTES + 1),
    "secret": range(SECRET_BYTES, MOST_ANSWER_BYTES + 1),
    **dict.fromkeys(("missing", "contributions"), range(MOST_PARTIES + 1)),
    "signature": range(SIGNATURE_BYTES, SIGNATURE_BYTES + 1),
    "document": range(MOST_STUDY_BYTES + 1),
    "piece": _PART,
    "Frame.payload": _PART,
}
"""Lengths allowed: bytes of bytes, characters of text, entries of lists.

By the name of a field, wherever it is; or of one message, where that differs.
"""

# Fields that protocol 1 gained after 0.2. A side that does not know them leaves them out, and
# refuses a message that has one: they are sent only where the other side knows them.
LATER = frozenset(
    {
        "EnrolRequest.after",
        # Boxes that do not open: only studies with `may_miss` that 0.3 offered have them.
        "ToCurator.box_refused", "ToCurator.box_opened", "ToParty.box_disputed",
        "ToParty.box_judged",
        # Commitments: only studies that say so have them.
        "ResultPublished.contributions",
        # Rounds of exchanges that 0.2 does not have.
        "ToCurator.step_message", "ToParty.step_message",
    }
)  # fmt: skip

_LINE_BREAKS = dict.fromkeys(map(ord, "\n\r\t"))  # allowed in texts that are not names

AnyMessage = TypeVar("AnyMessage", bound=Message)


def parse(kind: type[AnyMessage], data: bytes, *, most: int = MOST_CALL_BYTES) -> AnyMessage:
    """Return the message in some bytes, checked; WireError names what is wrong with it."""
    if len(data) > most:
        raise WireError(ErrorCode.TOO_LARGE, f"{len(data):,} bytes, at most {most:,}")
    message = decode(kind, data)
    check(message, size=len(data))
    return message


def decode(kind: type[AnyMessage], data: bytes) -> AnyMessage:
    """Return the message in some bytes, of a contract that is not ours, unchecked."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise WireError(ErrorCode.MALFORMED, f"not a {kind.__name__}") from None
    return message


def check(message: Message, *, size: int | None = None) -> None:
    """Refuse a message that is not whole, holds unknown fields, or passes a limit.

    `size` is that of its bytes, where they are at hand. A WireError names the field.
    """
    known = _check(message)
    size = message.ByteSize() if size is None else size
    # The known fields have a size; if the message has another, there are unknown ones, or some came
    # twice. Listing them instead could take many times the memory of the message itself.
    if known != size:
        raise WireError(
            ErrorCode.FIELD_UNKNOWN,
            f"{message.DESCRIPTOR.name} has {size - known:,} bytes besides its fields",
        )


def _check(message: Message) -> int:
    """Return the bytes that the known fields take; refuse what is missing or not allowed."""
    descriptor, size = message.DESCRIPTOR, 0
    for choice in descriptor.oneofs:
        if message.WhichOneof(choice.name) is None and len(choice.fields) > 1:
            raise WireError(ErrorCode.FIELD_UNKNOWN, f"{descriptor.name} says nothing we know")
    for field in descriptor.fields:
        name = f"{descriptor.name}.{field.name}"
        allowed = LIMITS.get(name, LIMITS.get(field.name))
        known = None if field.enum_type is None else set(field.enum_type.values_by_number) - {0}
        if field.is_repeated:
            entries = getattr(message, field.name)
            _check_length(name, len(entries), LIMITS[field.name])
            allowed = _NAME if field.message_type is None else None  # texts in lists are names
        elif message.HasField(field.name):
            entries = (getattr(message, field.name),)
        elif name in LATER:
            continue
        elif field.containing_oneof is None or len(field.containing_oneof.fields) == 1:
            raise WireError(ErrorCode.FIELD_MISSING, name)
        else:
            continue  # another alternative was chosen
        for entry in entries:
            size += _varint_size(field.number << 3) + _check_value(name, entry, allowed, known)
    return size


def _check_value(name: str, value: object, allowed: range | None, known: Set[int] | None) -> int:
    if isinstance(value, Message):
        return _delimited_size(_check(value))
    if isinstance(value, bytes | str) and allowed is not None:
        _check_length(name, len(value), allowed)
        if isinstance(value, bytes):
            return _delimited_size(len(value))
        # Names and reasons are shown on terminals and in logs, where control characters do harm.
        plain = value if allowed == _NAME else value.translate(_LINE_BREAKS)
        if not plain.isprintable():
            raise WireError(ErrorCode.FIELD_INVALID, f"{name}: holds control characters")
        return _delimited_size(len(value.encode()))
    if known is not None and value not in known:
        raise WireError(ErrorCode.FIELD_UNKNOWN, f"{name}: {value}")
    if isinstance(value, int):
        return _varint_size(value)
    raise LocalError(f"{name}: the contract has a field that this module cannot check")


def _check_length(name: str, length: int, allowed: range) -> None:
    if length > allowed[-1]:
        raise WireError(ErrorCode.TOO_LARGE, f"{name}: {length:,}, at most {allowed[-1]:,}")
    if length < allowed[0]:
        raise WireError(ErrorCode.FIELD_INVALID, f"{name}: {length:,}, at least {allowed[0]:,}")


def _varint_size(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


def _delimited_size(length: int) -> int:
    return _varint_size(length) + length
