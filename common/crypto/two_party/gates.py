"""Arithmetic of numbers whose bits are wires, many numbers at a time.

A wire is an array with one entry for each of many numbers that are computed side by side. What an
entry is, `Gates` knows: a bit in the open, or a label that stands for a bit (`garbling`). Exclusive
or of wires is `^` of arrays in all of them. A number is its wires, least significant first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Wire: TypeAlias = NDArray[Any]
Bits: TypeAlias = NDArray[np.bool_]
Number: TypeAlias = list[Wire]
Groups: TypeAlias = Sequence[Sequence[int]]


class Gates(Protocol):
    """What differs between computing in the open and on labels."""

    def both(self, one: Wire, other: Wire) -> Wire:
        """Return `and` of two wires."""

    def flipped(self, wire: Wire) -> Wire:
        """Return `not` of a wire."""

    def constant(self, bits: Bits) -> Wire:
        """Return a wire of public bits."""


class InTheOpen:
    """Gates on bits that everyone may see: the function itself."""

    def both(self, one: Wire, other: Wire) -> Wire:
        return one & other

    def flipped(self, wire: Wire) -> Wire:
        return ~wire

    def constant(self, bits: Bits) -> Wire:
        return bits


def to_bits(numbers: NDArray[np.int64], width: int) -> Bits:
    """Return the bits of numbers that are not negative: all lowest bits, then the next ones."""
    places = np.arange(width)[:, None]
    return ((numbers.ravel() >> places) & 1).astype(np.bool_).ravel()


def widened(gates: Gates, number: Number, width: int) -> Number:
    """Return the number with zeros in front."""
    zero = gates.constant(np.zeros(len(number[0]), np.bool_))
    return [*number, *[zero] * (width - len(number))]


def constants(gates: Gates, numbers: NDArray[np.int64], width: int) -> Number:
    return list(map(gates.constant, np.split(to_bits(numbers, width), width)))


def added(gates: Gates, one: Number, other: Number) -> tuple[Number, Wire]:
    """Return the sum of two numbers of one width, and the carry beyond it."""
    carry = gates.constant(np.zeros(len(one[0]), np.bool_))
    total = []
    for a, b in zip(one, other, strict=True):
        total.append(a ^ b ^ carry)
        carry = carry ^ gates.both(a ^ carry, b ^ carry)
    return total, carry


def taken(gates: Gates, one: Number, other: Number) -> tuple[Number, Wire]:
    """Return `one - other`, and whether it is negative.

    With n bits, the complement of x is 2^n - 1 - x. So the complement of `one`, plus `other`, is
    the complement of the difference, and it has a carry where `other` is larger.
    """
    total, less = added(gates, [gates.flipped(wire) for wire in one], other)
    return [gates.flipped(wire) for wire in total], less


def selected(gates: Gates, which: Wire, if_one: Number, if_zero: Number) -> Number:
    """Return one of two numbers by a wire."""
    return [b ^ gates.both(which, a ^ b) for a, b in zip(if_one, if_zero, strict=True)]


def multiplied(gates: Gates, one: Number, other: Number) -> Number:
    """Return the product, as wide as both together."""
    zero = gates.constant(np.zeros(len(one[0]), np.bool_))
    total = [zero] * (len(one) + len(other))
    for place, bit in enumerate(one):
        row = [gates.both(bit, wire) for wire in other]
        end = place + len(row)
        total[place:end], total[end] = added(gates, total[place:end], row)
    return total


def divided(gates: Gates, dividend: Number, divisor: Number) -> Number:
    """Return the dividend over the divisor, rounded down, by long division.

    The result has `len(dividend) - len(divisor)` bits. It is right if it fits into them: the upper
    bits of the dividend, as many as the divisor has, are then less than the divisor.
    """
    width = len(divisor)
    zero = gates.constant(np.zeros(len(divisor[0]), np.bool_))
    wide = [*divisor, zero]
    rest, quotient = list(dividend[-width:]), []
    for bit in reversed(dividend[:-width]):
        rest = [bit, *rest]
        less_it, negative = taken(gates, rest, wide)
        rest = selected(gates, negative, rest, less_it)[:width]
        quotient.append(gates.flipped(negative))
    return quotient[::-1]


def folded(number: Number, groups: Groups, combine: Callable[[Number, Number], Number]) -> Number:
    """Return one number for each group of places: its numbers combined two by two, in order."""
    while max(map(len, groups)) > 1:
        first = [place for group in groups for place in group[:-1:2]]
        second = [place for group in groups for place in group[1::2]]
        alone = [group[-1] for group in groups if len(group) % 2]
        left, right, rest = ([wire[places] for wire in number] for places in (first, second, alone))
        winners = combine(left, right)
        number = [np.concatenate(pair) for pair in zip(winners, rest, strict=True)]
        pairs, odd, groups_now = 0, len(first), []
        for group in groups:
            halves = len(group) // 2
            groups_now.append([*range(pairs, pairs + halves), *[odd] * (len(group) % 2)])
            pairs, odd = pairs + halves, odd + len(group) % 2
        groups = groups_now
    return [wire[[group[0] for group in groups]] for wire in number]
