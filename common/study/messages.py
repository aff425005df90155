"""What curator and parties say to each other.

Messages are frozen values that check themselves. Each names its study by digest, so an answer to
one study can never be taken for an answer to another, and its step by number. Who sent a message is
not a field of it: in a deployment the sender is the holder of the certificate.

What a step asks is not in any message: curator and party each derive it from the study and the
results published so far, and compare digests. How the answer comes about is the exchange's affair
(`common.exchanges`): all of its messages are `StepMessage`s, whose round says how to read them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from common.crypto.framing import frame
from common.errors import RemoteProtocolError
from common.study.ids import StudyId

DIGEST_BYTES = 32
MOST_TEXT = 2_000

Part = bytes | str | int | tuple[str, ...]
"""A field of a step's message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfStudy:
    study: StudyId

    def __post_init__(self) -> None:
        """Refuse what no honest peer sends."""
        if len(self.study) != DIGEST_BYTES:
            raise RemoteProtocolError(f"a study digest has {DIGEST_BYTES} bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfStep(_OfStudy):
    step: int

    def __post_init__(self) -> None:
        _OfStudy.__post_init__(self)
        if self.step < 0:
            raise RemoteProtocolError(f"there is no step {self.step}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOpened(_OfStudy):
    """Curator to party: every party approved; here is the key to encrypt under, if there is one."""

    public_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOpened(_OfStep):
    """Curator to party: answer this step. `digest` is the step as the curator derived it."""

    digest: bytes
    opening: bytes  # what the exchange needs from the curator: E(u) for one-share noise
    missing: tuple[str, ...] = ()  # the parties that are out for the rest of the study, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMessage(_OfStep):
    """In either direction: one message of the exchange of a step, or of the set-up before step 0.

    A party that names a `peer` asks the curator to pass the payload on to that party; the curator
    names the party that it came from.
    """

    round: str  # of the exchange
    peer: str = ""  # the other party of a relayed message; empty between party and curator
    payload: tuple[Part, ...] = ()  # the fields of the round

    def parts(self, *kinds: type) -> tuple[Any, ...]:
        """Return the payload; RemoteProtocolError unless its fields are of these kinds."""
        if tuple(map(type, self.payload)) != kinds:
            raise RemoteProtocolError(f"a message of round {self.round!r} has other fields")
        return self.payload


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPublished(_OfStep):
    """Curator to party: the noisy result of a step, the same to every party."""

    result: bytes
    # The commitments to what its parties sent, in order; empty in studies without commitments.
    contributions: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFinished(_OfStudy):
    """Curator to party: the release is made. Nothing more will be asked."""

    missing: tuple[str, ...] = ()  # the parties that left the study, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAborted(_OfStudy):
    """Curator to party: the study ended without a release."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyRefused(_OfStep):
    """Party to curator: no. The study cannot go on."""

    reason: str

    def __post_init__(self) -> None:
        _OfStep.__post_init__(self)
        if len(self.reason) > MOST_TEXT:
            raise RemoteProtocolError(f"a reason has at most {MOST_TEXT} characters")


ToParty = StudyOpened | StepOpened | StepMessage | ResultPublished | StudyFinished | StudyAborted
ToCurator = StepMessage | PartyRefused
Message = ToParty | ToCurator


def name_of(message: Message) -> str:
    """Name a message for people: the round of an exchange, or the kind of any other message."""
    return message.round if isinstance(message, StepMessage) else type(message).__name__


def message_digest(message: Message) -> bytes:
    """Return the SHA-256 of a message, by which a duplicate is recognised."""
    values = (getattr(message, field.name) for field in fields(message))
    return hashlib.sha256(_framed((type(message).__name__, *values))).digest()


def _framed(values: Iterable[Any]) -> bytes:
    return frame(_framed(value) if isinstance(value, tuple) else value for value in values)


def message_bytes(message: Message) -> int:
    """Return how many bytes of content a message carries."""
    return _content(
        getattr(message, field.name) for field in fields(message) if field.name != "round"
    )


def _content(values: Iterable[object]) -> int:
    size = 0
    for value in values:
        if isinstance(value, tuple):
            size += _content(value)
        elif isinstance(value, bytes | str):
            size += len(value)
    return size
