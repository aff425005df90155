"""Curators and parties that do not follow the protocol: what is refused, and with which cause."""

from fractions import Fraction

import gmpy2
import numpy as np
import pytest

from common.crypto.identities.envelope import EnvelopeError, Mailbox, Refusal
from common.crypto.identities.identity import LocalParty
from common.crypto.paillier.keys import PublicKey, generate_key_pair
from common.crypto.sums.one_share import SEED_BYTES, Selection, prove_selector
from common.crypto.sums.plan import Aggregation, Noise, SumPlan
from common.crypto.sums.ring import ring_topic
from common.errors import LocalError, RemoteProtocolError
from common.exchanges.masked import MASKED_INPUT
from common.exchanges.ring import ENVELOPE
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource
from common.privacy.secret import Secret
from common.study.sides import Post
from tests.harness.roles import (
    accept,
    delivered,
    run_secure_sum,
    sum_curator,
    sum_party,
    total_of,
)

NAMES = ("party-0", "party-1", "party-2")
CELLS = 250
COUNTS = np.arange(CELLS, dtype=np.int64)
SEED = Secret(bytes(SEED_BYTES))


def make_plan(key=None, **changes):
    fields = {
        "study": bytes(32),
        "step": 4,
        "parties": NAMES,
        "limits": (CELLS,) * 3,
        "cells": CELLS,
        "noise": Noise.DISTRIBUTED,
        "law": DiscreteLaplace(Fraction(20)),
        "aggregation": Aggregation.PAILLIER if key else Aggregation.MASKED,
        "public_key": key,
        "chunk_ciphertexts": 1,
    }
    return SumPlan(**{**fields, **changes})


@pytest.fixture
def plan(private_key):
    return make_plan(private_key.public_key)


@pytest.fixture
def members(identities):
    roster = {name: identity.public for name, identity in identities.items()}
    return {name: LocalParty(name=name, identity=identities[name], roster=roster) for name in NAMES}


@pytest.fixture
def start(members, blinder):
    def start_party(plan, name, *, selection=None):
        return sum_party(
            plan,
            members[name],
            COUNTS,
            source=SeededRandomSource(name),
            blinder=blinder,
            selection=selection,
        )

    return start_party


def forged(plan, member, recipient, payload):
    """What a party that really is in the ring seals, whatever it is."""
    mailbox = Mailbox(member, study=plan.study, step=plan.step)
    envelope = mailbox.seal(recipient, topic=ring_topic(plan, None), plaintext=payload)
    return delivered(Post(round=ENVELOPE, payload=(envelope,)), member.name)


def opened(plan, member, sender, post):
    mailbox = Mailbox(member, study=plan.study, step=plan.step)
    return mailbox.open(sender, topic=ring_topic(plan, None), envelope=post.payload[0])


def submitted(curator, sender, payload, *, chunk=0):
    accept(curator, sender, Post(round=MASKED_INPUT, payload=(chunk, payload)))


# A curator that wants no noise.


@pytest.mark.parametrize(
    ("entries", "cause"),
    [
        ((0, 0, 0), "add up to 1"),
        ((1, 1, 0), "add up to 1"),
        ((2, -1, 0), "entry 0 is an encryption of 0 or 1"),
        ((0, 1 << 17, 1 - (1 << 17)), "entry 1 is an encryption of 0 or 1"),
    ],
)
def test_one_share_a_curator_whose_selector_is_not_one_hot_is_detected(
    entries, cause, private_key, start
):
    key = private_key.public_key
    plan = make_plan(key, noise=Noise.ONE_SHARE)
    selector = prove_selector(
        private_key, entries, context=plan.digest, source=SeededRandomSource("cheat")
    ).to_bytes(key)
    with pytest.raises(RemoteProtocolError, match=cause):
        start(plan, "party-1", selection=Selection(selector=selector, seed=SEED))


def test_one_share_a_selector_of_another_sum_is_detected(private_key, start):
    key = private_key.public_key
    source = SeededRandomSource("curator")
    old = sum_curator(
        make_plan(key, noise=Noise.ONE_SHARE, step=3), private_key=private_key, source=source
    ).opening
    with pytest.raises(RemoteProtocolError, match="selector refused"):
        start(
            make_plan(key, noise=Noise.ONE_SHARE),
            "party-1",
            selection=Selection(selector=old, seed=SEED),
        )


