"""Secret primes for Paillier: Lim-Lee primes, p = 2ab + 1 with a and b large primes.

Why not any prime (which is what phe draws): blinding with a fixed base
(`common.crypto.paillier.blinding`) needs a modulus whose squares form ONE cyclic group without
small subgroups. Let n = pq with

    p - 1 = 2ab,  q - 1 = 2cd,  and a, b, c, d distinct primes of about a quarter of n's bits.

Then p = q = 3 (mod 4), gcd(p - 1, q - 1) = 2, the squares modulo n are cyclic of order abcd, and a
random square generates them except with probability below 2^-500 (2048-bit keys). Safe primes
(b = 1) would do as well and take minutes at 4096 bits; pools of half-size primes whose products are
tried in pairs [Lim, Lee, "A key recovery attack on discrete log-based schemes using a prime order
subgroup", CRYPTO 1997, section 4] take seconds. GnuPG makes its ElGamal primes in the same way.
"""

from __future__ import annotations

from gmpy2 import is_prime, mpz

from common.privacy.randomness import RandomSource

# In GMP: Baillie-PSW and 16 rounds of Miller-Rabin, which a random composite of 500 bits or more
# passes with probability far below 2^-128 [Damgard, Landrock, Pomerance, Math. Comp. 61, 1993].
_ROUNDS = 40


def random_prime(bits: int, source: RandomSource) -> mpz:
    """Draw a uniform prime among those of exactly `bits` bits whose two top bits are ones."""
    top = mpz(3) << (bits - 2)
    low_mask = (mpz(1) << (bits - 2)) - 1
    while True:
        drawn = mpz.from_bytes(source.random_bytes((bits + 7) // 8), "big")
        candidate = top | (drawn & low_mask) | 1
        if is_prime(candidate, _ROUNDS):
            return candidate


def lim_lee_prime(bits: int, source: RandomSource) -> tuple[mpz, frozenset[mpz]]:
    """Draw a prime p = 2ab + 1 of `bits` bits with its two top bits set; return also {a, b}.

    The product of two such primes has exactly 2 * `bits` bits.
    """
    larger: list[mpz] = []
    smaller: list[mpz] = []
    while True:
        larger.append(random_prime(bits - bits // 2, source))
        smaller.append(random_prime(bits // 2 - 1, source))
        # Every pair that contains a prime drawn in this turn has not been tried yet.
        fresh = [(larger[-1], b) for b in smaller] + [(a, smaller[-1]) for a in larger[:-1]]
        for a, b in fresh:
            p = 2 * a * b + 1
            if p >> (bits - 2) == 3 and is_prime(p, _ROUNDS):
                return p, frozenset((a, b))
