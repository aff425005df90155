import dataclasses
from collections import Counter

import pytest

from common.crypto.identities.envelope import EnvelopeError
from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.sums.one_share import (
    Selection,
    Selector,
    agreed_permutation,
    make_selector,
    propose_seed,
    prove_selector,
    receive_seed,
)
from common.errors import RemoteProtocolError
from common.privacy.randomness import SeededRandomSource
from common.privacy.secret import Secret

PARTIES = 3
CONTEXT = b"a plan's digest"
NAMES = ("ada", "ben", "cyd")
PEOPLE = {name: Identity.generate(SeededRandomSource(name)) for name in NAMES}
ROSTER = {name: person.public for name, person in PEOPLE.items()}


def member(name):
    return LocalParty(name=name, identity=PEOPLE[name], roster=ROSTER)


@pytest.fixture(scope="module")
def selector(private_key):
    source = SeededRandomSource("selector")
    return make_selector(private_key, parties=PARTIES, context=CONTEXT, source=source)


def test_an_honest_selector_is_one_hot_and_verifies(selector, private_key, public_key):
    again = Selector.from_bytes(selector.to_bytes(public_key), public_key, PARTIES)
    assert again == selector
    again.verify(public_key, CONTEXT)
    assert sorted(private_key.decrypt(selector.ciphertexts)) == [0, 0, 1]


def test_every_place_is_chosen(private_key):
    chosen = Counter()
    source = SeededRandomSource("places")
    for _ in range(12):
        made = make_selector(private_key, parties=2, context=CONTEXT, source=source)
        chosen[private_key.decrypt(made.ciphertexts).index(1)] += 1
    assert set(chosen) == {0, 1}


def test_a_proof_holds_for_its_context_only(selector, public_key):
    with pytest.raises(RemoteProtocolError, match="entry 0"):
        selector.verify(public_key, b"another plan's digest")


def test_swapped_entries_do_not_verify(selector, public_key):
    swapped = dataclasses.replace(
        selector, ciphertexts=selector.ciphertexts[::-1], proofs=selector.proofs[::-1]
    )
    with pytest.raises(RemoteProtocolError, match="selector refused"):
        swapped.verify(public_key, CONTEXT)


def test_a_rerandomised_entry_does_not_verify(selector, public_key, blinder):
    first, *others = selector.ciphertexts
    changed = dataclasses.replace(
        selector, ciphertexts=(*public_key.rerandomise([first], blinder), *others)
    )
    with pytest.raises(RemoteProtocolError, match="entry 0"):
        changed.verify(public_key, CONTEXT)


def test_responses_that_share_a_factor_with_n_do_not_verify(selector, public_key):
    proof = dataclasses.replace(selector.proofs[0], responses=(public_key.n * 0, public_key.n * 0))
    changed = dataclasses.replace(selector, proofs=(proof, *selector.proofs[1:]))
    with pytest.raises(RemoteProtocolError, match="entry 0"):
        changed.verify(public_key, CONTEXT)


@pytest.mark.parametrize("entries", [(0, 0), (1, 1), (2, -1), (3, -2)])
def test_what_is_not_one_hot_cannot_be_proved(entries, private_key, public_key):
    source = SeededRandomSource(str(entries))
    made = prove_selector(private_key, entries, context=CONTEXT, source=source)
    with pytest.raises(RemoteProtocolError, match="selector refused"):
        made.verify(public_key, CONTEXT)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_truncated_selector_is_refused(cut, selector, public_key):
    with pytest.raises(RemoteProtocolError):
        Selector.from_bytes(selector.to_bytes(public_key)[:cut], public_key, PARTIES)


def test_a_selector_for_another_number_of_parties_is_refused(selector, public_key):
    with pytest.raises(RemoteProtocolError):
        Selector.from_bytes(selector.to_bytes(public_key), public_key, PARTIES + 1)


def test_all_parties_derive_the_same_permutation_and_each_sum_another():
    seed = bytes(32)
    orders = [
        tuple(agreed_permutation(seed, context=bytes([number]), parties=5)) for number in range(50)
    ]
    assert orders[0] == tuple(agreed_permutation(seed, context=bytes([0]), parties=5))
    assert all(sorted(order) == list(range(5)) for order in orders)
    assert len(set(orders)) > 30


def test_permutations_are_uniform():
    """3,000 sums, 6 permutations, 500 each expected; 6 sigma."""
    seed = bytes(32)
    counts = Counter(
        tuple(agreed_permutation(seed, context=number.to_bytes(2, "big"), parties=3))
        for number in range(3_000)
    )
    assert len(counts) == 6
    assert max(abs(count - 500) for count in counts.values()) < 6 * (500 * 5 / 6) ** 0.5


def test_the_seed_reaches_every_other_party_and_nobody_else():
    study = bytes(32)
    seed, envelopes = propose_seed(
        member("ada"), study=study, parties=NAMES, source=SeededRandomSource(1)
    )
    assert set(envelopes) == {"ben", "cyd"}
    for name, envelope in envelopes.items():
        received = receive_seed(member(name), study=study, proposer="ada", envelope=envelope)
        assert received.reveal() == seed.reveal()
        assert seed.reveal() not in envelope
    with pytest.raises(EnvelopeError):
        receive_seed(member("cyd"), study=study, proposer="ada", envelope=envelopes["ben"])


def test_a_seed_of_another_length_is_refused():
    with pytest.raises(RemoteProtocolError, match="32 bytes"):
        agreed_permutation(b"short", context=CONTEXT, parties=3)


def entry_of(selector, key, *, place, context=CONTEXT):
    selection = Selection(selector=selector.to_bytes(key), seed=Secret(bytes(32)))
    return selection.entry(key, context=context, parties=PARTIES, place=place)


def test_parties_that_share_a_process_verify_a_selector_once(selector, public_key, monkeypatch):
    verified = []

    def verify(self, key, context, really=Selector.verify):
        verified.append(context)
        really(self, key, context)

    monkeypatch.setattr(Selector, "verify", verify)
    entries = [entry_of(selector, public_key, place=place) for place in range(PARTIES)]
    assert sorted(entries) == sorted(selector.ciphertexts)
    assert len(verified) <= 1, "none if another test has verified it"


def test_what_was_verified_once_vouches_for_nothing_else(selector, private_key, public_key):
    entry_of(selector, public_key, place=0)
    with pytest.raises(RemoteProtocolError, match="entry 0"):
        entry_of(selector, public_key, place=0, context=b"another plan's digest")
    source = SeededRandomSource("forged")
    forged = prove_selector(private_key, [0, 0, 0], context=CONTEXT, source=source)
    for place in range(PARTIES):  # a refusal is not remembered as anything else, either
        with pytest.raises(RemoteProtocolError, match="add up to 1"):
            entry_of(forged, public_key, place=place)
