"""What curator and parties say to each other.

Messages are frozen values that check themselves. Each names its study by digest, so an answer to
one study can never be taken for an answer to another, and its step by number. Who sent a message is
not a field of it: in a deployment the sender is the holder of the certificate.

The payloads are bytes whose meaning the step gives: a chunk of the encrypted sum, a masked vector,
a party's own differentially private choice. What a step asks is not in any message: curator and
party each derive it from the study and the results published so far, and compare digests.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

from common.crypto.framing import frame
from common.errors import RemoteProtocolError
from common.study.ids import StudyId

DIGEST_BYTES = 32
MOST_TEXT = 2_000


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
    opening: bytes  # what the aggregation needs from the curator: E(u) for one-share noise
    missing: tuple[str, ...] = ()  # the parties that are out for the rest of the study, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeRelayed(_OfStep):
    """Curator to party: a sealed envelope from another party."""

    sender: str
    envelope: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPublished(_OfStep):
    """Curator to party: the noisy result of a step, the same to every party."""

    result: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysRelayed(_OfStep):
    """Curator to party: partners' keys and key shares of this sum; contribute to it.

    `missing` are the parties that dealt no keys, in the order of the study. Before the first step
    of a study with hybrid masks: partners' sealed seeds.
    """

    missing: tuple[str, ...]
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPublished(_OfStep):
    """Curator to party: the contributions are in, but for those of the missing; sign this list."""

    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignaturesRelayed(_OfStep):
    """Curator to party: partners' signatures under the list; reveal the mask shares it names."""

    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxDisputed(_OfStep):
    """Curator to party: a partner signed that it cannot open this party's box; answer for it."""

    receiver: str
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxJudged(_OfStep):
    """Curator to party: a dispute about a box, with all that is needed to see who is at fault."""

    dealer: str
    receiver: str
    evidence: bytes
    signature: bytes
    secret: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFinished(_OfStudy):
    """Curator to party: the release is made. Nothing more will be asked."""

    missing: tuple[str, ...] = ()  # the parties that left the study, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAborted(_OfStudy):
    """Curator to party: the study ended without a release."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopePosted(_OfStep):
    """Party to curator: pass this sealed envelope on."""

    recipient: str
    envelope: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSubmitted(_OfStep):
    """Party to curator: a chunk of the aggregate, safe for the curator's eyes."""

    chunk: int
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysDealt(_OfStep):
    """Party to curator: its key of this sum, and a sealed box of key shares for each partner.

    Before the first step of a study with hybrid masks: sealed seeds for partners.
    """

    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxRefused(_OfStep):
    """Party to curator: a partner's box of key shares does not open; signed."""

    dealer: str
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxOpened(_OfStep):
    """Party to curator: the secret of its own box for a partner that cannot open it."""

    receiver: str
    secret: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSigned(_OfStep):
    """Party to curator: its signature under the list of who is missing."""

    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MasksRevealed(_OfStep):
    """Party to curator: for each partner one share, of its own mask or of its key; never both."""

    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceSubmitted(_OfStep):
    """Party to curator: the outcome of a mechanism the party ran on its own rows."""

    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyRefused(_OfStep):
    """Party to curator: no. The study cannot go on."""

    reason: str

    def __post_init__(self) -> None:
        _OfStep.__post_init__(self)
        if len(self.reason) > MOST_TEXT:
            raise RemoteProtocolError(f"a reason has at most {MOST_TEXT} characters")


ToParty = (
    StudyOpened
    | StepOpened
    | EnvelopeRelayed
    | KeysRelayed
    | BoxDisputed
    | BoxJudged
    | ListPublished
    | SignaturesRelayed
    | ResultPublished
    | StudyFinished
    | StudyAborted
)
ToCurator = (
    EnvelopePosted
    | KeysDealt
    | BoxRefused
    | BoxOpened
    | ShareSubmitted
    | ListSigned
    | MasksRevealed
    | ChoiceSubmitted
    | PartyRefused
)
Message = ToParty | ToCurator


def message_digest(message: Message) -> bytes:
    """Return the SHA-256 of a message, by which a duplicate is recognised."""
    values = (getattr(message, field.name) for field in fields(message))
    framed = (frame(value) if isinstance(value, tuple) else value for value in values)
    return hashlib.sha256(frame((type(message).__name__, *framed))).digest()


def message_bytes(message: Message) -> int:
    """Return how many bytes of content a message carries."""
    values = (getattr(message, field.name) for field in fields(message))
    return sum(
        sum(map(len, value)) if isinstance(value, tuple) else len(value)
        for value in values
        if isinstance(value, bytes | str | tuple)
    )
