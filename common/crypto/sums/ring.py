"""The ring: ciphertexts are multiplied from party to party, and the curator gets the product.

The curator holds the secret key, so it must never see one party's ciphertext. Party 1 encrypts its
cells, each next party multiplies its own in, and only the last one's product, which holds the sum
over all parties, goes to the curator. What travels in between is sealed (`common.exchanges.ring`).

With zero-sum masks every contribution also carries a mask modulo n; the masks of all parties add up
to zero. Then a partial product is uniform even to a reader who can decrypt it: curator and ring
neighbours together see the total and nothing else.

A party's own ciphertexts do not depend on what comes in, and are made ahead: so K parties encrypt
at the same time and the ring itself costs one multiplication per ciphertext.

One-share noise multiplies by E(u'_k)^pack(eta_k). The curator knows the n-th residue inside
E(u'_k), and could find that residue's power, hence eta, in the product's randomness if the blinding
had structure: h comes out of the curator's own key. So the party that hands the product over blinds
it with r^n, uniform whatever the key (`PowerBlinder`). Distributed noise needs no such care: it is
encrypted together with the counts, and the randomness of the product has nothing to say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from common.crypto.identities.identity import LocalParty
from common.crypto.paillier.blinding import FixedBase, FixedBaseBlinder, PowerBlinder
from common.crypto.paillier.keys import Blinder, PrivateKey, PublicKey
from common.crypto.sums.one_share import Selection
from common.crypto.sums.plan import Noise, SumPlan, check_values, draw_noise
from common.crypto.sums.words import agreed_masks
from common.errors import LocalError
from common.privacy.randomness import RandomSource

TABLE_PAYS_FROM = 40
"""Ciphertexts; below, plain exponentiation is quicker than making a table of powers."""


class RingContributor:
    """One party's place in the ring: its ciphertexts, and what it passes on. Secret."""

    def __init__(
        self,
        plan: SumPlan,
        party: LocalParty,
        values: NDArray[np.int64],
        *,
        source: RandomSource,
        blinder: Blinder | None = None,
        selection: Selection | None = None,
    ) -> None:
        """Draw this party's noise, once, and encrypt it with its values, shape (cells,)."""
        check_values(plan, party.name, values)
        self._plan, self._key = plan, _key(plan)
        self._is_first = plan.predecessor(party.name) is None
        self._masks = agreed_masks(plan, party)
        selector = _selector_entry(plan, party.name, selection)
        noise = draw_noise(plan, source)
        blinder = default_blinder(plan, source) if blinder is None else blinder
        powers = None if selector is None else self._powers(selector, noise)
        added = values + noise if powers is None else values
        limit = plan.limit_of(party.name)
        self._ready = deque(
            self._encrypt(chunk, added, powers, limit, blinder) for chunk in range(plan.chunks)
        )
        hands_over = selector is not None and plan.successor(party.name) is None
        self._last_blinder = PowerBlinder(self._key, source) if hands_over else None

    @property
    def next_chunk(self) -> int:
        return self._plan.chunks - len(self._ready)

    @property
    def finished(self) -> bool:
        return not self._ready

    def contribute(self, incoming: bytes | None) -> bytes:
        """Return this party's ciphertexts of the next chunk, times what came in."""
        if (incoming is None) != self._is_first:
            raise LocalError("the first party of the ring starts; every other one multiplies")
        ciphertexts = self._ready[0]
        if incoming is not None:
            received = self._key.ciphertexts_from_bytes(incoming, len(ciphertexts))
            ciphertexts = self._products(ciphertexts, received)
        if self._last_blinder is not None:
            ciphertexts = self._key.rerandomise(ciphertexts, self._last_blinder)
        self._ready.popleft()
        return self._key.ciphertexts_to_bytes(ciphertexts)

    def _encrypt(
        self,
        chunk: int,
        added: NDArray[np.int64],
        powers: Sequence[mpz] | None,
        limit: int,
        blinder: Blinder,
    ) -> list[mpz]:
        """Return E(values + noise + mask), freshly blinded; one-share noise is a factor."""
        shares = 1 if powers is None else 0
        cells = added[self._plan.cells_of(chunk)]
        plaintexts = self._plan.packing.pack(cells, rows=limit, shares=shares)
        first = chunk * self._plan.chunk_ciphertexts
        if self._masks is not None:
            masks = self._masks.ring_masks(int(self._key.n), first=first, count=len(plaintexts))
            plaintexts = [a + b for a, b in zip(plaintexts, masks, strict=True)]
        encrypted = self._key.encrypt(plaintexts, blinder)
        if powers is None:
            return encrypted
        return self._products(encrypted, powers[first : first + len(encrypted)])

    def _products(self, some: Sequence[mpz], others: Sequence[mpz]) -> list[mpz]:
        return [self._key.add(a, b) for a, b in zip(some, others, strict=True)]

    def _powers(self, selector: mpz, noise: NDArray[np.int64]) -> list[mpz]:
        """Return E(u'_k)^pack(eta_k) of every ciphertext: one exponentiation serves a pack."""
        packed = self._plan.packing.pack(noise, rows=0, shares=1)
        if len(packed) < TABLE_PAYS_FROM:
            return [self._key.scale(selector, eta) for eta in packed]
        table = FixedBase(
            selector, modulus=self._key.n_squared, exponent_bits=self._key.plaintext_bits
        )
        return [table.power(eta) for eta in packed]

    def __repr__(self) -> str:
        return f"RingContributor(secret, {self._plan.cells} cells)"


def decrypted(plan: SumPlan, key: PrivateKey, chunk: int, product: bytes) -> NDArray[np.int64]:
    """Return the totals of a chunk of the full product: all that the curator decrypts."""
    cells = plan.cells_of(chunk)
    count = cells.stop - cells.start
    plaintexts = plan.packing.plaintexts_for(count)
    ciphertexts = key.public_key.ciphertexts_from_bytes(product, plaintexts)
    return plan.packing.unpack(key.decrypt(ciphertexts), count)


def ring_topic(plan: SumPlan, selection: Selection | None) -> str:
    """Return the topic of the envelopes of this sum: other plans, or selections, do not meet."""
    topic = f"secure sum {plan.digest.hex()}"
    return topic if selection is None else f"{topic} {selection.digest.hex()}"


def default_blinder(plan: SumPlan, source: RandomSource) -> Blinder:
    few = plan.packing.plaintexts_for(plan.cells) < TABLE_PAYS_FROM
    return (PowerBlinder if few else FixedBaseBlinder)(_key(plan), source)


def _selector_entry(plan: SumPlan, name: str, selection: Selection | None) -> mpz | None:
    """Return E(u'_k), checked, for one-share noise."""
    if plan.noise is not Noise.ONE_SHARE:
        return None
    if selection is None:
        raise LocalError("one-share noise needs the curator's selector and the parties' seed")
    place, parties = plan.place_of(name), len(plan.parties)
    return selection.entry(_key(plan), context=plan.digest, parties=parties, place=place)


def _key(plan: SumPlan) -> PublicKey:
    if plan.public_key is None:
        raise LocalError("a ring needs the curator's public key")
    return plan.public_key
