"""What the curator sees of a run, alone and with colluding parties, and what it can make of it."""

from fractions import Fraction

import numpy as np
import pytest
from gmpy2 import mpz

from common.crypto.identities.envelope import EnvelopeError, EnvelopeRoute, Mailbox, unseal
from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.sums.masks import PairwiseMasks
from common.crypto.sums.plan import Aggregation, Noise, SumPlan
from common.crypto.sums.ring import ring_topic
from common.errors import RemoteProtocolError
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource
from tests.harness.roles import run_secure_sum

NAMES = ("party-0", "party-1", "party-2")
CELLS = 300


def ring_plan(private_key, **changes):
    fields = {
        "study": bytes(32),
        "step": 1,
        "parties": NAMES,
        "limits": (1_000,) * 3,
        "cells": CELLS,
        "noise": Noise.DISTRIBUTED,
        "law": DiscreteLaplace(Fraction(20)),
        "aggregation": Aggregation.PAILLIER,
        "public_key": private_key.public_key,
        "chunk_ciphertexts": 1,
    }
    return SumPlan(**{**fields, **changes})


def record(plan, private_key, blinder, identities, seed="view"):
    generator = np.random.default_rng(7)
    vectors = {name: generator.integers(0, 1_000, CELLS) for name in NAMES}
    view = []
    total = run_secure_sum(
        plan,
        vectors,
        identities,
        source=SeededRandomSource(seed),
        private_key=private_key,
        blinder=blinder,
        curator_view=view,
    )
    return vectors, view, total


def opened(plan, identities, view, recipient):
    """The partial products inside the envelopes to one party, as that party reads them."""
    roster = {name: identity.public for name, identity in identities.items()}
    member = LocalParty(name=recipient, identity=identities[recipient], roster=roster)
    mailbox = Mailbox(member, study=plan.study, step=plan.step)
    payloads = [
        mailbox.open(post.sender, topic=ring_topic(plan, None), envelope=post.payload[0])
        for post in view
        if post.to == recipient
    ]
    return [plan.public_key.ciphertexts_from_bytes(payload, 1)[0] for payload in payloads]


def near(left, right, distance):
    return np.abs(left - right).max() <= distance


@pytest.mark.parametrize("noise", [Noise.DISTRIBUTED, Noise.ONE_SHARE])
@pytest.mark.parametrize("masks", [True, False])
def test_everything_the_curator_can_decrypt_is_the_noisy_sum(
    noise, masks, private_key, blinder, identities
):
    plan = ring_plan(private_key, noise=noise, zero_sum_masks=masks)
    vectors, view, total = record(plan, private_key, blinder, identities)
    submitted = [post.payload[1] for post in view if not post.to]
    sealed = [post.payload[0] for post in view if post.to]
    assert len(submitted) == plan.chunks
    assert len(sealed) == 2 * plan.chunks
    assert len(view) == len(submitted) + len(sealed)

    products = [plan.public_key.ciphertexts_from_bytes(chunk, 1)[0] for chunk in submitted]
    plaintexts = private_key.decrypt(products)
    assert np.array_equal(plan.packing.unpack(plaintexts, CELLS), total)

    width = plan.public_key.ciphertext_bytes
    windows = [
        mpz.from_bytes(envelope[start : start + width], "big") % plan.public_key.n_squared
        for envelope in sealed
        for start in range(0, len(envelope) - width + 1, 128)
    ]
    for plaintext in private_key.decrypt(windows):
        with pytest.raises(RemoteProtocolError, match="no sum of honest contributions"):
            plan.packing.unpack([plaintext], plan.chunk_cells)
    assert not np.array_equal(total, sum(vectors.values()))


def test_no_key_but_the_recipients_opens_what_the_curator_relays(private_key, blinder, identities):
    plan = ring_plan(private_key)
    _, view, _ = record(plan, private_key, blinder, identities)
    curator = Identity.generate(SeededRandomSource("curator"))
    post = next(post for post in view if post.to)
    route = EnvelopeRoute(
        study=plan.study,
        step=plan.step,
        topic=ring_topic(plan, None),
        sequence=0,
        sender=post.sender,
        recipient=post.to,
    )
    sender = identities[post.sender].public
    for outsider in (curator, identities["party-2"], identities["party-0"]):
        with pytest.raises(EnvelopeError):
            unseal(post.payload[0], route, sender=sender, recipient=outsider)


