"""Primes of the form that blinding needs."""

import gmpy2
import pytest

from common.crypto.paillier.primes import lim_lee_prime
from common.privacy.randomness import SeededRandomSource


@pytest.mark.parametrize("bits", [64, 128])
def test_lim_lee_primes_are_twice_two_primes_plus_one(bits):
    for seed in range(5):
        p, parts = lim_lee_prime(bits, SeededRandomSource(seed))
        assert gmpy2.is_prime(p)
        assert p >> (bits - 2) == 3
        a, b = parts
        assert p == 2 * a * b + 1
        assert gmpy2.is_prime(a)
        assert gmpy2.is_prime(b)
