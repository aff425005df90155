"""The ring: ciphertexts are multiplied from party to party, and the curator gets the product.

The curator holds the secret key, so it must never see one party's ciphertext. Party 1 encrypts its
cells, each next party multiplies its own in, and only the last one's product, which holds the sum
over all parties, goes to the curator. What travels in between is sealed (see `secure_sum`).

With zero-sum masks every contribution also carries a mask modulo n; the masks of all parties add up
to zero. Then a partial product is uniform even to a reader who can decrypt it: curator and ring
neighbours together see the total and nothing else.

A party's own ciphertexts do not depend on what comes in. `prepare` makes them ahead, so K parties
encrypt at the same time and the ring itself costs one multiplication per ciphertext.

One-share noise multiplies by E(u'_k)^pack(eta_k). The curator knows the n-th residue inside
E(u'_k), and could find that residue's power, hence eta, in the product's randomness if the blinding
had structure: h comes out of the curator's own key. So the party that hands the product over blinds
it with r^n, uniform whatever the key (`PowerBlinder`). Distributed noise needs no such care: it is
encrypted together with the counts, and the randomness of the product has nothing to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from common.crypto.paillier.blinding import FixedBase, PowerBlinder
from common.crypto.paillier.keys import Blinder, PrivateKey, PublicKey
from common.crypto.sums.masks import PairwiseMasks
from common.crypto.sums.plan import ContributionSubmitted, Noise, SumPlan
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource
from common.privacy.secret import Secret

TABLE_PAYS_FROM = 40
"""Ciphertexts; below, plain exponentiation is quicker than making a table of powers."""


class RingContributor:
    """One party's place in the ring. Holds its counts: secret."""

    def __init__(
        self,
        plan: SumPlan,
        *,
        name: str,
        values: NDArray[np.int64],
        noise: NDArray[np.int64],
        blinder: Blinder,
        masks: PairwiseMasks | None,
        selector: mpz | None,
        source: RandomSource,
    ) -> None:
        """Take what one party contributes.

        `values` and `noise` have shape (cells,); `selector` is E(u'_k), checked, for one-share
        noise. The source is for the last party's blinding.
        """
        if (masks is not None) != plan.zero_sum_masks:
            raise LocalError("the plan says whether a ring is masked")
        if (selector is not None) != (plan.noise is Noise.ONE_SHARE):
            raise LocalError("one-share noise, and only that, needs an entry of the selector")
        self._plan, self._key = plan, _key(plan)
        self._is_first = plan.predecessor(name) is None
        self._is_last = plan.successor(name) is None
        self._limit = plan.limit_of(name)
        self._values, self._noise, self._selector = Secret(values), Secret(noise), selector
        self._blinder, self._masks, self._source = blinder, masks, source
        self._prepared: dict[int, list[mpz]] | None = None

    def prepare(self) -> None:
        """Encrypt every chunk ahead of time; `contribute` then only multiplies."""
        if self._prepared is None:
            powers = self._selected_noise()
            chunks = range(self._plan.chunks)
            self._prepared = {chunk: self._encrypt(chunk, powers) for chunk in chunks}

    def contribute(self, chunk: int, incoming: bytes | None) -> bytes:
        """Return this party's ciphertexts of one chunk, times what came in; each chunk once."""
        if (incoming is None) != self._is_first:
            raise LocalError("the first party of the ring starts; every other one multiplies")
        count = self._plan.packing.plaintexts_for(_length(self._plan.cells_of(chunk)))
        received = [] if incoming is None else self._key.ciphertexts_from_bytes(incoming, count)
        self.prepare()
        prepared = self._prepared or {}
        if chunk not in prepared:
            raise LocalError(f"chunk {chunk} was contributed already")
        ciphertexts = prepared.pop(chunk)
        if received:
            ciphertexts = [self._key.add(a, b) for a, b in zip(ciphertexts, received, strict=True)]
        if self._is_last and self._selector is not None:
            ciphertexts = self._key.rerandomise(ciphertexts, PowerBlinder(self._key, self._source))
        return self._key.ciphertexts_to_bytes(ciphertexts)

    def _encrypt(self, chunk: int, powers: Sequence[mpz] | None) -> list[mpz]:
        """Return E(values + noise + mask), freshly blinded; one-share noise is a factor."""
        cells = self._plan.cells_of(chunk)
        packing = self._plan.packing
        added = self._values.reveal()[cells]
        if powers is None:
            added = added + self._noise.reveal()[cells]
        plaintexts = packing.pack(added, rows=self._limit, shares=1 if powers is None else 0)
        first = chunk * self._plan.chunk_ciphertexts
        if self._masks is not None:
            masks = self._masks.ring_masks(int(self._key.n), first=first, count=len(plaintexts))
            plaintexts = [a + b for a, b in zip(plaintexts, masks, strict=True)]
        encrypted = self._key.encrypt(plaintexts, self._blinder)
        if powers is None:
            return encrypted
        own_powers = powers[first : first + len(encrypted)]
        return [self._key.add(a, b) for a, b in zip(encrypted, own_powers, strict=True)]

    def _selected_noise(self) -> list[mpz] | None:
        """Return E(u'_k)^pack(eta_k) of every ciphertext: one exponentiation serves a pack."""
        if self._selector is None:
            return None
        packed = self._plan.packing.pack(self._noise.reveal(), rows=0, shares=1)
        if len(packed) < TABLE_PAYS_FROM:
            return [self._key.scale(self._selector, eta) for eta in packed]
        table = FixedBase(
            self._selector,
            modulus=self._key.n_squared,
            exponent_bits=self._key.plaintext_bits,
        )
        return [table.power(eta) for eta in packed]

    def __repr__(self) -> str:
        return f"RingContributor(secret, {self._plan.cells} cells)"


class RingCollector:
    """The curator's end of the ring: takes full products, and decrypts nothing else."""

    def __init__(self, plan: SumPlan, private_key: PrivateKey) -> None:
        if private_key.public_key != plan.public_key:
            raise LocalError("the curator's private key does not belong to the plan's public key")
        self._plan, self._private_key = plan, private_key
        self._totals: dict[int, NDArray[np.int64]] = {}

    def accept(self, message: ContributionSubmitted) -> None:
        """Take a chunk of the full product in, or raise RemoteProtocolError: no change."""
        last = self._plan.parties[-1]
        if message.sender != last:
            raise RemoteProtocolError(
                f"{message.sender!r} submitted to the curator; in this ring only {last!r} does"
            )
        if not 0 <= message.chunk < self._plan.chunks or message.chunk in self._totals:
            raise RemoteProtocolError(f"chunk {message.chunk} of {last!r} is not expected here")
        count = _length(self._plan.cells_of(message.chunk))
        packing = self._plan.packing
        product = self._private_key.public_key.ciphertexts_from_bytes(
            message.payload, packing.plaintexts_for(count)
        )
        plaintexts = self._private_key.decrypt(product)
        self._totals[message.chunk] = packing.unpack(plaintexts, count)

    def missing(self) -> list[str]:
        """Return the parties that have not sent everything."""
        complete = len(self._totals) == self._plan.chunks
        return [] if complete else [self._plan.parties[-1]]

    def total(self) -> NDArray[np.int64]:
        """Return the sum with its noise, shape (cells,), once nothing is missing."""
        return np.concatenate([self._totals[chunk] for chunk in range(self._plan.chunks)])


def _key(plan: SumPlan) -> PublicKey:
    if plan.public_key is None:
        raise LocalError("a ring needs the curator's public key")
    return plan.public_key


def _length(cells: slice) -> int:
    return int(cells.stop - cells.start)
