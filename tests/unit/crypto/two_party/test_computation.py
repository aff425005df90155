"""Two-party computation: its result, its messages and their sizes, its refusals."""

from dataclasses import dataclass

import numpy as np
import pytest

from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.two_party import gates as arithmetic
from common.crypto.two_party.computation import TwoPartyComputation, message_bytes
from common.crypto.two_party.gates import to_bits
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import SeededRandomSource
from tests.unit.crypto.two_party.wires import value

IDENTITIES = {name: Identity.generate(SeededRandomSource(name)) for name in ("ann", "bob")}
ROSTER = {name: identity.public for name, identity in IDENTITIES.items()}


@dataclass
class Product:
    """A product of two numbers of six bits each, three times."""

    input_bits = (18, 18)
    output_bits = 36

    def outputs(self, gates, first, second):
        found = arithmetic.multiplied(gates, np.split(first, 6), np.split(second, 6))
        return np.concatenate(found)


def sides(numbers, digest=b"step"):
    return {
        name: TwoPartyComputation(
            Product(),
            LocalParty(name=name, identity=IDENTITIES[name], roster=ROSTER),
            to_bits(np.array(own), 6),
            SeededRandomSource(f"{name} {own}"),
            study=bytes(32),
            step=3,
            digest=digest,
            ends=("ann", "bob"),
        )
        for name, own in zip(("ann", "bob"), numbers, strict=True)
    }


def run(parties):
    """Pass envelopes on until the evaluator has its result; return it and the envelopes."""
    (envelope,) = parties["ann"].begin()
    assert not parties["bob"].begin()
    passed, sender = [envelope], "ann"
    while not isinstance(
        found := parties[parties[sender].other].receive(sender, envelope), np.ndarray
    ):
        envelope, sender = found, parties[sender].other
        passed.append(envelope)
    return found, passed


@pytest.mark.parametrize(
    ("mine", "yours"), [([0, 0, 0], [0, 63, 1]), ([63, 17, 1], [63, 44, 0]), ([5, 6, 7], [9, 8, 1])]
)
def test_two_parties_come_to_the_result_in_three_messages(mine, yours):
    parties = sides((mine, yours))
    found, passed = run(parties)
    assert value(np.split(found, 12)) == [a * b for a, b in zip(mine, yours, strict=True)]
    assert all(party.finished for party in parties.values())
    contents = message_bytes(Product())
    around = [len(envelope) - content for envelope, content in zip(passed, contents, strict=True)]
    assert max(around) - min(around) <= 1  # a sequence of 0 is written in no byte


def test_sizes_do_not_depend_on_inputs():
    lengths = {
        tuple(len(envelope) for envelope in run(sides(numbers))[1])
        for numbers in (([0, 0, 0], [0, 0, 0]), ([63, 1, 5], [9, 63, 63]))
    }
    assert len(lengths) == 1


def test_messages_of_another_step_or_sender_or_twice_are_refused():
    parties, others = sides(([1, 2, 3],) * 2), sides(([1, 2, 3],) * 2, digest=b"other")
    (opening,) = parties["ann"].begin()
    with pytest.raises(RemoteProtocolError):
        others["bob"].receive("ann", opening)
    with pytest.raises(RemoteProtocolError, match="expects no message"):
        parties["bob"].receive("bob", opening)
    reply = parties["bob"].receive("ann", opening)
    with pytest.raises(RemoteProtocolError):
        parties["bob"].receive("ann", opening)
    parties["ann"].receive("bob", reply)
    with pytest.raises(RemoteProtocolError, match="expects no message"):
        parties["ann"].receive("bob", reply)


def test_a_computation_takes_as_many_bits_as_its_circuit():
    with pytest.raises(LocalError, match="other bits than its circuit"):
        sides(([1, 2, 3, 4], [1, 2, 3]))


def test_what_is_printed_of_a_computation_has_none_of_its_bits():
    assert repr(sides(([1, 2, 3],) * 2)["ann"]) == "TwoPartyComputation('ann', secret)"
