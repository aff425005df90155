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

**Where parties may go missing,** each of two partners draws a seed for the other. Both seeds are in
the secret of the two, in the order of their drawers' identities. The seed that a party drew for a
partner is also in the keys of the boxes that the partner deals to it (`boxes`). So that a dispute
about a box can be judged, the drawer signs its seed: envelopes hold a seed and that signature. A
party that is gone before it has offered seeds is left out of the whole study.

Only parties that share a mask exchange seeds. A party that has seeds agrees with no other: a sum
that would need another partner fails instead of falling back to X25519 alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from common.crypto.framing import frame, unframe
from common.crypto.identities.envelope import Mailbox
from common.crypto.identities.identity import (
    BoxSeeds,
    LocalParty,
    PublicIdentity,
)
from common.crypto.sums.masks import derived_key
from common.errors import RemoteProtocolError
from common.privacy.randomness import RandomSource

SEED_BYTES = 32
_TOPIC = "pairwise seeds 1"
_MUTUAL_TOPIC = "pairwise seeds 2"


class SeedExchange:
    """One party's half, before the first step. Holds secrets; drop it when the secrets are made."""

    def __init__(
        self, party: LocalParty, study: bytes, before: Sequence[str], after: Sequence[str]
    ) -> None:
        """Take whose seeds this party receives and for whom it draws seeds, in order.

        These are the partners before and after it in the study, or all of them both times.
        """
        self._party, self._study = party, study
        self._before, self._after = before, after
        self._mutual = list(before) == list(after)
        self._topic = _MUTUAL_TOPIC if self._mutual else _TOPIC
        self._seeds: dict[str, bytes] = {}

    def offer(self, source: RandomSource) -> bytes:
        """Draw the seeds; return the envelopes for the partners, in order."""
        mailbox = Mailbox(self._party, study=self._study, step=0)
        self._seeds = {name: source.random_bytes(SEED_BYTES) for name in self._after}
        return frame(
            mailbox.seal(name, topic=self._topic, plaintext=seed + self._signature(name, seed))
            for name, seed in self._seeds.items()
        )

    def _signature(self, partner: str, seed: bytes) -> bytes:
        if not self._mutual:
            return b""
        sender, peer = self._party.identity.public, self._party.peer(partner)
        return self._party.identity.sign(seed_statement(self._study, sender, peer, seed))

    def secrets(self, relayed: bytes, absent: Collection[str] = ()) -> LocalParty:
        """Return the party with the secrets that it shares with its partners.

        `relayed` has the envelopes of the partners that are there, in order; RemoteProtocolError if
        one is missing or was not made by its sender for this party and this study.
        """
        mailbox = Mailbox(self._party, study=self._study, step=0)
        senders = [name for name in self._before if name not in absent]
        envelopes = envelopes_in(relayed, count=len(senders), what="partners")
        words = {
            name: mailbox.open(name, topic=self._topic, envelope=envelope)
            for name, envelope in zip(senders, envelopes, strict=True)
        }
        if self._mutual:
            return self._with_box_seeds(words)
        for name, seed in words.items():
            if len(seed) != SEED_BYTES:
                raise RemoteProtocolError(f"{name!r} sealed a seed of {len(seed)} bytes")
        seeds = self._seeds | words
        return replace(
            self._party, secrets={name: self._secret(name, seeds[name]) for name in seeds}
        )

    def _with_box_seeds(self, words: dict[str, bytes]) -> LocalParty:
        """Return the party with the secrets of both seeds of each pair, and the seeds of boxes."""
        secrets, box_seeds = dict[str, bytes](), dict[str, BoxSeeds]()
        for name, word in words.items():
            seed, signature = word[:SEED_BYTES], word[SEED_BYTES:]
            peer, public = self._party.peer(name), self._party.identity.public
            if not is_drawn(self._study, peer, public, seed=seed, signature=signature):
                raise RemoteProtocolError(f"{name!r} did not sign the seed that it sealed")
            box_seeds[name] = BoxSeeds(opening=self._seeds[name], sealing=seed, signature=signature)
            pair = {public.encoded: self._seeds[name], peer.encoded: seed}
            secrets[name] = self._secret(name, b"".join(pair[end] for end in sorted(pair)))
        return replace(self._party, secrets=secrets, box_seeds=box_seeds)

    def _secret(self, partner: str, seeds: bytes) -> bytes:
        ends = sorted(self._party.peer(name).encoded for name in (self._party.name, partner))
        info = frame((f"parley pairwise secret {2 if self._mutual else 1}", *ends))
        return derived_key(self._party.agree(partner) + seeds, salt=self._study, info=info)

    def __repr__(self) -> str:
        return f"SeedExchange({self._party.name!r}, secret)"


def seed_statement(
    study: bytes, drawer: PublicIdentity, dealer: PublicIdentity, seed: bytes
) -> bytes:
    """Return what the drawer of a seed signs: the seed is in the keys of the dealer's boxes."""
    return frame(("parley box seed 1", study, drawer.encoded, dealer.encoded, seed))


def is_drawn(
    study: bytes, drawer: PublicIdentity, dealer: PublicIdentity, *, seed: bytes, signature: bytes
) -> bool:
    """Return whether the drawer signed this seed for the boxes of a dealer."""
    statement = seed_statement(study, drawer, dealer, seed)
    return len(seed) == SEED_BYTES and drawer.signed(statement, signature=signature)


def envelopes_in(payload: bytes, *, count: int, what: str) -> Sequence[bytes]:
    """Read so many envelopes, unopened; `what` says whose in errors."""
    try:
        envelopes = [field for field in unframe(payload) if isinstance(field, bytes)]
    except (ValueError, UnicodeDecodeError):
        envelopes = []
    if len(envelopes) != count or frame(envelopes) != payload:
        raise RemoteProtocolError(f"seeds of {what}: expected {count} sealed envelopes")
    return envelopes
