"""Pairwise masks add up to zero, and enough pairs share one that no coalition takes them off."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.sums.masks import LEAST_CONNECTIVITY, PairwiseMasks, partners
from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource

ORDER = ("dan", "ada", "cyd", "ben")
PEOPLE = {name: Identity.generate(SeededRandomSource(name)) for name in ORDER}
ROSTER = {name: person.public for name, person in PEOPLE.items()}
PLAN = bytes(32)
MODULUS = (1 << 2047) + 5


def masks_of(name, *, plan=PLAN, order=ORDER):
    member = LocalParty(name=name, identity=PEOPLE[name], roster=ROSTER)
    return PairwiseMasks.agree(member, plan_digest=plan, order=order, colluders=1)


@pytest.mark.parametrize("parties", [1, 2, 3, 4])
def test_masks_add_up_to_zero(parties):
    order = ORDER[:parties]
    masks = [masks_of(name, order=order) for name in order]
    columns = zip(*(m.ring_masks(MODULUS, first=3, count=5) for m in masks), strict=True)
    assert [sum(column) % MODULUS for column in columns] == [0] * 5
    words = sum(m.word_masks(first=2, count=1001) for m in masks)
    assert not words.any()


def test_any_part_of_the_stream_can_be_made_alone():
    masks = masks_of("ada")
    whole = masks.ring_masks(MODULUS, first=0, count=6)
    assert masks.ring_masks(MODULUS, first=4, count=2) == whole[4:]
    words = masks.word_masks(first=0, count=100)
    assert np.array_equal(masks.word_masks(first=40, count=60), words[40:])


def test_another_plan_has_unrelated_masks():
    assert masks_of("ada").ring_masks(MODULUS, first=0, count=1) != masks_of(
        "ada", plan=b"\x01" * 32
    ).ring_masks(MODULUS, first=0, count=1)


def test_masks_fill_the_whole_range():
    """Bits of words and top bits of ring masks are balanced: 20,000 draws, 6 sigma."""
    words = masks_of("ada").word_masks(first=0, count=20_000)
    ones = np.unpackbits(words.view(np.uint8)).reshape(20_000, 64).sum(axis=0).astype(int)
    assert np.abs(ones - 10_000).max() < 6 * np.sqrt(5_000)
    ring = masks_of("ada").ring_masks(MODULUS, first=0, count=2_000)
    high = sum(value > MODULUS // 2 for value in ring)
    assert abs(high - 1_000) < 6 * np.sqrt(500)


def test_the_word_and_ring_streams_never_meet():
    masks = masks_of("ada", order=("ada", "ben"))
    word = int(masks.word_masks(first=0, count=2)[0])
    ring = masks.ring_masks(1 << 2048, first=0, count=1)[0]
    assert word.to_bytes(8, "little") not in ring.to_bytes(256, "big")


def test_a_stream_is_entered_at_a_block_boundary():
    with pytest.raises(LocalError, match="block boundary"):
        masks_of("ada").word_masks(first=1, count=2)


def test_a_party_outside_the_sum_has_no_masks():
    with pytest.raises(LocalError, match="takes no part"):
        masks_of("ben", order=ORDER[:3])


def edges(parties, colluders):
    return {
        (min(place, other), max(place, other))
        for place in range(parties)
        for other in partners(place, parties=parties, colluders=colluders)
    }


def connected(left, graph):
    """Brute force: whoever is reached from the first of those who are left."""
    reached, waiting = set(), list(left)[:1]
    while waiting:
        here = waiting.pop()
        reached.add(here)
        waiting += [b for a, b in graph if a == here and b in left and b not in reached]
        waiting += [a for a, b in graph if b == here and a in left and a not in reached]
    return reached == set(left)


@given(st.integers(1, 300), st.integers(0, 80), st.data())
def test_partnership_is_mutual_and_nobody_has_too_few(parties, colluders, data):
    place = data.draw(st.integers(0, parties - 1))
    own = partners(place, parties=parties, colluders=colluders)
    assert place not in own
    assert own == sorted(set(own))
    assert all(place in partners(other, parties=parties, colluders=colluders) for other in own)
    assert len(own) >= min(parties - 1, max(colluders + 1, LEAST_CONNECTIVITY))
    assert len(own) <= max(colluders + 2, LEAST_CONNECTIVITY), "more would be paid for in vain"


@pytest.mark.parametrize("parties", range(2, 11))
def test_no_coalition_that_the_study_tolerates_cuts_the_others_apart(parties, monkeypatch):
    monkeypatch.setattr("common.crypto.sums.masks.LEAST_CONNECTIVITY", 1)
    for colluders in range(parties - 1):
        graph = edges(parties, colluders)
        for coalition in combinations(range(parties), colluders):
            assert connected(set(range(parties)) - set(coalition), graph)


def test_the_bound_is_tight_so_this_test_can_see_a_cut(monkeypatch):
    monkeypatch.setattr("common.crypto.sums.masks.LEAST_CONNECTIVITY", 1)
    neighbours = partners(0, parties=10, colluders=3)
    assert len(neighbours) == 4
    assert not connected(set(range(10)) - set(neighbours), edges(10, 3))


def test_up_to_33_parties_everybody_has_everybody_as_a_partner():
    assert all(len(partners(place, parties=33, colluders=1)) == 32 for place in range(33))
    assert len(partners(0, parties=1_000, colluders=1)) == 32
    assert len(partners(0, parties=1_000, colluders=40)) == 42
    assert len(partners(0, parties=50, colluders=49)) == 49


@pytest.mark.parametrize("connectivity", [0, 2])
def test_honest_vectors_are_uniform_given_their_total_iff_the_rest_is_connected(
    connectivity, monkeypatch
):
    """All masks modulo 3 of six parties, two of them colluding: every outcome, counted."""
    monkeypatch.setattr("common.crypto.sums.masks.LEAST_CONNECTIVITY", 1)
    honest = (0, 1, 3, 4)  # 2 and 5 collude: on a plain circle they cut it in two
    graph = [e for e in sorted(edges(6, connectivity)) if set(e) <= set(honest)]
    outcomes = Counter()
    for masks in product(range(3), repeat=len(graph)):
        shifts = dict.fromkeys(honest, 0)
        for (first, second), mask in zip(graph, masks, strict=True):
            shifts[first] += mask
            shifts[second] -= mask
        outcomes[tuple(shifts[place] % 3 for place in honest)] += 1
    zero_sum = {v for v in product(range(3), repeat=4) if sum(v) % 3 == 0}
    assert set(outcomes) <= zero_sum
    uniform = set(outcomes) == zero_sum and len(set(outcomes.values())) == 1
    assert uniform == (connectivity == 2)


@pytest.mark.parametrize(("parties", "colluders"), [(40, 1), (40, 35)])
def test_masks_of_many_parties_cancel(parties, colluders):
    order = tuple(f"party {number}" for number in range(parties))
    people = {name: Identity.generate(SeededRandomSource(name)) for name in order}
    roster = {name: person.public for name, person in people.items()}
    total = np.zeros(51, dtype=np.uint64)
    ring = [0, 0]
    for name in order:
        member = LocalParty(name=name, identity=people[name], roster=roster)
        masks = PairwiseMasks.agree(member, plan_digest=bytes(32), order=order, colluders=colluders)
        total += masks.word_masks(first=2, count=51)
        own = masks.ring_masks(1_000_003, first=1, count=2)
        ring = [a + b for a, b in zip(ring, own, strict=True)]
    assert not total.any()
    assert [value % 1_000_003 for value in ring] == [0, 0]


def test_a_place_outside_the_sum_has_no_partners():
    with pytest.raises(LocalError, match="no place 3"):
        partners(3, parties=3, colluders=1)
