"""Planes over finite fields GF(q), q a prime power: two points lie on exactly one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError


def is_prime(number: int) -> bool:
    """Return whether a number is prime, by trial division: fields have a few hundred elements."""
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def prime_power(number: int) -> tuple[int, int] | None:
    """Return (p, e) with number = p^e and p prime, or None."""
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
    """Return the field with `order` elements."""
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
    """Return x^0, x^1, ..., all non-zero elements, modulo the first primitive polynomial found.

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


def affine_lines(points: Sequence[int], columns: int) -> list[tuple[int, ...]]:
    """Return the lines "row i, column j + i*m" of a matrix filled with the points, row by row.

    The short last row has no point in some lines, and lines of fewer than 2 points are dropped.
    The index of [Su16] is 1-based, and its "mod n" yields 0 where it means n.
    """
    rows = -(-len(points) // columns)
    if rows > columns:
        raise LocalError(f"{rows} rows need at least as many columns, not {columns}")
    arithmetic = field(columns)
    lines = []
    for slope, start in product(range(columns), repeat=2):
        cells = (
            row * columns + int(arithmetic.add[start, arithmetic.multiply[row, slope]])
            for row in range(rows)
        )
        line = tuple(points[cell] for cell in cells if cell < len(points))
        if len(line) > 1:
            lines.append(line)
    return lines


@lru_cache(maxsize=16)
def projective_lines(order: int) -> tuple[tuple[int, ...], ...]:
    """Return, for every point, the lines through it; points and lines share their coordinates."""
    arithmetic = field(order)
    places = [
        triple
        for triple in product(range(order), repeat=3)
        if next((value for value in triple if value), 0) == 1  # one of each class of multiples
    ]

    def meet(point: tuple[int, ...], line: tuple[int, ...]) -> bool:
        total = 0
        for one, other in zip(point, line, strict=True):
            total = int(arithmetic.add[total, arithmetic.multiply[one, other]])
        return total == 0

    return tuple(
        tuple(number for number, line in enumerate(places) if meet(point, line)) for point in places
    )
