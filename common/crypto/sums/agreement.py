"""Pairwise secrets that recorded traffic does not give away, not even to a quantum computer.

Masks are as secret as the keys that they are derived from. An X25519 secret follows from two public
keys for whoever can compute discrete logarithms, so masks in traffic that is recorded today could
be taken off one day. Before the first step of a study, each party therefore draws a seed for every
partner that comes after it in the study and seals it to that partner's pinned key: an envelope,
whose KEM is the hybrid of ML-KEM-768 and X25519. The secret of the two is

    HKDF-SHA256(X25519 secret || seed; salt: the study's digest; info: both identities).

It is secret while X25519 is hard or ML-KEM-768 is, and it serves the whole study: every sum derives
keys of its own from it (`masks`). An envelope is bound to study, sender, recipient and topic and is
signed, so a changed, swapped or repeated one is refused. Which of two partners draws the seed does
not matter: neither gains by a seed of its choice, as it knows the secret of the two anyway.

Only parties that share a mask exchange seeds. A party that has seeds agrees with no other: a sum
that would need another partner fails instead of falling back to X25519 alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from common.crypto.framing import frame, unframe
from common.crypto.identities.envelope import Mailbox
from common.crypto.identities.identity import LocalParty
from common.crypto.sums.masks import derived_key
from common.errors import RemoteProtocolError
from common.privacy.randomness import RandomSource

SEED_BYTES = 32
_TOPIC = "pairwise seeds 1"


class SeedExchange:
    """One party's half, before the first step. Holds secrets; drop it when the secrets are made."""

    def __init__(
        self, party: LocalParty, study: bytes, before: Sequence[str], after: Sequence[str]
    ) -> None:
        """Take the partners that come before and after this party in the study, in order."""
        self._party, self._study = party, study
        self._before, self._after = before, after
        self._seeds: dict[str, bytes] = {}

    def offer(self, source: RandomSource) -> bytes:
        """Draw a seed for every later partner; return the envelopes, in order."""
        mailbox = Mailbox(self._party, study=self._study, step=0)
        self._seeds = {name: source.random_bytes(SEED_BYTES) for name in self._after}
        return frame(
            mailbox.seal(name, topic=_TOPIC, plaintext=seed) for name, seed in self._seeds.items()
        )

    def secrets(self, relayed: bytes) -> LocalParty:
        """Return the party with the secrets that it shares with its partners.

        `relayed` has the envelopes of the earlier partners, in order.

        Raises:
            RemoteProtocolError: an envelope is missing or was not made by its sender for this party
                and this study; nothing changed.
        """
        mailbox = Mailbox(self._party, study=self._study, step=0)
        envelopes = envelopes_in(relayed, count=len(self._before), what="earlier partners")
        seeds = dict(self._seeds)
        for name, envelope in zip(self._before, envelopes, strict=True):
            seeds[name] = mailbox.open(name, topic=_TOPIC, envelope=envelope)
            if len(seeds[name]) != SEED_BYTES:
                raise RemoteProtocolError(f"{name!r} sealed a seed of {len(seeds[name])} bytes")
        made = {name: self._secret(name, seed) for name, seed in seeds.items()}
        return replace(self._party, secrets=made)

    def _secret(self, partner: str, seed: bytes) -> bytes:
        ends = sorted(self._party.peer(name).encoded for name in (self._party.name, partner))
        info = frame(("parley pairwise secret 1", *ends))
        return derived_key(self._party.agree(partner) + seed, salt=self._study, info=info)

    def __repr__(self) -> str:
        return f"SeedExchange({self._party.name!r}, secret)"


def envelopes_in(payload: bytes, *, count: int, what: str) -> Sequence[bytes]:
    """Read so many envelopes, unopened; `what` says whose in errors."""
    try:
        envelopes = [field for field in unframe(payload) if isinstance(field, bytes)]
    except (ValueError, UnicodeDecodeError):
        envelopes = []
    if len(envelopes) != count or frame(envelopes) != payload:
        raise RemoteProtocolError(f"seeds of {what}: expected {count} sealed envelopes")
    return envelopes
