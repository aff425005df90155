"""Arithmetic of wires is that of integers, and costs the gates that it should."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from common.crypto.two_party import gates as arithmetic
from common.crypto.two_party.gates import InTheOpen, to_bits
from tests.unit.crypto.two_party.wires import value, wires

OPEN = InTheOpen()
NUMBERS = st.lists(st.integers(0, 2**12 - 1), min_size=1, max_size=4)


@given(st.lists(st.tuples(*[st.integers(0, 2**12 - 1)] * 2), min_size=1, max_size=5))
def test_arithmetic_is_that_of_integers(pairs):
    x, y = zip(*pairs, strict=True)
    one, other = wires(x, 12), wires(y, 12)
    total, carry = arithmetic.added(OPEN, one, other)
    assert value([*total, carry]) == [a + b for a, b in pairs]
    rest, negative = arithmetic.taken(OPEN, one, other)
    assert value(rest) == [(a - b) % 4096 for a, b in pairs]
    assert negative.tolist() == [a < b for a, b in pairs]
    assert value(arithmetic.multiplied(OPEN, one, other)) == [a * b for a, b in pairs]
    product_, divisor = [a * max(b, 1) for a, b in pairs], [max(b, 1) for b in y]
    short = [p // 2 for p in product_]
    found = arithmetic.divided(OPEN, wires(short, 24), wires(divisor, 12))
    assert value(found) == [p // d for p, d in zip(short, divisor, strict=True)]


@given(NUMBERS, st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_a_fold_takes_every_group_in_order(seed, sizes):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 100, sum(sizes))
    ends = np.cumsum(sizes)
    groups = [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    first = arithmetic.folded(wires(numbers, 12), groups, lambda one, other: one)
    assert value(first) == [int(numbers[group[0]]) for group in groups]
    totals = arithmetic.folded(
        wires(numbers, 12), groups, lambda one, other: arithmetic.added(OPEN, one, other)[0]
    )
    assert value(totals) == [int(numbers[list(group)].sum()) for group in groups]


@given(st.lists(st.integers(0, 2**20 - 1), min_size=1, max_size=5), st.integers(20, 30))
def test_bits_are_written_lowest_first_and_zeros_in_front_change_nothing(numbers, width):
    bits = to_bits(np.array(numbers), width).reshape(width, len(numbers))
    for place, number in product(range(width), range(len(numbers))):
        assert bits[place, number] == bool(numbers[number] >> place & 1)
    wide = arithmetic.widened(OPEN, wires(numbers, 20), width)
    assert len(wide) == width
    assert value(wide) == value(arithmetic.constants(OPEN, np.array(numbers), width)) == numbers


@given(st.lists(st.tuples(st.booleans(), *[st.integers(0, 4095)] * 2), min_size=1, max_size=5))
def test_a_wire_selects_one_of_two_numbers(choices):
    which, x, y = zip(*choices, strict=True)
    found = arithmetic.selected(OPEN, np.array(which), wires(x, 12), wires(y, 12))
    assert value(found) == [a if first else b for first, a, b in choices]


class Counting(InTheOpen):
    """Counts the gates that cost a party two labels each."""

    paid = 0

    def both(self, one, other):
        self.paid += len(one)
        return one & other


def test_an_operation_pays_one_gate_for_each_bit_and_a_product_one_for_each_pair():
    """Exclusive or and `not` are free: what is paid decides how long a message is."""
    one, other = wires([5, 9], 8), wires([3, 2], 8)
    paid = []
    for run in (
        lambda gates: arithmetic.added(gates, one, other),
        lambda gates: arithmetic.taken(gates, one, other),
        lambda gates: arithmetic.selected(gates, one[0], one, other),
        lambda gates: arithmetic.multiplied(gates, one, other),
    ):
        gates = Counting()
        run(gates)
        paid.append(gates.paid)
    numbers, bits = 2, 8
    assert paid == [numbers * bits] * 3 + [numbers * 2 * bits * bits]
