import numpy as np
import pytest

from common.crypto.identities.identity import Identity, Member
from common.crypto.sums.masks import PairwiseMasks
from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource

ORDER = ("dan", "ada", "cyd", "ben")
PEOPLE = {name: Identity.generate(SeededRandomSource(name)) for name in ORDER}
ROSTER = {name: person.public for name, person in PEOPLE.items()}
PLAN = bytes(32)
MODULUS = (1 << 2047) + 5


def masks_of(name, *, plan=PLAN, order=ORDER):
    member = Member(name=name, identity=PEOPLE[name], roster=ROSTER)
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
