"""Packing: sums of packs are packs of sums, and nothing else is accepted."""

import math
from fractions import Fraction

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from common.crypto.paillier.packing import Packing
from common.errors import InputError, LocalError, RemoteProtocolError
from common.privacy.noise_law import TAIL_BITS, DiscreteLaplace
from common.privacy.randomness import SeededRandomSource, below

PLAINTEXT_BITS = 2047


@st.composite
def packings(draw: st.DrawFn) -> Packing:
    return Packing(
        plaintext_bits=draw(st.sampled_from([2047, 3071, 4095])),
        rows=draw(st.integers(0, 40).map(lambda bits: (1 << bits) - 1) | st.integers(0, 1 << 40)),
        parties=draw(st.integers(1, 64)),
        noise_bound=draw(st.integers(0, 40).map(lambda bits: 1 << bits) | st.integers(0, 1 << 40)),
    )


def pack_slot_by_slot(values: list[int], packing: Packing) -> list[int]:
    """The definition: one signed power of two per slot."""
    return [
        sum(
            value << (packing.slot_bits * slot)
            for slot, value in enumerate(values[start : start + packing.slots])
        )
        for start in range(0, len(values), packing.slots)
    ]


@settings(deadline=None)
@given(packing=packings(), data=st.data())
def test_packs_are_signed_sums_of_powers_and_come_back(packing, data):
    limit = packing.total_bound
    value = st.sampled_from([-limit, limit, 0, -1 if limit else 0]) | st.integers(-limit, limit)
    count = data.draw(
        st.sampled_from([0, 1, packing.slots - 1, packing.slots, packing.slots + 1])
        | st.integers(0, 3 * packing.slots)
    )
    values = data.draw(st.lists(value, min_size=count, max_size=count))

    packed = packing.pack(
        np.array(values, dtype=np.int64), rows=packing.rows, shares=packing.parties
    )

    assert packed == pack_slot_by_slot(values, packing)
    assert all(2 * abs(plaintext) < 1 << packing.plaintext_bits for plaintext in packed)
    unpacked = packing.unpack(packed, count)
    assert unpacked.dtype == np.int64
    assert unpacked.tolist() == values


@settings(max_examples=50, deadline=None)
@given(packing=packings(), sign=st.sampled_from([-1, 1]), count=st.integers(1, 250))
def test_the_largest_contributions_of_all_parties_do_not_overflow(packing, sign, count):
    share, rest = divmod(packing.rows, packing.parties)
    rows = [share + rest] + [share] * (packing.parties - 1)
    total = [0] * packing.plaintexts_for(count)
    for own in rows:
        extreme = np.full(count, sign * (own + packing.noise_bound), dtype=np.int64)
        packed = packing.pack(extreme, rows=own, shares=1)
        total = [a + b for a, b in zip(total, packed, strict=True)]

    assert packing.unpack(total, count).tolist() == [sign * packing.total_bound] * count


@settings(max_examples=50, deadline=None)
@given(packing=packings(), data=st.data())
def test_masks_that_cancel_modulo_n_disappear(packing, data):
    n = (1 << packing.plaintext_bits) + data.draw(st.integers(0, (1 << packing.plaintext_bits) - 1))
    values = np.array([packing.rows, 0, packing.rows], dtype=np.int64)
    mask = data.draw(st.integers(0, n - 1))
    first = packing.pack(values, rows=packing.rows, shares=0)[0] + mask
    second = packing.pack(np.zeros(3, dtype=np.int64), rows=0, shares=0)[0] - mask
    total = (first % n + second % n) % n
    centred = total - n if 2 * total > n else total
    assert packing.unpack([centred], 3).tolist() == values.tolist()


@settings(deadline=None)
@given(packing=packings(), rows=st.integers(0, 1 << 40), sign=st.sampled_from([-1, 1]))
def test_a_value_one_beyond_its_bound_is_refused_before_encryption(packing, rows, sign):
    rows = min(rows, packing.rows)
    for shares in (0, 1):
        limit = rows + shares * packing.noise_bound
        packing.pack(np.array([0, sign * limit]), rows=rows, shares=shares)
        with pytest.raises(LocalError, match="send nothing"):
            packing.pack(np.array([0, sign * (limit + 1)]), rows=rows, shares=shares)


@settings(deadline=None)
@given(packing=packings(), sign=st.sampled_from([-1, 1]), data=st.data())
def test_a_total_one_beyond_its_bound_is_detected_in_any_slot(packing, sign, data):
    slot = data.draw(st.integers(0, packing.slots - 1))
    total = sign * (packing.total_bound + 1) << (packing.slot_bits * slot)
    with pytest.raises(RemoteProtocolError, match="no sum of honest contributions"):
        packing.unpack([total], packing.slots)


@settings(deadline=None)
@given(packing=packings(), sign=st.sampled_from([-1, 1]))
def test_a_value_in_an_unused_slot_is_detected(packing, sign):
    used = packing.slots - 1
    with pytest.raises(RemoteProtocolError, match="no sum of honest contributions"):
        packing.unpack([sign << (packing.slot_bits * used)], used)


@settings(deadline=None)
@given(total=st.integers(-(1 << 2047), 1 << 2047))
def test_a_random_plaintext_is_detected(total):
    packing = Packing(plaintext_bits=PLAINTEXT_BITS, rows=100, parties=2, noise_bound=10)
    if abs(total) > 1 << 2000:
        with pytest.raises(RemoteProtocolError):
            packing.unpack([total], packing.slots)


