"""Sealed envelopes: how one party speaks to another through a curator that must not listen.

Parties only dial out, so their messages travel through the curator. An envelope is sealed to the
recipient (HPKE base mode, RFC 9180, with the hybrid KEM ML-KEM-768 + X25519, HKDF-SHA256 and
AES-256-GCM) and signed by the sender (Ed25519). Both are bound to one `EnvelopeRoute`: the
study's digest, the step, the topic, the place in the sequence, and the full public identities of
sender and recipient. So an envelope means exactly one thing at exactly one place:

- the route is in HPKE's `info`: moved to another place, it does not open;
- the signature covers route and ciphertext: no other party can write one, and none can take
  another's sealed words and sign them as its own (the sender's identity is in `info` too);
- `Mailbox` accepts each sequence in order, once.

The curator learns sender, recipient and size. The clear header exists so that a refusal can name
its cause; nothing in it is believed before the signature holds.

Layout: version (1), length of header (2), header, signature (64), HPKE ciphertext.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from common.crypto.framing import frame, unframe
from common.crypto.identities.identity import SIGNATURE_BYTES, Identity, LocalParty, PublicIdentity
from common.errors import LocalError, RemoteProtocolError

STUDY_DIGEST_BYTES = 32
_VERSION = b"\x01"
_PREFIX_BYTES = 3
_SUITE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


class Refusal(enum.StrEnum):
    """Why an envelope was refused."""

    MALFORMED = "malformed"  # truncated, or not an envelope of this version
    FOREIGN_STUDY = "of another study"
    WRONG_STEP = "of another step or topic"
    MISDIRECTED = "between other parties"  # swapped: another sender or recipient
    REPLAYED = "replayed"
    REORDERED = "out of order"
    FORGED = "not signed by its sender"  # altered, or written by another party
    UNREADABLE = "not sealed to this recipient for this place"


class EnvelopeError(RemoteProtocolError):
    """An envelope was refused; `refusal` is the cause. The mailbox did not change."""

    def __init__(self, refusal: Refusal, detail: str) -> None:
        super().__init__(f"envelope refused: {refusal.value}: {detail}")
        self.refusal = refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeRoute:
    """The one place an envelope belongs to."""

    study: bytes
    step: int  # the number of the step
    topic: str  # what the step's parties exchange, with its digest: a sum, a joint computation
    sequence: int
    sender: str
    recipient: str

    def __post_init__(self) -> None:
        if len(self.study) != STUDY_DIGEST_BYTES:
            raise LocalError(f"a study digest has {STUDY_DIGEST_BYTES} bytes")
        if self.step < 0 or self.sequence < 0:
            raise LocalError("steps and sequences count from 0")
        if self.sender == self.recipient:
            raise LocalError(f"{self.sender!r} does not write to itself")

    def header(self) -> bytes:
        """Return the route as bytes, injectively."""
        return frame(
            (self.study, self.step, self.topic, self.sequence, self.sender, self.recipient)
        )


def seal(
    plaintext: bytes, route: EnvelopeRoute, *, sender: Identity, recipient: PublicIdentity
) -> bytes:
    """Return an envelope that only `recipient` can open, only from `sender`, only at `route`."""
    header = route.header()
    context = _context(header, sender.public, recipient)
    sealed = _SUITE.encrypt(plaintext, recipient.sealing_key, info=context)
    signature = sender.sign(frame((context, sealed)))
    return _VERSION + len(header).to_bytes(2, "big") + header + signature + sealed


def unseal(
    envelope: bytes, route: EnvelopeRoute, *, sender: PublicIdentity, recipient: Identity
) -> bytes:
    """Return what `sender` sealed for `route`, or raise EnvelopeError with the cause."""
    header, signature, sealed = _split(envelope)
    if header != route.header():
        raise _difference(header, route)
    context = _context(header, sender, recipient.public)
    if not sender.signed(frame((context, sealed)), signature=signature):
        raise EnvelopeError(
            Refusal.FORGED, f"it claims to come from {route.sender!r}; it was altered or forged"
        )
    try:
        return _SUITE.decrypt(sealed, recipient.opening_key, info=context)
    except (InvalidTag, ValueError) as error:
        raise EnvelopeError(
            Refusal.UNREADABLE, f"{route.recipient!r} cannot open what {route.sender!r} sent"
        ) from error


class Mailbox:
    """One party's envelopes of one step: numbered as they leave, accepted in order and once."""

    def __init__(self, party: LocalParty, *, study: bytes, step: int) -> None:
        self._party, self._study, self._step = party, study, step
        self._sent: dict[tuple[str, str], int] = {}
        self._received: dict[tuple[str, str], int] = {}

    def seal(self, recipient: str, *, topic: str, plaintext: bytes) -> bytes:
        """Seal the next envelope to this recipient on this topic."""
        sequence = self._sent.get((recipient, topic), 0)
        route = self._route(topic, sequence, sender=self._party.name, recipient=recipient)
        peer = self._party.peer(recipient)
        envelope = seal(plaintext, route, sender=self._party.identity, recipient=peer)
        self._sent[recipient, topic] = sequence + 1
        return envelope

    def open(self, sender: str, *, topic: str, envelope: bytes) -> bytes:
        """Open this sender's next message on this topic, or raise EnvelopeError: no change."""
        sequence = self._received.get((sender, topic), 0)
        route = self._route(topic, sequence, sender=sender, recipient=self._party.name)
        plaintext = unseal(
            envelope, route, sender=self._party.peer(sender), recipient=self._party.identity
        )
        self._received[sender, topic] = sequence + 1
        return plaintext

    def _route(self, topic: str, sequence: int, *, sender: str, recipient: str) -> EnvelopeRoute:
        return EnvelopeRoute(
            study=self._study, step=self._step, topic=topic, sequence=sequence, sender=sender,
            recipient=recipient,
        )  # fmt: skip


