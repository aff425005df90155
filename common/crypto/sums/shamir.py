"""Shamir's secret sharing of 32 bytes, over the integers modulo a prime.

A secret is the value at 0 of a polynomial of degree threshold - 1 whose other coefficients are
uniform; holder x has its value at x, x = 1, 2, ... Any `threshold` values give the polynomial back
by Lagrange interpolation. Fewer say nothing: for every secret there are equally many polynomials
through them.

The prime is the largest below 2^264, so a value takes 33 bytes, and a draw of 33 bytes is used
unless it is one of the 275 that are too large.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from gmpy2 import invert, mpz

from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource, below

PRIME = mpz((1 << 264) - 275)
SECRET_BYTES = 32
SHARE_BYTES = 33


def split(secret: bytes, *, holders: int, threshold: int, source: RandomSource) -> list[bytes]:
    """Return a value for each of the holders 1..holders; any `threshold` give the secret back."""
    if len(secret) != SECRET_BYTES or not 1 <= threshold <= holders:
        raise LocalError(f"{threshold} of {holders} holders cannot share {len(secret)} bytes")
    coefficients = [mpz(below(int(PRIME), source)) for _ in range(threshold - 1)]
    coefficients.append(mpz.from_bytes(secret, "big"))
    values = (_value(coefficients, place) for place in range(1, holders + 1))
    return [value.to_bytes(SHARE_BYTES, "big") for value in values]


def join(values: Mapping[int, bytes]) -> bytes:
    """Return the secret, given exactly as many holders' values as the threshold is."""
    places = tuple(sorted(values))
    total = mpz(0)
    for place, weight in zip(places, _weights(places), strict=True):
        if not is_share(values[place]):
            raise RemoteProtocolError(f"the value of holder {place} is not one of a shared secret")
        total += weight * mpz.from_bytes(values[place], "big")
    secret = total % PRIME
    if secret.bit_length() > 8 * SECRET_BYTES:
        raise RemoteProtocolError("the revealed values do not belong to one shared secret")
    return bytes(secret.to_bytes(SECRET_BYTES, "big"))


def is_share(value: bytes) -> bool:
    """Return whether these bytes can be a holder's value."""
    return len(value) == SHARE_BYTES and mpz.from_bytes(value, "big") < PRIME


def _value(coefficients: list[mpz], place: int) -> mpz:
    value = mpz(0)
    for coefficient in coefficients:
        value = (value * place + coefficient) % PRIME
    return value


@lru_cache(maxsize=256)
def _weights(places: tuple[int, ...]) -> tuple[mpz, ...]:
    """Lagrange's weights at 0 of the values at these places."""
    weights = []
    for point in places:
        above = below_ = mpz(1)
        for other in places:
            if other != point:
                above = above * other % PRIME
                below_ = below_ * (other - point) % PRIME
        weights.append(above * invert(below_, PRIME) % PRIME)
    return tuple(weights)
