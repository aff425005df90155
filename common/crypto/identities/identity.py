"""Who a party is: three key pairs, one file, and a fingerprint that can be read aloud.

An identity signs envelopes (Ed25519), opens envelopes (HPKE with the hybrid KEM ML-KEM-768 +
X25519, so that what the curator relays today cannot be opened by a quantum computer later), and
agrees on pairwise mask secrets with every other party (X25519). Each job has a key of its own: no
argument about one use of a key has to be made about another.

The study pins the fingerprint of every party. It is 160 bits of SHA-256 over ALL public keys, in
Crockford's base 32 (no I, L, O, U), in groups of four:

    4K7Q-0TZM-V2WD-91HX-ENB5-RR3C-Y8GA-6JPS

so an impostor of a party needs a second preimage (2^160 work), and two people can
compare it on the telephone. Nothing here reads or writes files: `common.crypto.key_files` does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import MLKEM768X25519PrivateKey, MLKEM768X25519PublicKey

from common.errors import InputError, LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource

SIGNATURE_BYTES = 64
_VERSION = b"\x01"
_CURVE_BYTES = 32
_MLKEM_SEED_BYTES = 64
_MLKEM_PUBLIC_BYTES = 1184
_PUBLIC_BYTES = 1 + 3 * _CURVE_BYTES + _MLKEM_PUBLIC_BYTES
_SECRET_BYTES = 1 + 3 * _CURVE_BYTES + _MLKEM_SEED_BYTES
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TO_CROCKFORD = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", _CROCKFORD)  # of RFC 4648
_FINGERPRINT_CHARACTERS = 32
_GROUP = 4


@dataclass(frozen=True, slots=True)
class PublicIdentity:
    """A party's public keys, as one versioned string of bytes."""

    encoded: bytes

    def __post_init__(self) -> None:
        if len(self.encoded) != _PUBLIC_BYTES or self.encoded[:1] != _VERSION:
            raise InputError(
                f"not a public identity: expected {_PUBLIC_BYTES} bytes of version "
                f"{_VERSION[0]}, got {len(self.encoded)}; ask the owner to export it again"
            )
        try:
            MLKEM768PublicKey.from_public_bytes(self._part(3))
        except ValueError as error:
            raise InputError("not a public identity: its ML-KEM-768 key is malformed") from error

    @classmethod
    def from_text(cls, text: object) -> PublicIdentity:
        """Read an identity in base64, as documents and identity.pub have it."""
        try:
            encoded = base64.b64decode(text, validate=True)  # type: ignore[arg-type]
        except (binascii.Error, TypeError, ValueError):
            raise InputError("identity is not base64") from None
        return cls(encoded)

    @property
    def text(self) -> str:
        return base64.b64encode(self.encoded).decode()

    def _part(self, index: int) -> bytes:
        start = 1 + index * _CURVE_BYTES
        return self.encoded[start : start + _CURVE_BYTES] if index < 3 else self.encoded[start:]

    @property
    def fingerprint(self) -> str:
        """160 bits of SHA-256 over every public key, in eight groups of four characters."""
        digest = hashlib.sha256(b"parley identity\0" + self.encoded).digest()
        characters = base64.b32encode(digest[: 5 * _FINGERPRINT_CHARACTERS // 8]).decode()
        return _grouped(characters.translate(_TO_CROCKFORD))

    def signed(self, message: bytes, *, signature: bytes) -> bool:
        """Return whether this is the identity's signature of the message."""
        try:
            Ed25519PublicKey.from_public_bytes(self._part(0)).verify(signature, message)
        except (ValueError, InvalidSignature):
            return False
        return True

    @property
    def agreement_key(self) -> X25519PublicKey:
        return X25519PublicKey.from_public_bytes(self._part(1))

    @property
    def sealing_key(self) -> MLKEM768X25519PublicKey:
        return MLKEM768X25519PublicKey(
            MLKEM768PublicKey.from_public_bytes(self._part(3)),
            X25519PublicKey.from_public_bytes(self._part(2)),
        )


class Identity:
    """A party's own keys. Never printed, pickled or logged."""

    __slots__ = ("_agreement", "_opening", "_seed", "_signing", "public")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != _SECRET_BYTES or secret[:1] != _VERSION:
            raise InputError(
                f"not an identity key: expected {_SECRET_BYTES} bytes of version {_VERSION[0]}, "
                f"got {len(secret)} bytes; is this the right file?"
            )
        seeds = [secret[1 + 32 * i : 33 + 32 * i] for i in range(3)]
        self._seed = secret
        self._signing = Ed25519PrivateKey.from_private_bytes(seeds[0])
        self._agreement = X25519PrivateKey.from_private_bytes(seeds[1])
        classical = X25519PrivateKey.from_private_bytes(seeds[2])
        quantum = MLKEM768PrivateKey.from_seed_bytes(secret[1 + 3 * _CURVE_BYTES :])
        self._opening = MLKEM768X25519PrivateKey(quantum, classical)
        self.public = PublicIdentity(
            _VERSION
            + self._signing.public_key().public_bytes_raw()
            + self._agreement.public_key().public_bytes_raw()
            + classical.public_key().public_bytes_raw()
            + quantum.public_key().public_bytes_raw()
        )

    @classmethod
    def generate(cls, source: RandomSource) -> Identity:
        """Make a new identity; `source` is the operating system's unless this is a test."""
        return cls(_VERSION + source.random_bytes(_SECRET_BYTES - 1))

    def to_secret_bytes(self) -> bytes:
        """Return the secret: for a key file and nothing else."""
        return self._seed

    def sign(self, message: bytes) -> bytes:
        return self._signing.sign(message)

    @property
    def opening_key(self) -> MLKEM768X25519PrivateKey:
        return self._opening

    def agree(self, peer: PublicIdentity) -> bytes:
        """Return the 32-byte X25519 secret shared with the peer: input of a KDF only."""
        try:
            return self.exchange(peer.agreement_key)
        except ValueError as error:  # a point of low order: the secret would be known to all
            raise RemoteProtocolError(
                f"identity {peer.fingerprint} offers an X25519 key of low order: "
                "its secrets would be public; refuse this party"
            ) from error

    def exchange(self, key: X25519PublicKey) -> bytes:
        """Return the X25519 secret shared with a key's holder; ValueError for a low order."""
        return self._agreement.exchange(key)

    def __repr__(self) -> str:
        return f"Identity({self.public.fingerprint})"

    def __reduce__(self) -> NoReturn:
        raise LocalError("an identity's secret keys are not pickled or copied")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSeeds:
    """The seeds of the boxes of key shares that two parties deal each other in a study."""

    opening: bytes = field(repr=False)  # drawn here: opens the boxes that the partner deals
    sealing: bytes = field(repr=False)  # drawn by the partner: seals the boxes dealt to it
    signature: bytes  # of the partner, under the seed that it drew


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalParty:
    """This side of a study: its name, its own keys, and the pinned identities of all parties."""

    name: str
    identity: Identity
    roster: Mapping[str, PublicIdentity]
    # Shared with each party, where more than the identities was agreed on (`sums.agreement`).
    secrets: Mapping[str, bytes] | None = field(default=None, repr=False)
    box_seeds: Mapping[str, BoxSeeds] = field(default_factory=dict, repr=False)
    _agreed: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.roster.get(self.name) != self.identity.public:
            raise LocalError(f"the study's roster pins another identity for {self.name!r}")

    def peer(self, name: str) -> PublicIdentity:
        if name not in self.roster:
            known = ", ".join(sorted(self.roster))
            raise LocalError(f"{name!r} is not in the study's roster: {known}")
        return self.roster[name]

    def agree(self, name: str) -> bytes:
        """Return the secret shared with a party, computed once: sums derive keys of it."""
        if self.secrets is not None:
            if name not in self.secrets:
                raise LocalError(f"{self.name!r} exchanged no seed with {name!r}")
            return self.secrets[name]
        if name not in self._agreed:
            self._agreed[name] = self.identity.agree(self.peer(name))
        return self._agreed[name]

    def seeds_with(self, name: str) -> BoxSeeds:
        if name not in self.box_seeds:
            raise LocalError(f"{self.name!r} exchanged no seeds of boxes with {name!r}")
        return self.box_seeds[name]


def normal_fingerprint(text: str) -> str:
    """Return a typed fingerprint in its normal form; raise InputError if it is none."""
    characters = text.upper().translate(str.maketrans("OIL", "011", "- \t"))
    if len(characters) != _FINGERPRINT_CHARACTERS or set(characters) - set(_CROCKFORD):
        raise InputError(
            f"not a fingerprint: {text!r}; expected {_FINGERPRINT_CHARACTERS} digits and letters "
            "without I, L, O, U, in groups of four"
        )
    return _grouped(characters)


def _grouped(characters: str) -> str:
    starts = range(0, len(characters), _GROUP)
    return "-".join(characters[start : start + _GROUP] for start in starts)
