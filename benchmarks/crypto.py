"""Secure aggregation against one phe ciphertext per cell: `python -m benchmarks.crypto`.

Every figure is a ratio of two timings of one run, on one key, ours and the peer's in turn, so that
a busy machine slows both. A peer that would take minutes is timed on a slice and extrapolated. To
add a figure, write a function from `Bench` to `Figure`s and name it in `MEASUREMENTS`.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import phe
from numpy.typing import NDArray

from benchmarks.measuring import Row, keep, seconds_in_turn, show, verdict
from common.crypto.identities.identity import Identity
from common.crypto.paillier.blinding import FixedBaseBlinder, PowerBlinder
from common.crypto.paillier.keys import Blinder, PrivateKey, PublicKey, generate_key_pair
from common.crypto.paillier.packing import Packing
from common.crypto.sums.plan import Aggregation, Noise, SumPlan
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import OsRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from tests.harness.roles import run_secure_sum

CELLS, ROWS, PARTIES, NOISE_SCALE = 20_000, 45_222, 10, Fraction(60)
TURNS, SUM_TURNS, PEER_SLICE = 5, 3, 20


@dataclass(frozen=True)
class Bench:
    """What the measurements share."""

    private_key: PrivateKey
    packing: Packing
    counts: NDArray[np.int64]

    @classmethod
    def make(cls) -> Bench:
        """Make a 2048-bit key and one party's counts for a release of Adult's size."""
        private_key = generate_key_pair(2048, OsRandomSource())
        packing = Packing(
            plaintext_bits=private_key.public_key.plaintext_bits,
            rows=ROWS,
            parties=PARTIES,
            noise_bound=DiscreteLaplace(NOISE_SCALE).bound(PARTIES * CELLS),
        )
        counts = np.random.default_rng(1).integers(0, ROWS // PARTIES, CELLS)
        return cls(private_key, packing, counts)

    @property
    def public_key(self) -> PublicKey:
        """Of the private key."""
        return self.private_key.public_key


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One ratio; with a target, it is one we promise."""

    key: str
    what: str
    ours: str
    peer: str
    ratio: float
    target: float | None = None
    at_most: bool = False

    def line(self) -> Row:
        """Return what is printed."""
        met = ""
        if self.target is not None:
            met = verdict(self.ratio, target=self.target, at_most=self.at_most)
        line = {"what": self.what, "ours": self.ours, "peer": self.peer, "ratio": self.ratio}
        return line | {"target": met}


def in_turn(*tasks: Callable[[], object], turns: int = TURNS) -> list[float]:
    """Median seconds of each task, over turns in which each runs once."""
    return list(map(statistics.median, seconds_in_turn(*tasks, turns=turns)))


