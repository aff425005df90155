"""Two functions of statistics that a node needs, without the package that has a thousand.

SciPy is 140 MB to install and 0.2 s to load. What nodes and readers of a release compute with it is
a tail of the chi-square law and two integrals of smooth functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NODES = 20
_CLOSE = 1e-13  # relative to the whole integral
_MOST_PIECES = 10_000
_MOST_TERMS = 1_000_000
_SMALL = 1e-300


def integral(height: Callable[[Floats], Floats], low: float, high: float) -> float:
    """Return the integral of a smooth function, to some twelve digits.

    A piece whose two halves do not add up to it is cut again. The function may be steep anywhere,
    if a piece that ends there shows it.
    """
    pieces = [(low, high, _gauss(height, low, high))]
    total = 0.0
    for _ in range(_MOST_PIECES):
        if not pieces:
            break
        start, end, whole = pieces.pop()
        middle = (start + end) / 2
        left, right = _gauss(height, start, middle), _gauss(height, middle, end)
        if abs(left + right - whole) <= _CLOSE * (abs(total) + abs(left) + abs(right)):
            total += left + right
        else:
            pieces += [(middle, end, right), (start, middle, left)]
    return total + sum(whole for _, _, whole in pieces)


def _gauss(height: Callable[[Floats], Floats], low: float, high: float) -> float:
    nodes, weights = _rule()
    half = (high - low) / 2
    return half * float(weights @ height(low + half * (1 + nodes)))


@cache
def _rule() -> tuple[Floats, Floats]:
    """Return the nodes and weights of Gauss and Legendre on -1 .. 1."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


def chi_square_tail(value: float, freedom: int) -> float:
    """Return the probability that chi-square of so many degrees of freedom exceeds a value.

    The incomplete gamma function, by its series below the mean and by Lentz's continued fraction
    above [DLMF 8.7.1, 8.9.2].
    """
    shape, place = freedom / 2, value / 2
    if place <= 0:
        return 1.0
    front = math.exp(shape * math.log(place) - place - math.lgamma(shape))
    if place < shape + 1:
        term = total = 1 / shape
        for n in range(1, _MOST_TERMS):
            term *= place / (shape + n)
            total += term
            if term < total * 1e-16:
                break
        return max(1 - front * total, 0.0)
    step = place + 1 - shape
    ratio, inverse = 1 / _SMALL, 1 / step
    result = inverse
    for n in range(1, _MOST_TERMS):
        factor, step = n * (shape - n), step + 2
        inverse = 1 / _apart(step + factor * inverse)
        ratio = _apart(step + factor / ratio)
        result *= inverse * ratio
        if abs(inverse * ratio - 1) < 1e-15:
            break
    return front * result


def _apart(number: float) -> float:
    """Return a number, or a very small one in place of zero."""
    return number if abs(number) > _SMALL else _SMALL
