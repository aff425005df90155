"""Garbled gates compute what open ones do, and show neither what goes in nor what comes out."""

from itertools import product

import numpy as np
import pytest

from common.crypto.two_party import gates as arithmetic
from common.crypto.two_party.garbling import (
    Evaluator,
    Garbler,
    draw_labels,
    draw_offset,
    last_bits,
    to_bytes,
    to_labels,
)
from common.crypto.two_party.gates import InTheOpen
from common.errors import RemoteProtocolError
from common.privacy.randomness import SeededRandomSource


@pytest.mark.parametrize("flips", list(product([False, True], repeat=2)))
def test_a_garbled_gate_says_what_an_open_one_does(flips):
    """All four inputs, many times over: labels are random, so no row may depend on luck."""
    source = SeededRandomSource(str(flips))
    offset = draw_offset(source)
    bits = np.array(list(product([False, True], repeat=2)) * 50)
    zeros = [draw_labels(len(bits), source) for _ in range(2)]
    garbler = Garbler(offset)
    meant = [garbler.flipped(z) if flip else z for z, flip in zip(zeros, flips, strict=True)]
    out = garbler.both(*meant) ^ garbler.constant(bits[:, 0])
    evaluator = Evaluator(garbler.rows())
    held = [np.where(b[:, None], z ^ offset, z) for b, z in zip(bits.T, zeros, strict=True)]
    found = evaluator.both(*held) ^ evaluator.constant(bits[:, 0])
    evaluator.finish()
    expected = ((bits[:, 0] ^ flips[0]) & (bits[:, 1] ^ flips[1])) ^ bits[:, 0]
    assert (np.where(expected[:, None], out ^ offset, out) == found).all()
    assert ((last_bits(out) ^ last_bits(found)) == expected).all()


def test_a_garbled_quotient_is_the_open_one():
    """Gates after gates: labels that come out of some go into others, with tweaks of their own."""
    source = SeededRandomSource("quotient")
    rng = np.random.default_rng(1)
    divisor = rng.integers(1, 2**5, 40)
    dividend = rng.integers(0, divisor * 2**6)
    bits = np.concatenate([arithmetic.to_bits(dividend, 11), arithmetic.to_bits(divisor, 5)])
    offset = draw_offset(source)
    zeros = draw_labels(len(bits), source)
    garbler = Garbler(offset)
    meant = np.concatenate(quotient(garbler, zeros))
    evaluator = Evaluator(garbler.rows())
    found = np.concatenate(quotient(evaluator, np.where(bits[:, None], zeros ^ offset, zeros)))
    evaluator.finish()
    expected = np.concatenate(quotient(InTheOpen(), bits))
    assert ((last_bits(meant) ^ last_bits(found)) == expected).all()
    places = enumerate(np.split(expected, 6))
    assert (sum(wire.astype(int) << place for place, wire in places) == dividend // divisor).all()


def quotient(gates, wires):
    return arithmetic.divided(gates, np.split(wires[: 11 * 40], 11), np.split(wires[11 * 40 :], 5))


def test_the_labels_of_a_wire_differ_in_their_last_bit_and_are_written_as_they_are():
    for seed in range(20):
        offset = draw_offset(SeededRandomSource(seed))
        labels = draw_labels(30, SeededRandomSource(seed + 100))
        assert (last_bits(labels) != last_bits(labels ^ offset)).all()
        assert (to_labels(to_bytes(labels)) == labels).all()
        assert len(np.unique(labels, axis=0)) == 30


def test_two_gates_of_the_same_labels_have_different_rows():
    """A tweak is used once: the same inputs again must not give the same rows again."""
    garbler = Garbler(draw_offset(SeededRandomSource("o")))
    labels = draw_labels(1, SeededRandomSource("l"))
    first, second = garbler.both(labels, labels), garbler.both(labels, labels)
    assert (first != second).any()
    rows = to_labels(garbler.rows())
    assert (rows[:2] != rows[2:]).any(axis=1).all()


def test_gates_that_are_cut_short_or_too_many_are_refused():
    garbler = Garbler(draw_offset(SeededRandomSource("o")))
    labels = draw_labels(4, SeededRandomSource("l"))
    garbler.both(labels, labels)
    with pytest.raises(RemoteProtocolError, match="cut short"):
        Evaluator(garbler.rows()[:-1])
    with pytest.raises(RemoteProtocolError, match="fewer gates"):
        Evaluator(garbler.rows()[:-32]).both(labels, labels)
    with pytest.raises(RemoteProtocolError, match="more gates"):
        Evaluator(garbler.rows()).finish()


def test_the_evaluators_view_of_a_gate_is_the_same_for_both_meanings():
    """Swapping what a wire means swaps the labels, and the evaluator sees as many ones."""
    source = SeededRandomSource("view")
    offset, count = draw_offset(source), 4000
    ones = []
    for bit in (False, True):
        zero = draw_labels(count, source)
        held = zero ^ offset if bit else zero
        garbler = Garbler(offset)
        garbler.both(zero, zero)
        seen = to_bytes(held) + garbler.rows()
        ones.append(np.unpackbits(np.frombuffer(seen, np.uint8)).mean())
    error = 0.5 / np.sqrt(count * 3 * 128)
    assert all(abs(mean - 0.5) < 5 * error for mean in ones)
