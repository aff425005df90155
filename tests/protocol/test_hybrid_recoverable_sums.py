"""Sums that may miss parties, under a hybrid agreement: what X25519 gives away, and what a key."""

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from common.crypto.framing import frame
from common.crypto.sums.masks import PairwiseMasks, derived_key
from common.crypto.sums.missing_lists import names_of
from common.crypto.sums.recovery import RecoverableParty, threshold_of
from common.crypto.sums.shamir import join
from common.crypto.sums.sum_keys import SumKey, own_mask_key, seed_of_sum
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import SeededRandomSource
from tests.protocol.test_recoverable_sums import NAMES, Table, members_of, plan_of

HYBRID = pytest.mark.parametrize("hybrid", [False, True])


class QuantumReader:
    """Has all traffic of a sum and every X25519 secret in it; `seeds` are those it was given."""

    def __init__(self, table, *, seeds=False):
        self.table, self.plan, self.seeds = table, table.plan, seeds

    def own_mask(self, name):
        """Return the seed of a party's own mask, from its boxes; None if they stay closed."""
        party, table = self.table.parties[name], self.table
        shares = {}
        for place, holder in enumerate(NAMES, start=1):
            if holder == name:
                continue
            box = table.curator._boxes[name, holder]
            own = X25519PrivateKey.from_private_bytes(party._box_secrets[holder])
            agreed = own.exchange(table.members[holder].roster[holder].agreement_key)
            seed = table.members[name].seeds_with(holder).sealing if self.seeds else b""
            opened = party._to(holder)._shares(box, agreed, seed)
            if opened is None:
                return None
            shares[place] = opened[0]
        return join(dict(list(shares.items())[: threshold_of(self.plan, name)]))

    def pair_mask(self, name, other):
        key = self.table.parties[name]._key
        seed = seed_of_sum(self.plan, self.table.members[name], other) if self.seeds else b""
        return key.mask_key(self.table.curator._keys[other], seed=seed, absent=())

    def unmasked(self, name, own_seed):
        """Take every mask that this reader can compute off a party's words."""
        place = NAMES.index(name)
        before = [self.pair_mask(name, other) for other in NAMES[:place]]
        after = [self.pair_mask(name, other) for other in NAMES[place + 1 :]]
        masks = PairwiseMasks(
            before=before, after=[*after, own_mask_key(self.plan, name, own_seed)]
        )
        words = np.frombuffer(self.table.words[name][0][17:], dtype="<u8")
        return (words - masks.word_masks(first=0, count=5)).view(np.int64)


@HYBRID
@pytest.mark.parametrize("name", NAMES)
def test_recorded_traffic_is_not_opened_by_all_x25519_secrets(identities, name, hybrid):
    """The same attack opens every word of a sum that rests on X25519 alone."""
    table = Table(identities, NAMES, hybrid=hybrid).until_words()
    reader, truth = QuantumReader(table), table.vectors[name]
    own_seed = reader.own_mask(name)
    assert (own_seed is None) is hybrid
    if not hybrid:
        assert np.array_equal(reader.unmasked(name, own_seed), truth)
        return
    # Even with its own mask opened, as in every finished sum, the masks of pairs stay on.
    own_seed = table.parties[name]._seed
    assert not np.any(reader.unmasked(name, own_seed) == truth)
    told = QuantumReader(table, seeds=True)
    assert told.own_mask(name) == own_seed
    assert np.array_equal(told.unmasked(name, own_seed), truth), "with the seeds it is easy"


def finish(table, missing):
    """Sign, reveal, and return the curator's total."""
    left = [name for name in NAMES if name not in missing]
    assert table.curator.close() == missing
    for name in left:
        table.curator.take_signature(name, table.parties[name].sign(missing))
    for name in left:
        shown = table.curator.signatures_for(name)
        table.curator.take_revealed(name, table.parties[name].reveal(shown))
    return table.curator.total()


