"""Two-party computation: its result, its messages and their sizes, its refusals."""

from dataclasses import dataclass

import numpy as np
import pytest

from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.sums.plan import PartialForwarded
from common.crypto.two_party import gates as arithmetic
from common.crypto.two_party.computation import (
    ComputationContext,
    TwoPartyComputation,
    message_bytes,
)
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
    place = ComputationContext(
        study=bytes(32), step=3, digest=digest, garbler="ann", evaluator="bob"
    )
    return {
        name: TwoPartyComputation(
            place,
            Product(),
            LocalParty(name=name, identity=IDENTITIES[name], roster=ROSTER),
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
    parties, others = sides(([1, 2, 3],) * 2), sides(([1, 2, 3],) * 2, digest=b"other")
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


def test_a_computation_takes_as_many_bits_as_its_circuit():
    with pytest.raises(LocalError, match="other bits than its circuit"):
        sides(([1, 2, 3, 4], [1, 2, 3]))


def test_what_is_printed_of_a_computation_has_none_of_its_bits():
    assert repr(sides(([1, 2, 3],) * 2)["ann"]) == "TwoPartyComputation('ann', secret)"
