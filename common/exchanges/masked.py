"""Words that go straight to the curator: under pairwise masks, or in the clear for experiments.

One round of [Bonawitz17]: masked input. The masks of all parties cancel, so the curator learns the
total; a party that does not answer leaves masks in it, and the sum cannot be finished. In the clear
there is no mask, and the curator sees every contribution: NOT PRIVATE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from common.crypto.sums.plan import ContributionSubmitted, SumPlan
from common.crypto.sums.secure_sum import SumCurator, SumParty
from common.errors import RemoteProtocolError
from common.study.messages import StepMessage
from common.study.results import encode_cells
from common.study.sides import CuratorSide, Move, PartySide, Post
from common.study.steps import StepAtCurator, StepAtParty

MASKED_INPUT = "masked input"  # the number of the chunk, and the chunk


class MaskedParty(PartySide):
    """A party that sends its words. Holds its counts: secret."""

    def __init__(self, plan: SumPlan, context: StepAtParty, values: NDArray[np.int64]) -> None:
        member, source = context.memory.member, context.source
        self._sum = SumParty(plan, member, values, source=source)

    def begin(self) -> list[Post]:
        return [
            chunk_post(chunk)
            for chunk in self._sum.begin()
            if isinstance(chunk, ContributionSubmitted)  # nothing is forwarded outside of a ring
        ]


class MaskedCurator(CuratorSide):
    """The curator of sums whose words come straight to it; and of a ring's product."""

    awaits: Collection[str] = (MASKED_INPUT,)

    def __init__(self, plan: SumPlan, context: StepAtCurator) -> None:
        self._plan = plan
        self._sum = SumCurator(plan, private_key=context.private_key, source=context.source)
        submitters = [name for name in plan.parties if plan.successor(name) is None]
        self._awaited = {(name, chunk) for name in submitters for chunk in range(plan.chunks)}

    @property
    def waiting_for(self) -> tuple[str, ...]:
        return tuple(sorted({name for name, _ in self._awaited}))

    @property
    def done(self) -> bool:
        return not self._awaited

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        contribution = contribution_in(sender, message)
        expect_chunk(self._awaited, contribution)
        self._sum.accept(contribution)
        self._awaited.discard((sender, contribution.chunk))
        return []

    def result(self) -> bytes:
        return encode_cells(self._sum.total())


def chunk_post(chunk: ContributionSubmitted) -> Post:
    """Send one chunk of an aggregate, which is safe for the curator's eyes."""
    return Post(round=MASKED_INPUT, payload=(chunk.chunk, chunk.payload))


def contribution_in(sender: str, message: StepMessage) -> ContributionSubmitted:
    """Read a chunk from outside."""
    chunk, payload = message.parts(int, bytes)
    return ContributionSubmitted(sender=sender, chunk=chunk, payload=payload)


def expect_chunk(awaited: set[tuple[str, int]], contribution: ContributionSubmitted) -> None:
    """Raise RemoteProtocolError unless this chunk of this party is awaited."""
    if (contribution.sender, contribution.chunk) not in awaited:
        raise RemoteProtocolError(
            f"chunk {contribution.chunk} of {contribution.sender!r} is not expected in this step"
        )


def answers(plan: SumPlan) -> Counter[str]:
    """Count what a party sends, by round."""
    return Counter({MASKED_INPUT: plan.chunks})