def test_a_missing_partys_secret_gives_its_masks_of_this_sum_and_nothing_else(identities):
    table = Table(identities, NAMES, hybrid=True).until_words(silent=("party-1",))
    later = Table(identities, NAMES, hybrid=True, step=1).until_words()
    rest = [name for name in NAMES if name != "party-1"]
    expected = sum(table.vectors[name] for name in rest)
    assert np.array_equal(finish(table, ("party-1",)), expected)
    key = SumKey(table.plan, table.curator._opened("party-1"))
    member = table.members["party-1"]
    for other in rest:
        seed = seed_of_sum(table.plan, member, other)
        assert key.wrap(other, table.curator._wrapped["party-1", other]) == seed
        assert seed == seed_of_sum(table.plan, table.members[other], "party-1"), "both ends"
        # Not the seed of another sum, of another pair, or the secret that both derive from.
        of_later = seed_of_sum(later.plan, member, other)
        assert seed != of_later
        assert key.wrap(other, later.curator._wrapped["party-1", other]) != of_later
        for third in set(rest) - {other}:
            wrapped = table.curator._wrapped[other, third]
            assert key.wrap(third, wrapped) != seed_of_sum(table.plan, table.members[other], third)


def test_the_wrapped_seeds_of_a_party_tell_nothing_without_its_secret(identities):
    """Under a uniform secret a wrapped seed is any: two secrets share no pad and no key."""
    plan, seed = plan_of(NAMES, hybrid=True), bytes(range(32))
    keys = [SumKey(plan, SeededRandomSource(i).random_bytes(32)) for i in range(50)]
    wrapped = [key.wrap(name, seed) for key in keys for name in NAMES]
    assert len({*wrapped, *(key.public for key in keys)}) == 50 * (len(NAMES) + 1)
    bits = np.unpackbits(np.frombuffer(b"".join(wrapped), np.uint8))
    assert abs(bits.mean() - 0.5) < 5 / (2 * np.sqrt(len(bits)))


@pytest.mark.parametrize("missing", [(), ("party-1",)])
def test_a_wrong_wrapped_seed_keeps_a_sum_from_finishing_only_if_its_party_is_missing(
    identities, missing
):
    table = Table(identities, NAMES, hybrid=True)
    honest = table.parties["party-1"].offer
    table.parties["party-1"].offer = lambda: honest()[:-1] + bytes([honest()[-1] ^ 1])
    table.until_words(silent=missing)
    if missing:
        with pytest.raises(RemoteProtocolError, match="outside"):
            finish(table, missing)
    else:
        assert np.array_equal(finish(table, missing), sum(table.vectors.values()))


@pytest.mark.parametrize("change", [-1, 1, -32, 32, -96])
def test_an_offer_with_too_few_or_too_many_seeds_is_refused(identities, change):
    table = Table(identities, NAMES, hybrid=True)
    offer = table.parties["party-0"].offer()
    wrong = offer[:change] if change < 0 else offer + bytes(change)
    with pytest.raises(RemoteProtocolError, match="boxes of 'party-0'"):
        table.curator.take_offer("party-0", wrong)
    table.curator.take_offer("party-0", offer)


def test_a_party_without_seeds_of_a_partner_does_not_fall_back(identities):
    member = members_of(identities, NAMES)["party-0"]
    party = RecoverableParty(plan_of(NAMES, hybrid=True), member, source=SeededRandomSource("x"))
    with pytest.raises(LocalError, match="exchanged no seeds of boxes with 'party-1'"):
        party.offer()


def test_keys_of_a_sum_are_those_of_before_without_a_hybrid_agreement():
    """Studies of earlier versions go on: the dealt secret is the X25519 key itself."""
    plan, secret, other = plan_of(NAMES), bytes(range(32)), bytes(range(1, 33))
    key, peer = SumKey(plan, secret), SumKey(plan, other)
    own = X25519PrivateKey.from_private_bytes(secret)
    assert key.public == own.public_key().public_bytes_raw()
    mask = key.mask_key(peer.public, seed=b"", absent=())
    assert mask == peer.mask_key(key.public, seed=b"", absent=())
    secret = own.exchange(X25519PrivateKey.from_private_bytes(other).public_key())
    salt = hashlib.sha256(frame((plan.digest,))).digest()
    info = frame(("parley recoverable mask 1", *sorted([key.public, peer.public])))
    assert mask == derived_key(secret, salt=salt, info=info)
    assert key.mask_key(peer.public, seed=b"", absent=("party-3",)) != mask
    assert "secret" in repr(key)


def test_missing_parties_are_named_in_words():
    assert [names_of(names) for names in ((), ("a",), ("a", "b"))] == [
        "no party", "'a'", "'a', 'b'",
    ]  # fmt: skip