@pytest.mark.parametrize("changed", ["selector", "seed"])
def test_one_share_neighbours_with_different_selections_do_not_understand_each_other(
    changed, private_key, start
):
    """Each selector is one-hot and proved, but party 1's, or its permutation, is another."""
    plan = make_plan(private_key.public_key, noise=Noise.ONE_SHARE)
    selectors = [
        sum_curator(plan, private_key=private_key, source=SeededRandomSource(place)).opening
        for place in ("one place", "another place")
    ]
    fields = {"selector": selectors[0], "seed": SEED}
    other = {"selector": selectors[1], "seed": Secret(b"\x01" * SEED_BYTES)}
    first = start(plan, "party-0", selection=Selection(**fields))
    fields[changed] = other[changed]
    second = start(plan, "party-1", selection=Selection(**fields))
    with pytest.raises(EnvelopeError) as caught:
        second.receive(delivered(first.begin()[0], "party-0"))
    assert caught.value.refusal is Refusal.WRONG_STEP


def test_distributed_a_curator_that_wants_no_noise_has_no_say(plan, private_key, identities):
    """Harmless: nothing that a curator sends goes into distributed noise."""
    curator = sum_curator(plan, private_key=private_key, source=SeededRandomSource(1))
    assert not curator.opening
    vectors = dict.fromkeys(NAMES, COUNTS)
    total = run_secure_sum(
        plan, vectors, identities, source=SeededRandomSource(2), private_key=private_key
    )
    assert (total - 3 * COUNTS).std() > 20


# A ring neighbour that sends something else.


def test_garbage_from_a_ring_neighbour_is_refused(plan, members, start):
    message = forged(plan, members["party-0"], "party-1", b"garbage" * 100)
    with pytest.raises(RemoteProtocolError, match="not Paillier ciphertexts of version 1"):
        start(plan, "party-1").receive(message)


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (lambda key: gmpy2.mpz(0), "not in 1..n\\^2-1"),
        (lambda key: key.n, "not coprime"),
        (lambda key: key.n_squared, "not in 1..n\\^2-1"),
    ],
)
def test_what_is_no_ciphertext_is_refused(value, cause, plan, members, start):
    payload = plan.public_key.ciphertexts_to_bytes([value(plan.public_key)])
    message = forged(plan, members["party-0"], "party-1", payload)
    with pytest.raises(RemoteProtocolError, match=cause):
        start(plan, "party-1").receive(message)


def test_too_many_ciphertexts_are_refused(plan, members, start, blinder):
    payload = plan.public_key.ciphertexts_to_bytes(plan.public_key.encrypt([1, 2], blinder))
    message = forged(plan, members["party-0"], "party-1", payload)
    with pytest.raises(RemoteProtocolError, match="expected 1 ciphertexts"):
        start(plan, "party-1").receive(message)


def test_ciphertexts_under_another_key_are_refused(plan, members, start):
    other = generate_key_pair(2048, SeededRandomSource("another key")).public_key
    payload = other.ciphertexts_to_bytes([gmpy2.mpz(2)])
    message = forged(plan, members["party-0"], "party-1", payload)
    with pytest.raises(RemoteProtocolError, match="another Paillier key"):
        start(plan, "party-1").receive(message)


def test_a_neighbour_that_leaves_the_others_out_makes_a_sum_that_is_refused(
    plan, private_key, members, start
):
    """Party 2 submits its own ciphertexts only: the others' masks are not in them."""
    curator = sum_curator(plan, private_key=private_key, source=SeededRandomSource(1))
    last = make_plan(private_key.public_key, parties=NAMES[::-1])  # here party 2 comes first
    (post, *_) = start(last, "party-2").begin()
    payload = opened(last, members["party-1"], "party-2", post)
    with pytest.raises(RemoteProtocolError, match="no sum of honest contributions"):
        submitted(curator, "party-2", payload)


def test_a_512_bit_key_is_refused():
    n = gmpy2.next_prime(3 << 254) * gmpy2.next_prime(7 << 253)
    with pytest.raises(RemoteProtocolError, match="the Paillier key has 512 bits"):
        PublicKey(n, gmpy2.powmod(-4, n, n * n))


def test_a_curator_with_another_private_key_cannot_run_the_plan(plan):
    other = generate_key_pair(2048, SeededRandomSource("another key"))
    with pytest.raises(LocalError, match="does not belong"):
        sum_curator(plan, private_key=other, source=SeededRandomSource(1))


# A curator that plays with the envelopes it relays.


def partials(party):
    """What the first party sends to the second."""
    return [delivered(post, "party-0") for post in party.begin()]


def test_replayed_and_reordered_partial_products_are_refused(plan, start):
    first, second, *_ = partials(start(plan, "party-0"))
    party = start(plan, "party-1")
    with pytest.raises(EnvelopeError) as caught:
        party.receive(second)
    assert caught.value.refusal is Refusal.REORDERED
    party.receive(first)
    with pytest.raises(EnvelopeError) as caught:
        party.receive(first)
    assert caught.value.refusal is Refusal.REPLAYED
    (post,) = party.receive(second)  # nothing was harmed
    assert post.to == "party-2"