def test_without_masks_curator_and_neighbour_see_one_partys_counts(
    private_key, blinder, identities
):
    """The attack that zero-sum masks are for; it also shows that the next test has power."""
    plan = ring_plan(private_key, zero_sum_masks=False)
    vectors, view, _ = record(plan, private_key, blinder, identities)
    partials = private_key.decrypt(opened(plan, identities, view, "party-1"))
    counts = plan.packing.unpack(partials, CELLS)
    assert near(counts, vectors["party-0"], plan.noise_bound)


@pytest.mark.parametrize("neighbour", ["party-1", "party-2"])
def test_with_masks_curator_and_neighbour_see_uniform_partial_products(
    neighbour, private_key, blinder, identities
):
    plan = ring_plan(private_key)
    _, view, _ = record(plan, private_key, blinder, identities)
    partials = private_key.decrypt(opened(plan, identities, view, neighbour))
    for partial in partials:
        with pytest.raises(RemoteProtocolError, match="no sum of honest contributions"):
            plan.packing.unpack([partial], plan.chunk_cells)


def test_masked_partial_products_fill_the_whole_range(private_key, blinder, identities):
    """Plaintexts of 60 partial products: in each sixth of 0..n-1 as often as uniform ones are."""
    n = private_key.public_key.n
    shares = []
    for step in range(20):
        plan = ring_plan(private_key, step=step)
        _, view, _ = record(plan, private_key, blinder, identities, seed=step)
        partials = private_key.decrypt(opened(plan, identities, view, "party-1"))
        shares += [int(6 * (partial % n) // n) for partial in partials]
    observed = np.bincount(shares, minlength=6)
    assert len(shares) == 60
    assert observed.min() >= 2
    assert observed.max() <= 20


def test_curator_and_the_party_between_learn_only_the_total_of_the_others(
    private_key, blinder, identities
):
    """Party 1 tells the curator everything it knows, its masks with both others included."""
    plan = ring_plan(private_key, noise=Noise.NONE, law=None)
    vectors, view, total = record(plan, private_key, blinder, identities)
    roster = {name: identity.public for name, identity in identities.items()}
    traitor = LocalParty(name="party-1", identity=identities["party-1"], roster=roster)
    n = int(private_key.public_key.n)
    shared = PairwiseMasks.agree(
        traitor, plan_digest=plan.digest, order=plan.parties, colluders=plan.colluders
    )
    known = shared.ring_masks(n, first=0, count=plan.chunks)
    before = private_key.decrypt(opened(plan, identities, view, "party-1"))
    after = private_key.decrypt(opened(plan, identities, view, "party-2"))
    for guess in (
        *((b + k) % n for b, k in zip(before, known, strict=True)),
        *((b - k) % n for b, k in zip(before, known, strict=True)),
        *((a - k) % n for a, k in zip(after, known, strict=True)),
    ):
        signed = guess - n if 2 * guess > n else guess
        with pytest.raises(RemoteProtocolError):
            plan.packing.unpack([signed], plan.chunk_cells)
    assert np.array_equal(total - vectors["party-1"], vectors["party-0"] + vectors["party-2"])


def test_masked_words_of_one_party_are_uniform_to_the_curator(identities):
    """Constant counts go in; every bit of the words that come out is balanced within 6 sigma."""
    cells = 20_000
    plan = SumPlan(
        study=bytes(32),
        step=1,
        parties=NAMES,
        limits=(1_000,) * 3,
        cells=cells,
        noise=Noise.NONE,
        aggregation=Aggregation.MASKED,
    )
    view = []
    vectors = {name: np.full(cells, 7) for name in NAMES}
    source = SeededRandomSource(1)
    total = run_secure_sum(plan, vectors, identities, source=source, curator_view=view)
    assert np.array_equal(total, np.full(cells, 21))
    assert [post.sender for post in view] == list(NAMES)
    for post in view:
        words = np.frombuffer(post.payload[1][-8 * cells :], dtype=np.uint8)
        ones = np.unpackbits(words).reshape(cells, 64).sum(axis=0).astype(int)
        assert np.abs(ones - cells // 2).max() < 6 * np.sqrt(cells / 4)
        assert len(np.unique(words.view("<u8"))) == cells