def test_another_number_of_plaintexts_is_refused():
    packing = Packing(plaintext_bits=PLAINTEXT_BITS, rows=100, parties=2, noise_bound=10)
    with pytest.raises(RemoteProtocolError, match="take 1 plaintexts, not 2"):
        packing.unpack([0, 0], packing.slots)


def test_more_rows_or_shares_than_agreed_are_refused():
    packing = Packing(plaintext_bits=PLAINTEXT_BITS, rows=100, parties=2, noise_bound=10)
    values = np.zeros(3, dtype=np.int64)
    for rows, shares in ((101, 1), (-1, 1), (100, 3), (100, -1)):
        with pytest.raises(LocalError, match="not within"):
            packing.pack(values, rows=rows, shares=shares)


def test_noise_too_large_for_a_slot_is_refused():
    with pytest.raises(InputError, match="noise scale is too large"):
        Packing(
            plaintext_bits=PLAINTEXT_BITS,
            rows=10,
            parties=2,
            noise_bound=DiscreteLaplace(Fraction(1 << 40)).bound(2 * 10) << 20,
        )


def test_slots_follow_from_public_bounds():
    packing = Packing(
        plaintext_bits=PLAINTEXT_BITS,
        rows=45_222,
        parties=10,
        noise_bound=DiscreteLaplace(Fraction(60)).bound(10 * 20_000),
    )
    assert packing.total_bound == 45_222 + 10 * packing.noise_bound
    assert packing.slots * packing.slot_bits <= PLAINTEXT_BITS
    assert packing.total_bound < 1 << (packing.slot_bits - 2)


@settings(deadline=None)
@given(scale=st.fractions(min_value=Fraction(1, 50), max_value=10**6), draws=st.integers(1, 10**9))
def test_the_noise_bound_leaves_less_than_the_tail(scale, draws):
    bound = DiscreteLaplace(scale).bound(draws)
    # log2 of 2 * draws * exp(-(bound + 1) / scale), by floats, with an allowance for rounding.
    log_tail = 1 + math.log2(draws) - (bound + 1) / float(scale) / math.log(2)
    assert log_tail <= -TAIL_BITS + 1e-6


@pytest.mark.parametrize("scale", [0.3, 2.0, 25.0])
@pytest.mark.parametrize("parties", [1, 2, 10])
def test_the_tail_of_a_share_is_as_the_bound_assumes(scale, parties):
    """The exact law of a Polya share (of discrete Laplace itself, for one party)."""
    alpha = math.exp(-1 / scale)
    length = math.ceil(60 * scale) + 2
    one_side = stats.nbinom(1 / parties, 1 - alpha).pmf(np.arange(length))
    share = np.convolve(one_side, one_side[::-1])
    middle = length - 1
    for k in range(1, math.ceil(20 * scale)):
        tail = share[: middle - k + 1].sum() + share[middle + k :].sum()
        assert tail <= 2 * alpha**k * (1 + 1e-9)
        assert tail > 0


@settings(max_examples=5, deadline=None)
@given(data=st.data(), chosen=st.integers(0, 2))
def test_one_share_of_noise_and_masks_go_through_encryption(
    private_key, public_key, blinder, data, chosen
):
    """Three parties, two plaintexts: E(u)^noise * E(counts + mask), u one-hot, masks cancelling."""
    packing = Packing(
        plaintext_bits=public_key.plaintext_bits, rows=300, parties=3, noise_bound=10**6
    )
    count = packing.slots + 5
    n = int(public_key.n)
    first_mask, second_mask = (data.draw(st.integers(0, n - 1)) for _ in range(2))
    masks = [first_mask, second_mask, -first_mask - second_mask]
    generator = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    counts = generator.integers(0, 101, (3, count))
    noise = generator.integers(-(10**6), 10**6 + 1, (3, count))
    selectors = public_key.encrypt([int(party == chosen) for party in range(3)], blinder)

    product = [mpz(1)] * packing.plaintexts_for(count)
    for party, mask in enumerate(masks):
        exact = packing.pack(counts[party], rows=100, shares=0)
        shares = packing.pack(noise[party], rows=0, shares=1)
        encrypted = public_key.encrypt([plaintext + mask for plaintext in exact], blinder)
        for place, share in enumerate(shares):
            scaled = public_key.scale(selectors[party], share)
            product[place] = public_key.add(
                product[place], public_key.add(encrypted[place], scaled)
            )

    totals = packing.unpack(private_key.decrypt(product), count)
    np.testing.assert_array_equal(totals, counts.sum(axis=0) + noise[chosen])


@pytest.mark.parametrize("seed", range(5))
def test_a_mask_that_does_not_cancel_is_detected(private_key, public_key, blinder, seed):
    packing = Packing(plaintext_bits=public_key.plaintext_bits, rows=9, parties=1, noise_bound=0)
    plaintexts = packing.pack(np.arange(10), rows=9, shares=0)
    mask = below(int(public_key.n), SeededRandomSource(seed))
    ciphertexts = public_key.encrypt([plaintexts[0] + mask], blinder)
    with pytest.raises(RemoteProtocolError, match="masks that do not cancel"):
        packing.unpack(private_key.decrypt(ciphertexts), 10)


def test_without_noise_only_exact_counts_fit():
    packing = Packing(plaintext_bits=PLAINTEXT_BITS, rows=7, parties=3, noise_bound=0)
    assert packing.total_bound == 7
