"""The error catalogue: every reason for refusing a call, and all that a peer may learn about it.

An error is a code and a private detail. The code travels (as a gRPC status and a trailer); the
detail stays in the log of the side that refused. The words that a peer reads come from its own copy
of this catalogue: a text that arrives over the network is never shown. Where the versions of both
sides may be the cause, the numbers of the version that refused travel, too.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Self

import grpc
from google.protobuf.message import DecodeError

from common.errors import PolicyError, RemoteProtocolError
from common.privacy.statement import minor_version, versions
from common.wire.v1 import errors_pb2

TRAILER = "parley-error-bin"
PROTOCOL = 1  # the version of the calls and messages; docs/protocol.md says when it is raised

_SAME_VERSION = "Run the same minor version of parley on both sides, the later one."
_Status = grpc.StatusCode


class ErrorCode(enum.IntEnum):
    """The codes of protos/common/wire/v1/errors.proto, and what the other side may know of each."""

    status: grpc.StatusCode  # with which the call ends
    public: str  # what happened
    remedy: str  # what to do about it

    def __new__(cls, number: int, status: grpc.StatusCode, public: str, remedy: str) -> Self:
        code = int.__new__(cls, number)
        code._value_ = number
        code.status, code.public, code.remedy = status, public, remedy
        return code

    # fmt: off
    MALFORMED = (
        1, _Status.INVALID_ARGUMENT, "The bytes are not a message of the protocol.",
        _SAME_VERSION,
    )
    FIELD_MISSING = 2, _Status.INVALID_ARGUMENT, "A field of the message is missing.", _SAME_VERSION
    FIELD_UNKNOWN = (
        3, _Status.INVALID_ARGUMENT, "The message holds something that this version does not know.",
        _SAME_VERSION,
    )
    FIELD_INVALID = (
        4, _Status.INVALID_ARGUMENT, "A field of the message has a value it must not have.",
        _SAME_VERSION,
    )
    TOO_LARGE = (
        5, _Status.INVALID_ARGUMENT, "The message is larger than the protocol allows.",
        "Use fewer or smaller attributes, or a method with smaller tables.",
    )
    OUT_OF_ORDER = (
        6, _Status.FAILED_PRECONDITION, "A part of the conversation was skipped.",
        ("Reconnect: both sides then go on from what is on disk. If it stays, a folder was "
         "rolled back to an older copy: end the study."),
    )
    SEQUENCE_REUSED = (
        7, _Status.FAILED_PRECONDITION, "A message came again with other content.",
        ("Has a party's folder been rolled back to an older copy, or is it running twice? An "
         "answer is drawn once: stop the study."),
    )
    VERSION_MISMATCH = (
        8, _Status.FAILED_PRECONDITION, "The two sides speak different versions.",
        _SAME_VERSION,
    )
    CERTIFICATE_MISSING = (
        9, _Status.UNAUTHENTICATED, "No certificate was presented.",
        "Make a key and a request with `parley keys init`, and have it approved.",
    )
    CERTIFICATE_UNTRUSTED = (
        10, _Status.UNAUTHENTICATED,
        "The certificate was not issued to a party by this consortium.",
        "Compare the authority's fingerprint on both sides with `parley keys show`.",
    )
    CERTIFICATE_EXPIRED = (
        11, _Status.UNAUTHENTICATED, "The certificate is not valid at this time.",
        "Check the clock; renew the certificate with `parley keys rotate`.",
    )
    CERTIFICATE_REVOKED = (
        12, _Status.UNAUTHENTICATED, "The certificate was revoked.",
        "Speak to the curator's operator; a new one needs `parley keys rotate`.",
    )
    NAME_MISMATCH = (
        13, _Status.PERMISSION_DENIED, "The certificate belongs to another party.",
        "Use the certificate that was issued for this party's name.",
    )
    CURATOR_UNTRUSTED = (
        14, _Status.UNAUTHENTICATED,
        "The curator's certificate is not trusted, or is not for this address.",
        "Check the address and the authority's fingerprint; do not go on before both are right.",
    )
    STUDY_UNKNOWN = (
        15, _Status.NOT_FOUND, "There is no such study for this party.",
        "Compare the study's digest on both sides.",
    )
    STUDY_CLOSED = (
        16, _Status.FAILED_PRECONDITION, "The study does not take this any more.",
        "Look at its status; a new study needs a new approval.",
    )
    APPROVAL_INVALID = (
        17, _Status.PERMISSION_DENIED,
        "The approval is not signed by the identity that the study pins.",
        "Compare the identity's fingerprint with the study's.",
    )
    OUT_OF_TURN = (
        18, _Status.FAILED_PRECONDITION, "The message may not be sent now.",
        "Look at the logs of both sides; nothing was changed by it.",
    )
    REFUSED = (
        19, _Status.PERMISSION_DENIED, "Refused by a budget or a policy.",
        "Ask the other side's operator, whose log has the reason.",
    )
    UNAVAILABLE = (
        20, _Status.UNAVAILABLE, "The other side cannot be reached.",
        "Check address, firewall and proxy; trying again is safe.",
    )
    INTERNAL = (
        21, _Status.INTERNAL, "The other side had a failure of its own.",
        "Its log has the cause; trying again is safe.",
    )
    TOO_MANY_CALLS = (
        22, _Status.RESOURCE_EXHAUSTED,
        "Too many calls of this party are under way, or of all parties.",
        "Trying again is safe. If it stays: does a second node run with this certificate?",
    )
    # fmt: on


class WireError(RemoteProtocolError):
    """A call was refused, by us or by the peer.

    The detail is for our own log and is never sent.
    """

    def __init__(self, code: ErrorCode, detail: str = "") -> None:
        aside = f" ({detail})" if detail else ""
        super().__init__(f"{code.name}: {code.public}{aside} {code.remedy}")
        self.code, self.detail = code, detail

    def trailer(self) -> tuple[tuple[str, bytes], ...]:
        """Return the trailing metadata that carries the code."""
        detail = errors_pb2.ErrorDetail(code=f"ERROR_CODE_{self.code.name}")
        if self.code.remedy == _SAME_VERSION:
            detail.protocol = PROTOCOL
            version = minor_version(versions()["parley"])
            if version is not None:
                detail.major, detail.minor = version
        return ((TRAILER, detail.SerializeToString()),)


def classify(error: Exception) -> WireError:
    """Turn an exception into an error of the catalogue; a defect is an internal failure."""
    match error:
        case WireError():
            return error
        case PolicyError():
            return WireError(ErrorCode.REFUSED, str(error))
        case RemoteProtocolError():
            return WireError(ErrorCode.OUT_OF_TURN, str(error))
        case _:
            return WireError(ErrorCode.INTERNAL, f"{type(error).__name__}: {error}")


def received(
    status: grpc.StatusCode, metadata: Iterable[tuple[str, str | bytes]] | None
) -> WireError:
    """Return the error of a peer's refusal, by its trailer or else by its status.

    The text of the status is the peer's, so it is not used.
    """
    for key, value in metadata or ():
        if key == TRAILER and isinstance(value, bytes):
            return _told(value)
    fallback = {
        _Status.UNAVAILABLE: ErrorCode.UNAVAILABLE,
        _Status.DEADLINE_EXCEEDED: ErrorCode.UNAVAILABLE,
        _Status.CANCELLED: ErrorCode.UNAVAILABLE,
        _Status.UNIMPLEMENTED: ErrorCode.VERSION_MISMATCH,
        _Status.RESOURCE_EXHAUSTED: ErrorCode.TOO_LARGE,
        _Status.UNAUTHENTICATED: ErrorCode.CERTIFICATE_UNTRUSTED,
    }
    return WireError(fallback.get(status, ErrorCode.INTERNAL), f"status {status.name}")


def _told(trailer: bytes) -> WireError:
    """Return the error in a trailer; a code of a later version is an internal failure."""
    try:
        detail = errors_pb2.ErrorDetail.FromString(trailer)
        code = ErrorCode[errors_pb2.ErrorCode.Name(detail.code).removeprefix("ERROR_CODE_")]
    except (DecodeError, ValueError, KeyError):
        return WireError(ErrorCode.INTERNAL, "said the other side")
    if not detail.HasField("minor"):
        return WireError(code, "said the other side")
    there = f"parley {detail.major}.{detail.minor} and speaks protocol {detail.protocol}"
    here = f"parley {versions()['parley']} and speaks protocol {PROTOCOL}"
    return WireError(code, f"said the other side, which runs {there}; this side runs {here}")
