"""Finite fields GF(q), q a prime power: what makes q lines through every point meet once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError


def is_prime(number: int) -> bool:
    """Whether the number is prime, by trial division: fields here have a few hundred elements."""
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def prime_power(number: int) -> tuple[int, int] | None:
    """(p, e) with number = p^e and p prime, or None."""
    if number < 2:
        return None
    prime = next((p for p in range(2, isqrt(number) + 1) if number % p == 0), number)
    exponent, rest = 0, number
    while rest % prime == 0:
        rest //= prime
        exponent += 1
    return (prime, exponent) if rest == 1 else None


@dataclass(frozen=True, slots=True)
class Field:
    """GF(q) on the integers 0..q-1 (base-p digits are the coefficients): two q x q tables."""

    add: NDArray[np.intp]
    multiply: NDArray[np.intp]


@lru_cache(maxsize=64)
def field(order: int) -> Field:
    """The field with `order` elements."""
    power = prime_power(order)
    if power is None:
        raise LocalError(f"there is no field of {order} elements: not a prime power")
    prime, degree = power
    elements = np.arange(order)
    if degree == 1:
        return Field(
            np.add.outer(elements, elements) % prime,
            np.multiply.outer(elements, elements) % prime,
        )
    places = prime ** np.arange(degree)
    digits = elements[:, None] // places % prime
    add = ((digits[:, None, :] + digits[None, :, :]) % prime) @ places
    powers = _powers_of_x(prime, degree)
    logarithm = np.zeros(order, dtype=np.intp)
    logarithm[powers] = np.arange(order - 1)
    multiply = powers[np.add.outer(logarithm, logarithm) % (order - 1)]
    multiply[0, :] = multiply[:, 0] = 0
    return Field(add, multiply)


def _powers_of_x(prime: int, degree: int) -> NDArray[np.intp]:
    """x^0, x^1, ..., all non-zero elements, modulo the first primitive polynomial found.

    A primitive polynomial always exists; x then generates the multiplicative group, which also
    proves the polynomial irreducible, so no other test is needed.
    """
    order = prime**degree
    for low in product(range(prime), repeat=degree):
        element, powers = [1] + [0] * (degree - 1), []
        for _ in range(order - 1):
            powers.append(sum(c * prime**i for i, c in enumerate(element)))
            carry = element[-1]
            shifted = [0, *element[:-1]]
            element = [(s - carry * c) % prime for s, c in zip(shifted, low, strict=True)]
        if len(set(powers)) == order - 1 and 0 not in powers:
            return np.array(powers, dtype=np.intp)
    raise LocalError(f"no primitive polynomial of degree {degree} over GF({prime})")
