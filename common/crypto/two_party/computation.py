"""The two sides of a two-party computation, as three sealed messages and a result.

    garbler     asks for the transfer of the evaluator's labels
    evaluator   answers it; its own input is in the answer, hidden
    garbler     sends the gates, and the labels of its own input
    evaluator   computes, and knows the result; it publishes it

Neither side learns anything else about the other's input, as long as both follow the protocol: the
garbler sees an answer that is pseudorandom whatever the input, the evaluator one label of each
wire, whose meaning it does not know [LindellPinkas09]. A party that deviates is not caught. The
curator, which passes the sealed envelopes on, sees their sizes, which are public.

[LindellPinkas09] Lindell, Pinkas: A proof of security of Yao's protocol for two-party computation,
Journal of Cryptology 22.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from common.crypto.identities.envelope import Mailbox
from common.crypto.identities.identity import LocalParty
from common.crypto.two_party.garbling import (
    LABEL_BYTES,
    Evaluator,
    Garbler,
    Labels,
    draw_labels,
    draw_offset,
    last_bits,
    to_bytes,
    to_labels,
)
from common.crypto.two_party.gates import Bits, Gates, InTheOpen, Wire
from common.crypto.two_party.transfer import TransferSender, answer, transfer_bytes
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource


class Circuit(Protocol):
    """A function of two inputs, as gates."""

    @property
    def input_bits(self) -> tuple[int, int]:
        """The number of the garbler's bits, and of the evaluator's."""

    @property
    def output_bits(self) -> int:
        """The number of bits that come out."""

    def outputs(self, gates: Gates, first: Wire, second: Wire) -> Wire:
        """Compute; an entry of a wire for each bit that comes in, and that comes out."""


def message_bytes(circuit: Circuit) -> tuple[int, int, int]:
    """Return how long the three messages are, before they are sealed: all of it is public."""
    gates = _Counter()
    mine, theirs = circuit.input_bits
    circuit.outputs(gates, np.zeros(mine, np.bool_), np.zeros(theirs, np.bool_))
    labels = mine + 2 * gates.number
    requested, answered = transfer_bytes(theirs)
    return requested, answered, labels * LABEL_BYTES + -(-circuit.output_bits // 8)


class _Counter(InTheOpen):
    """Counts the gates that cost something."""

    number = 0

    def both(self, one: Wire, other: Wire) -> Wire:
        self.number += len(one)
        return one & other


class TwoPartyComputation:
    """One side of one computation. Holds this party's input: secret."""

    def __init__(
        self,
        circuit: Circuit,
        party: LocalParty,
        bits: Bits,
        source: RandomSource,
        *,
        study: bytes,
        step: int,
        digest: bytes,
        ends: tuple[str, str],
    ) -> None:
        """Take this party's input; `ends` are the names of garbler and evaluator.

        The digest is of the step and of all that was published before. It is in every envelope, so
        that computations do not meet.
        """
        self._circuit, self._bits, self._source = circuit, bits, source
        self._topic = f"two-party computation {digest.hex()}"
        self._mailbox = Mailbox(party, study=study, step=step)
        self._garbles = party.name == ends[0]
        self.other = ends[1] if self._garbles else ends[0]
        self._name = party.name
        if len(bits) != circuit.input_bits[0 if self._garbles else 1]:
            raise LocalError("the input has other bits than its circuit")
        self._offset = draw_offset(source)
        self._transfer = TransferSender(self._offset, source) if self._garbles else None
        self._labels: Labels | None = None
        self.finished = False

    def begin(self) -> list[bytes]:
        """Return the envelopes that leave unasked: the garbler's opening."""
        return [] if self._transfer is None else [self._sealed(self._transfer.ask())]

    def receive(self, sender: str, envelope: bytes) -> bytes | Bits:
        """Take the envelope that the other side owes; return the one that leaves, or the result."""
        if sender != self.other or self.finished:
            raise RemoteProtocolError(
                f"{self._name!r} expects no message of {sender!r} in this computation"
            )
        content = self._mailbox.open(sender, topic=self._topic, envelope=envelope)
        if self._transfer is not None:
            gates = self._garbled(self._transfer, content)
            self.finished = True
            return self._sealed(gates)
        if self._labels is None:
            reply, self._labels = answer(self._bits, content, self._source)
            return self._sealed(reply)
        bits = self._evaluated(self._labels, content)
        self.finished = True
        return bits

    def _garbled(self, transfer: TransferSender, content: bytes) -> bytes:
        """Return labels of the own input, the gates, and what the last bits of the outputs mean."""
        theirs = transfer.finish(content, self._circuit.input_bits[1])
        mine = draw_labels(len(self._bits), self._source)
        gates = Garbler(self._offset)
        outputs = self._circuit.outputs(gates, mine, theirs)
        inputs = np.where(self._bits[:, None], mine ^ self._offset, mine)
        return to_bytes(inputs) + np.packbits(last_bits(outputs)).tobytes() + gates.rows()

    def _evaluated(self, labels: Labels, content: bytes) -> Bits:
        inputs = self._circuit.input_bits[0] * LABEL_BYTES
        outputs = self._circuit.output_bits
        end = inputs + -(-outputs // 8)
        if len(content) < end:
            raise RemoteProtocolError("the gates of a two-party computation are cut short")
        gates = Evaluator(content[end:])
        labels_out = self._circuit.outputs(gates, to_labels(content[:inputs]), labels)
        gates.finish()
        meaning = np.unpackbits(np.frombuffer(content[inputs:end], np.uint8), count=outputs)
        return np.asarray(last_bits(labels_out) ^ meaning.astype(np.bool_))

    def _sealed(self, content: bytes) -> bytes:
        return self._mailbox.seal(self.other, topic=self._topic, plaintext=content)

    def __repr__(self) -> str:
        return f"TwoPartyComputation({self._name!r}, secret)"
