"""What one ciphertext, or one masked word, costs on this machine: measured, on made-up numbers.

A small secure sum is run with the study's own kind of aggregation, key size and noise. Its messages
tell how many bytes a chunk is wrapped in; its time tells what a unit takes. No data is touched.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from common.crypto.identities.identity import Identity, Member
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.crypto.paillier.keys import PrivateKey, PublicKey, generate_key_pair
from common.crypto.sums.one_share import propose_seed
from common.crypto.sums.plan import (
    Aggregation,
    ContributionSubmitted,
    PartialForwarded,
    SumMessage,
    SumPlan,
)
from common.crypto.sums.secure_sum import SumCurator, run_secure_sum
from common.privacy.laplace import DiscreteLaplace
from common.privacy.randomness import OsRandomSource, RandomSource
from common.study.document import Study
from common.study.sums import needs_key

_MOST_PARTIES = 6  # more make masks a little dearer, and the measurement much
_CIPHERTEXTS = 64
_WORDS = 1 << 17
_WORD_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCosts:
    """What units cost; a unit is a ciphertext, or a word of 64 bits where nothing is encrypted.

    Attributes:
        public_key: what the curator's key would look like; None if it needs none.
        unit_bytes: of a unit on its way.
        chunk_bytes: around the units of a chunk for the curator.
        envelope_bytes: around a chunk for another party, on top of those.
        seed_bytes: of the envelope in which a party is told the permutation of one-share noise.
        opening_bytes: what the curator sends a party to open a sum, for each party in it.
        setup_s: once, for the curator's key.
        party_unit_s: a party's work on a unit.
        curator_unit_s: the curator's.
    """

    public_key: PublicKey | None
    unit_bytes: int
    chunk_bytes: int
    envelope_bytes: int
    seed_bytes: int
    opening_bytes: int
    setup_s: float
    party_unit_s: float
    curator_unit_s: float

    def units(self, plan: SumPlan, cells: int) -> int:
        """How many units some cells of a sum are."""
        return cells if self.public_key is None else plan.packing.plaintexts_for(cells)


def measure(study: Study) -> UnitCosts:
    """Run a small sum as the study would, and look at the clock and at the messages."""
    source = OsRandomSource()
    key = generate_key_pair(study.key_bits, source) if needs_key(study) else None
    plan = _plan(study, None if key is None else key.public_key)
    started = time.perf_counter()
    blinder = None if key is None else FixedBaseBlinder(key.public_key, source)
    setup_s = time.perf_counter() - started
    view: list[SumMessage] = []
    zeros = np.zeros(plan.cells, np.int64)
    identities = {name: Identity.generate(source) for name in plan.parties}
    started = time.perf_counter()
    run_secure_sum(
        plan,
        dict.fromkeys(plan.parties, zeros),
        identities,
        source=source,
        private_key=key,
        blinder=blinder,
        curator_view=view,
    )
    whole_s = time.perf_counter() - started
    units = plan.cells if key is None else plan.packing.plaintexts_for(plan.cells)
    curator_s = _decryption_s(key, units, source)
    unit_bytes = _WORD_BYTES if key is None else key.public_key.ciphertext_bytes
    submitted = [each for each in view if isinstance(each, ContributionSubmitted)]
    forwarded = [each for each in view if isinstance(each, PartialForwarded)]
    chunk = sum(len(each.payload) for each in submitted) / len(submitted)
    selector = SumCurator(plan, private_key=key, source=source).selector or b""
    return UnitCosts(
        public_key=None if key is None else key.public_key,
        unit_bytes=unit_bytes,
        chunk_bytes=round(chunk - unit_bytes * units / plan.chunks),
        envelope_bytes=_envelope_bytes(forwarded, chunk),
        seed_bytes=_seed_bytes(plan, identities, source),
        opening_bytes=-(-len(selector) // len(plan.parties)),
        setup_s=setup_s,
        party_unit_s=max(0.0, whole_s - curator_s) / (units * len(plan.parties)),
        curator_unit_s=curator_s / units,
    )


def _envelope_bytes(forwarded: Sequence[PartialForwarded], chunk: float) -> int:
    """What an envelope adds to a chunk; nothing is forwarded where there is no ring."""
    if not forwarded:
        return 0
    return round(sum(len(each.envelope) for each in forwarded) / len(forwarded) - chunk)


def _seed_bytes(plan: SumPlan, identities: Mapping[str, Identity], source: RandomSource) -> int:
    first = plan.parties[0]
    roster = {name: identity.public for name, identity in identities.items()}
    member = Member(name=first, identity=identities[first], roster=roster)
    _, envelopes = propose_seed(member, study=plan.study, parties=plan.parties, source=source)
    return max((len(envelope) for envelope in envelopes.values()), default=0)


def _plan(study: Study, key: PublicKey | None) -> SumPlan:
    """A sum like the study's, of about two chunks."""
    members = study.members[:_MOST_PARTIES]

    def plan(cells: int) -> SumPlan:
        return SumPlan(
            study=study.digest,
            round=0,
            parties=tuple(member.name for member in members),
            limits=tuple(member.rows for member in members),
            cells=cells,
            noise=study.noise,
            law=DiscreteLaplace(Fraction(20)),
            colluders=min(study.colluders, len(members) - 1),
            aggregation=study.aggregation,
            public_key=key,
            zero_sum_masks=study.profile == "sound",
        )

    if study.aggregation is not Aggregation.PAILLIER:
        return plan(_WORDS)
    return plan(plan(1).packing.slots * _CIPHERTEXTS - plan(1).packing.slots)


def _decryption_s(key: PrivateKey | None, units: int, source: RandomSource) -> float:
    if key is None:
        return 0.0
    public = key.public_key
    encrypted = public.encrypt([1] * units, FixedBaseBlinder(public, source))
    started = time.perf_counter()
    key.decrypt(encrypted)
    return time.perf_counter() - started
