"""Words that go straight to the curator: under pairwise masks, or in the clear for experiments.

One round of [Bonawitz17]: masked input. The masks of all parties cancel, so the curator learns the
total; a party that does not answer leaves masks in it, and the sum cannot be finished. In the clear
there is no mask, and the curator sees every contribution: NOT PRIVATE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from common.crypto.sums.plan import SumPlan
from common.crypto.sums.words import as_total, contributed_words, read_words
from common.errors import RemoteProtocolError
from common.study.messages import StepMessage
from common.study.requests import encode_cells
from common.study.sides import CuratorSide, Move, PartySide, Post
from common.study.steps import StepAtParty

MASKED_INPUT = "masked input"  # the number of the chunk, and the chunk


class MaskedParty(PartySide):
    """A party that sends its words."""

    def __init__(self, plan: SumPlan, context: StepAtParty, values: NDArray[np.int64]) -> None:
        self._words = contributed_words(plan, context.memory.member, values, context.source)

    def begin(self) -> list[Post]:
        return chunk_posts(self._words)


class MaskedCurator(CuratorSide):
    """The curator of sums whose words come straight to it."""

    awaits: Collection[str] = (MASKED_INPUT,)

    def __init__(self, plan: SumPlan) -> None:
        self._plan = plan
        submitters = [name for name in plan.parties if plan.successor(name) is None]
        self._awaited = {(name, chunk) for name in submitters for chunk in range(plan.chunks)}
        self._words = np.zeros(plan.cells, dtype=np.uint64)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        return tuple(sorted({name for name, _ in self._awaited}))

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        chunk, payload = awaited_chunk(self._awaited, sender, message)
        self._take(sender, chunk, payload)
        self._awaited.discard((sender, chunk))
        return []

    def _take(self, sender: str, chunk: int, payload: bytes) -> None:
        self._words[self._plan.cells_of(chunk)] += read_words(self._plan, sender, chunk, payload)

    def result(self) -> bytes:
        return encode_cells(as_total(self._plan, self._words))


def chunk_posts(chunks: Iterable[bytes]) -> list[Post]:
    """Send the chunks of an aggregate, which are safe for the curator's eyes."""
    return [
        Post(round=MASKED_INPUT, payload=(number, chunk)) for number, chunk in enumerate(chunks)
    ]


def awaited_chunk(
    awaited: Collection[tuple[str, int]], sender: str, message: StepMessage
) -> tuple[int, bytes]:
    """Read a chunk from outside; RemoteProtocolError unless it is awaited of this party."""
    chunk, payload = message.parts(int, bytes)
    if (sender, chunk) not in awaited:
        raise RemoteProtocolError(f"chunk {chunk} of {sender!r} is not expected in this step")
    return chunk, payload


def answers(plan: SumPlan) -> Counter[str]:
    return Counter({MASKED_INPUT: plan.chunks})
