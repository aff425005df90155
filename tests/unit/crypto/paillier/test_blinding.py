"""Blinding factors: secret n-th residues, each used once."""

import gmpy2
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from common.crypto.paillier import blinding
from common.crypto.paillier.blinding import FixedBase, FixedBaseBlinder, PowerBlinder
from common.crypto.paillier.keys import generate_key_pair
from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource, below


@pytest.fixture(scope="module", params=["fixed base", "power"])
def any_blinder(request, public_key, blinder):
    if request.param == "fixed base":
        return blinder
    return PowerBlinder(public_key, SeededRandomSource(request.param))


# What every blinder must do


def test_factors_are_nth_residues_so_they_encrypt_zero(any_blinder, private_key, public_key):
    factors = any_blinder.factors(5)
    public_key.check_ciphertexts(factors)
    assert private_key.decrypt(factors) == [0] * 5


def test_factors_do_not_repeat(any_blinder):
    assert len(set(any_blinder.factors(5) + any_blinder.factors(5))) == 10


def test_no_factors_are_none(any_blinder):
    assert any_blinder.factors(0) == []


# Each of them


@settings(max_examples=50, deadline=None)
@given(
    base=st.integers(1, 1 << 80),
    modulus=st.integers(1, 1 << 80).map(lambda value: 2 * value + 1),
    exponent=st.sampled_from([0, 1, 255, 256, (1 << 40) - 1]) | st.integers(0, (1 << 40) - 1),
)
def test_the_table_gives_the_powers_of_its_base(base, modulus, exponent):
    powers = FixedBase(mpz(base) % modulus, modulus=mpz(modulus), exponent_bits=40)
    assert powers.power(exponent) == pow(base, exponent, modulus)
    if gmpy2.gcd(base, modulus) == 1:
        assert powers.power(-exponent) == pow(base, -exponent, modulus)


def test_an_exponent_longer_than_the_table_is_refused():
    powers = FixedBase(mpz(3), modulus=mpz(1009), exponent_bits=16)
    assert powers.power((1 << 16) - 1) == pow(3, (1 << 16) - 1, 1009)
    for exponent in (1 << 16, -(1 << 16)):
        with pytest.raises(LocalError, match="17 bits"):
            powers.power(exponent)


def test_fixed_base_factors_are_powers_of_h_by_exponents_of_half_the_modulus(public_key):
    factors = FixedBaseBlinder(public_key, SeededRandomSource(3)).factors(2)
    drawn = SeededRandomSource(3).random_bytes(256)
    exponents = [int.from_bytes(drawn[start : start + 128], "little") for start in (0, 128)]
    assert factors == [gmpy2.powmod(public_key.h, s, public_key.n_squared) for s in exponents]


def test_power_factors_are_nth_powers_of_uniform_units(public_key):
    factor = PowerBlinder(public_key, SeededRandomSource(4)).factors(1)[0]
    root = below(int(public_key.n), SeededRandomSource(4))
    assert factor == gmpy2.powmod(root, public_key.n, public_key.n_squared)


def test_fixed_base_factors_have_jacobi_symbol_one_and_reach_both_of_its_classes(
    private_key, blinder
):
    p, q = private_key.reveal_factors()
    classes = {(gmpy2.legendre(f % p, p), gmpy2.legendre(f % q, q)) for f in blinder.factors(40)}
    assert classes == {(1, 1), (-1, -1)}


def test_factors_are_the_same_whichever_table_they_come_from(public_key):
    """A party that is killed and asks for its factors in other portions must get the same ones."""
    width = public_key.bits // 16
    whole = FixedBaseBlinder(public_key, SeededRandomSource(5)).factors(300)
    portions = FixedBaseBlinder(public_key, SeededRandomSource(5))
    assert whole == [one for count in (1, 200, 54, 1, 44) for one in portions.factors(count)]
    exponent = int.from_bytes(SeededRandomSource(5).random_bytes(width), "little")
    assert whole[0] == gmpy2.powmod(public_key.h, exponent, public_key.n_squared)


def test_parties_that_share_a_process_share_the_table_of_a_key_while_they_need_it(private_key):
    key = generate_key_pair(2048, SeededRandomSource("shared")).public_key
    before = len(blinding._tables)
    first, second = (FixedBaseBlinder(key, SeededRandomSource(place)) for place in range(2))
    assert first.factors(3) != second.factors(3)
    assert len(blinding._tables) == before + 1
    other = FixedBaseBlinder(private_key.public_key, SeededRandomSource(0))
    assert other.factors(3) != first.factors(3)
    del first
    assert second.factors(1)
    del second
    assert (key, True) not in blinding._tables, "no table outlives the studies of its key"