def packed_encryption(bench: Bench) -> list[Figure]:
    """Encrypting one party's counts: cells per second and bytes per cell."""
    key, packing, counts = bench.public_key, bench.packing, bench.counts
    peer_key = phe.PaillierPublicKey(int(key.n))
    peer_cells = [int(value) for value in counts[:PEER_SLICE]]
    source = OsRandomSource()
    blinder = FixedBaseBlinder(key, source)

    def encrypt(by: Blinder) -> bytes:
        packs = packing.pack(counts, rows=ROWS // PARTIES, shares=0)
        return key.ciphertexts_to_bytes(key.encrypt(packs, by))

    def peer() -> list[int]:
        return [peer_key.encrypt(cell).ciphertext(be_secure=False) for cell in peer_cells]

    *ours, theirs = in_turn(
        lambda: encrypt(blinder),
        lambda: encrypt(FixedBaseBlinder(key, source)),
        lambda: encrypt(PowerBlinder(key, source)),
        peer,
    )
    peer_rate = PEER_SLICE / theirs
    names = {
        "packed_encrypt_speedup": "encrypt, packed, h^s",
        "packed_encrypt_with_table_speedup": "encrypt, packed, h^s, making the table first",
        "packed_encrypt_power_speedup": "encrypt, packed, r^n",
    }
    figures = [
        Figure(
            key=name,
            what=what,
            ours=f"{CELLS / seconds:,.0f} cells/s",
            peer=f"{peer_rate:,.0f} cells/s",
            ratio=CELLS / seconds / peer_rate,
            target=500 if name == "packed_encrypt_speedup" else None,
        )
        for (name, what), seconds in zip(names.items(), ours, strict=True)
    ]
    return [*figures, _bytes_per_cell(len(encrypt(blinder)), bench)]


def _bytes_per_cell(sent: int, bench: Bench) -> Figure:
    return Figure(
        key="packed_bytes_ratio",
        what=f"bytes per cell, {bench.packing.slots} slots of {bench.packing.slot_bits} bits",
        ours=f"{sent / CELLS:.2f}",
        peer=f"{bench.public_key.ciphertext_bytes}",
        ratio=sent / CELLS / bench.public_key.ciphertext_bytes,
        target=1 / 50,
        at_most=True,
    )


def packed_decryption(bench: Bench) -> list[Figure]:
    """Decrypting and unpacking a release."""
    key = bench.public_key
    peer_public = phe.PaillierPublicKey(int(key.n))
    peer_key = phe.PaillierPrivateKey(peer_public, *bench.private_key.reveal_factors())
    peer_cells = [peer_public.encrypt(int(value)) for value in bench.counts[:PEER_SLICE]]
    packs = bench.packing.pack(bench.counts, rows=ROWS // PARTIES, shares=0)
    ciphertexts = key.encrypt(packs, FixedBaseBlinder(key, OsRandomSource()))
    ours, theirs = in_turn(
        lambda: bench.packing.unpack(bench.private_key.decrypt(ciphertexts), CELLS),
        lambda: [peer_key.decrypt(cell) for cell in peer_cells],
    )
    return [
        Figure(
            key="packed_decrypt_speedup",
            what="decrypt, packed",
            ours=f"{CELLS / ours:,.0f} cells/s",
            peer=f"{PEER_SLICE / theirs:,.0f} cells/s",
            ratio=CELLS / ours / (PEER_SLICE / theirs),
        )
    ]


def secure_sums(bench: Bench) -> list[Figure]:
    """Whole sums over all parties in one process, envelopes included, against the naive protocol.

    The naive protocol is the papers': one ciphertext per cell from each party, E(u)^eta for its
    noise, a product over the parties, one decryption per cell. A slice of its cells is timed.
    """
    identities = {f"party-{i}": Identity.generate(OsRandomSource()) for i in range(PARTIES)}
    vectors = dict.fromkeys(identities, bench.counts)

    def run(aggregation: Aggregation, noise: Noise) -> None:
        run_secure_sum(
            _sum_plan(bench, tuple(identities), aggregation, noise),
            vectors,
            identities,
            source=OsRandomSource(),
            private_key=bench.private_key,
        )

    ring, one_share, masked, slice_seconds = in_turn(
        lambda: run(Aggregation.PAILLIER, Noise.DISTRIBUTED),
        lambda: run(Aggregation.PAILLIER, Noise.ONE_SHARE),
        lambda: run(Aggregation.MASKED, Noise.DISTRIBUTED),
        lambda: _naive_sum(bench, PEER_SLICE),
        turns=SUM_TURNS,
    )
    naive = slice_seconds * CELLS / PEER_SLICE
    sums = (
        ("secure_sum_speedup", "distributed noise, masks", ring, naive, 100),
        ("secure_sum_one_share_speedup", "one-share noise, proof, masks", one_share, naive, 100),
        ("masked_speedup", "masked mode; the peer is our ring", masked, ring, 50),
    )
    return [
        Figure(
            key=key,
            what=f"sum over {PARTIES} parties, {what}",
            ours=f"{ours:,.3g} s",
            peer=f"{peer:,.4g} s",
            ratio=peer / ours,
            target=target,
        )
        for key, what, ours, peer, target in sums
    ]


def _sum_plan(
    bench: Bench, parties: tuple[str, ...], aggregation: Aggregation, noise: Noise
) -> SumPlan:
    return SumPlan(
        study=bytes(32),
        step=1,
        parties=parties,
        limits=(ROWS // PARTIES,) * PARTIES,
        cells=CELLS,
        noise=noise,
        law=DiscreteLaplace(NOISE_SCALE),
        aggregation=aggregation,
        public_key=bench.public_key if aggregation is Aggregation.PAILLIER else None,
    )


def _naive_sum(bench: Bench, cells: int) -> list[int]:
    """Run the papers' protocol on phe for some cells: the first party's share is used."""
    public = phe.PaillierPublicKey(int(bench.public_key.n))
    private = phe.PaillierPrivateKey(public, *bench.private_key.reveal_factors())
    selector = [public.encrypt(int(party == 0)) for party in range(PARTIES)]
    totals = [0] * cells
    for party in range(PARTIES):
        noise = discrete_laplace(NOISE_SCALE, cells, OsRandomSource())
        for cell in range(cells):
            count = public.encrypt(int(bench.counts[cell]))
            totals[cell] = totals[cell] + count + selector[party] * int(noise[cell])
    return [private.decrypt(total) for total in totals]


MEASUREMENTS: tuple[Callable[[Bench], list[Figure]], ...] = (
    packed_encryption,
    packed_decryption,
    secure_sums,
)


def main() -> None:
    """Take every measurement, print the table, and keep the figures."""
    bench = Bench.make()
    figures = [figure for measure in MEASUREMENTS for figure in measure(bench)]
    title = f"Secure aggregation of {CELLS:,} cells; the peer is one phe ciphertext per cell"
    machine = f"2048-bit key, {os.cpu_count()} cores, Python {platform.python_version()}"
    show([each.line() for each in figures], f"{title}; {machine}")
    keep("crypto", {each.key: each.ratio for each in figures})


if __name__ == "__main__":
    main()