def test_a_partial_product_of_another_party_or_step_is_refused(plan, start, private_key):
    (first, *_) = partials(start(plan, "party-0"))
    with pytest.raises(RemoteProtocolError, match="it expects one from 'party-1'"):
        start(plan, "party-2").receive(first)
    other = make_plan(private_key.public_key, step=5)
    (foreign, *_) = partials(start(other, "party-0"))
    with pytest.raises(EnvelopeError) as caught:
        start(plan, "party-1").receive(foreign)
    assert caught.value.refusal is Refusal.WRONG_STEP


def test_a_party_with_another_idea_of_the_plan_is_refused(plan, start, private_key):
    """A scale that differs is another plan, hence another place for envelopes."""
    other = make_plan(private_key.public_key, law=DiscreteLaplace(Fraction(2)))
    (message, *_) = partials(start(other, "party-0"))
    with pytest.raises(EnvelopeError) as caught:
        start(plan, "party-1").receive(message)
    assert caught.value.refusal is Refusal.WRONG_STEP


def test_a_partial_product_offered_to_whoever_starts_is_refused(plan, start):
    (message, *_) = partials(start(plan, "party-0"))
    with pytest.raises(RemoteProtocolError, match="it expects one from None"):
        start(plan, "party-0").receive(message)


# What the curator itself refuses.


def test_only_the_last_party_of_the_ring_submits(plan, private_key, blinder):
    curator = sum_curator(plan, private_key=private_key, source=SeededRandomSource(1))
    payload = plan.public_key.ciphertexts_to_bytes(plan.public_key.encrypt([1], blinder))
    with pytest.raises(RemoteProtocolError, match="is not expected in this step"):
        submitted(curator, "party-0", payload)


def test_an_unfinished_ring_has_no_total(plan, private_key):
    curator = sum_curator(plan, private_key=private_key, source=SeededRandomSource(1))
    assert not curator.done
    assert curator.waiting_for == ("party-0",)


def masked_messages(start, plan):
    return {name: start(plan, name).begin() for name in NAMES}


def test_masked_a_sum_waits_for_a_dropout_and_has_no_total_without_it(start):
    plan = make_plan()
    curator = sum_curator(plan, source=SeededRandomSource(1))
    messages = masked_messages(start, plan)
    for name in ("party-0", "party-2"):
        for message in messages[name]:
            accept(curator, name, message)
    assert not curator.done
    assert curator.waiting_for == ("party-1",)
    with pytest.raises(RemoteProtocolError, match="the masks do not cancel"):
        curator.result()


def test_masked_duplicates_change_nothing(start):
    plan = make_plan(noise=Noise.NONE, law=None)
    curator = sum_curator(plan, source=SeededRandomSource(1))
    for name, messages in masked_messages(start, plan).items():
        for message in messages:
            accept(curator, name, message)
            with pytest.raises(RemoteProtocolError, match="not expected in this step"):
                accept(curator, name, message)
    assert np.array_equal(total_of(curator, plan), 3 * COUNTS)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda words: {"payload": words[:-1]}, "no words of version 1"),
        (lambda words: {"payload": b"\x02" + words[1:]}, "no words of version 1"),
        (lambda words: {"chunk": 1}, "not expected in this step"),
        (lambda words: {"sender": "mallory"}, "not expected in this step"),
        (lambda words: {"payload": words[:1] + bytes(16) + words[17:]}, "another plan"),
    ],
)
def test_masked_malformed_words_are_refused(change, cause, start):
    plan = make_plan()
    curator = sum_curator(plan, source=SeededRandomSource(1))
    (message,) = start(plan, "party-0").begin()
    chunk, words = message.payload
    fields = {"sender": "party-0", "chunk": chunk, "payload": words}
    with pytest.raises(RemoteProtocolError, match=cause):
        submitted(curator, **{**fields, **change(words)})


def test_masked_words_that_do_not_cancel_are_refused(start):
    plan = make_plan()
    curator = sum_curator(plan, source=SeededRandomSource(1))
    messages = masked_messages(start, plan)
    garbage = messages["party-1"][0].payload[1]
    garbage = garbage[:17] + bytes(len(garbage) - 17)
    for name in ("party-0", "party-2"):
        accept(curator, name, messages[name][0])
    submitted(curator, "party-1", garbage)
    with pytest.raises(RemoteProtocolError, match="the masks do not cancel"):
        curator.result()