def _context(header: bytes, sender: PublicIdentity, recipient: PublicIdentity) -> bytes:
    return frame(("parley envelope 1", header, sender.encoded, recipient.encoded))


def _split(envelope: bytes) -> tuple[bytes, bytes, bytes]:
    if envelope[:1] != _VERSION or len(envelope) < _PREFIX_BYTES:
        raise EnvelopeError(Refusal.MALFORMED, "it does not start like a version 1 envelope")
    header_end = _PREFIX_BYTES + int.from_bytes(envelope[1:_PREFIX_BYTES], "big")
    signature_end = header_end + SIGNATURE_BYTES
    if len(envelope) < signature_end + KEM.MLKEM768_X25519.enc_length():
        raise EnvelopeError(Refusal.MALFORMED, f"it ends after {len(envelope)} bytes")
    return (
        envelope[_PREFIX_BYTES:header_end],
        envelope[header_end:signature_end],
        envelope[signature_end:],
    )


def _difference(header: bytes, expected: EnvelopeRoute) -> EnvelopeError:
    """Name the cause when the header is not the one expected here; it is not yet believed."""
    try:
        fields = unframe(header)
    except ValueError:
        fields = []
    match fields:
        case [bytes(study), int(step), str(topic), int(sequence), str(sender), str(recipient)]:
            pass
        case _:
            return EnvelopeError(Refusal.MALFORMED, "its header is not a route")
    if study != expected.study:
        return EnvelopeError(Refusal.FOREIGN_STUDY, f"digest {study.hex()[:16]}...")
    if (sender, recipient) != (expected.sender, expected.recipient):
        return EnvelopeError(
            Refusal.MISDIRECTED,
            f"from {sender!r} to {recipient!r}, expected here: "
            f"from {expected.sender!r} to {expected.recipient!r}",
        )
    if (step, topic) != (expected.step, expected.topic):
        return EnvelopeError(
            Refusal.WRONG_STEP,
            f"step {step} topic {topic!r}, expected here: "
            f"step {expected.step} topic {expected.topic!r}",
        )
    refusal = Refusal.REPLAYED if sequence < expected.sequence else Refusal.REORDERED
    return EnvelopeError(refusal, f"number {sequence}, expected {expected.sequence}")
