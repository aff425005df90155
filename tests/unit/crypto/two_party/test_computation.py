"""Two-party computation: its arithmetic, its gates, its transfer, its messages, its refusals."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.crypto.identities.identity import Identity, Member
from common.crypto.sums.plan import PartialForwarded
from common.crypto.two_party import gates as arithmetic
from common.crypto.two_party.computation import (
    ComputationContext,
    TwoPartyComputation,
    message_bytes,
)
from common.crypto.two_party.garbling import (
    Evaluator,
    Garbler,
    draw_labels,
    draw_offset,
    last_bits,
    to_bytes,
)
from common.crypto.two_party.gates import InTheOpen, to_bits
from common.crypto.two_party.transfer import TransferSender, answer
from common.errors import RemoteProtocolError
from common.privacy.randomness import SeededRandomSource

OPEN = InTheOpen()
IDENTITIES = {name: Identity.generate(SeededRandomSource(name)) for name in ("ann", "bob")}
ROSTER = {name: identity.public for name, identity in IDENTITIES.items()}
NUMBERS = st.lists(st.integers(0, 2**12 - 1), min_size=1, max_size=4)


def wires(numbers, width):
    return np.split(to_bits(np.array(numbers), width), width)


def value(number):
    return [int(v) for v in sum(wire.astype(np.int64) << i for i, wire in enumerate(number))]


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


def test_a_transfer_gives_the_label_of_each_bit_and_hides_the_other():
    source = SeededRandomSource("sender")
    offset = draw_offset(source)
    sender = TransferSender(offset, source)
    bits = np.random.default_rng(1).random(300) < 0.5
    sent, held = answer(bits, sender.ask(), SeededRandomSource("receiver"))
    zeros = sender.finish(sent, len(bits))
    assert (held == np.where(bits[:, None], zeros ^ offset, zeros)).all()
    again, same = answer(~bits, sender.ask(), SeededRandomSource("receiver"))
    assert (same == held).all()  # what it holds says nothing about its bits,
    assert len(again) == len(sent)
    changed = np.unpackbits(np.frombuffer(sent, np.uint8) ^ np.frombuffer(again, np.uint8))
    assert changed[256 * 8 :].reshape(128, -1)[:, :296].all()  # and they are under a stream


@pytest.mark.parametrize("broken", [b"", bytes(128 * 256), b"\xff" * 128 * 256])
def test_a_transfer_refuses_what_is_no_group_element(broken):
    with pytest.raises(RemoteProtocolError):
        answer(np.ones(3, np.bool_), broken, SeededRandomSource("x"))


@dataclass
class Product:
    """A product of two numbers of six bits each, three times."""

    input_bits = (18, 18)
    output_bits = 36

    def outputs(self, gates, first, second):
        found = arithmetic.multiplied(gates, np.split(first, 6), np.split(second, 6))
        return np.concatenate(found)


def sides(numbers, step=b"step"):
    place = ComputationContext(study=bytes(32), round=3, step=step, garbler="ann", evaluator="bob")
    return {
        name: TwoPartyComputation(
            place,
            Product(),
            Member(name=name, identity=IDENTITIES[name], roster=ROSTER),
            to_bits(np.array(own), 6),
            SeededRandomSource(f"{name} {own}"),
        )
        for name, own in zip(("ann", "bob"), numbers, strict=True)
    }


def run(parties):
    """Pass messages on until the evaluator has its result; return it and the messages."""
    message = next(parties["ann"].begin())
    assert not list(parties["bob"].begin())
    passed = [message]
    while not isinstance(found := parties[message.recipient].receive(message), np.ndarray):
        message = found
        passed.append(message)
    return found, passed


@pytest.mark.parametrize(
    ("mine", "yours"), [([0, 0, 0], [0, 63, 1]), ([63, 17, 1], [63, 44, 0]), ([5, 6, 7], [9, 8, 1])]
)
def test_two_parties_come_to_the_result_in_three_messages(mine, yours):
    parties = sides((mine, yours))
    found, passed = run(parties)
    assert value(np.split(found, 12)) == [a * b for a, b in zip(mine, yours, strict=True)]
    assert all(party.finished for party in parties.values())
    assert [message.recipient for message in passed] == ["bob", "ann", "bob"]
    contents = message_bytes(Product())
    around = [len(m.envelope) - content for m, content in zip(passed, contents, strict=True)]
    assert max(around) - min(around) <= 1  # a sequence of 0 is written in no byte


def test_sizes_do_not_depend_on_inputs():
    lengths = {
        tuple(len(message.envelope) for message in run(sides(numbers))[1])
        for numbers in (([0, 0, 0], [0, 0, 0]), ([63, 1, 5], [9, 63, 63]))
    }
    assert len(lengths) == 1


def test_messages_of_another_step_or_sender_or_twice_are_refused():
    parties, others = sides(([1, 2, 3],) * 2), sides(([1, 2, 3],) * 2, step=b"other")
    (opening,) = parties["ann"].begin()
    with pytest.raises(RemoteProtocolError):
        others["bob"].receive(opening)
    from_itself = PartialForwarded(sender="bob", recipient="bob", envelope=opening.envelope)
    with pytest.raises(RemoteProtocolError, match="expects no message"):
        parties["bob"].receive(from_itself)
    reply = parties["bob"].receive(opening)
    with pytest.raises(RemoteProtocolError):
        parties["bob"].receive(opening)
    parties["ann"].receive(reply)
    with pytest.raises(RemoteProtocolError, match="expects no message"):
        parties["ann"].receive(reply)


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
