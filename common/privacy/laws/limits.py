"""What every law keeps to: how rarely noise passes its bound, and how much of it can be drawn."""

from __future__ import annotations

import math
from fractions import Fraction

from common.errors import InputError

ONE = Fraction(1)
TAIL_BITS = 128
"""Noise passes its bound with probability at most 2^-TAIL_BITS."""
_ROOT_BITS = 128


def in_range(parameter: str, value: Fraction, *, most: int) -> Fraction:
    """Refuse a study whose noise no sampler draws: its terms ask for too much of it."""
    if value > most:
        raise InputError(
            f"epsilon: an answer needs noise of {parameter} {float(value):.3g}, and at most "
            f"{float(most):.3g} can be drawn. Choose a larger epsilon or delta, fewer attributes, "
            "or smaller rows_per_person and owners_per_person"
        )
    return value


def root_from_above(value: Fraction) -> Fraction:
    """Return at least the square root, more by at most a relative 2^-127 where the root is >= 1."""
    scaled = -(-(value.numerator << 2 * _ROOT_BITS) // value.denominator)
    return Fraction(math.isqrt(scaled) + 1, 1 << _ROOT_BITS)
