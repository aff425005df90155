"""Masked sums that do without up to d parties: the rounds of [Bonawitz17], and one for blame.

| round here        | of [Bonawitz17]           | party to curator         | curator to party      |
|-------------------|---------------------------|--------------------------|-----------------------|
| share keys        | 0 AdvertiseKeys and       | its key of the sum, a    | partners' keys, boxes;|
|                   | 1 ShareKeys               | sealed box per partner   | who dealt none        |
| masked input      | 2 MaskedInputCollection   | counts + noise + masks   |                       |
| accuse, open box, | none: there, a box that   | whose box does not open; | the accusation; the   |
| judge             | does not open ends it     | the secret of that box   | verdict and its proof |
| consistency check | 3 ConsistencyCheck        | a signature under it     | who is missing        |
| unmask            | 4 Unmasking               | a share of each holder   | partners' signatures  |

The study pins every party's identity, so keys need no round of their own before shares are sealed
to them: the paper's first two rounds are one. The proofs, and the cryptography of each round, are
in `common.crypto.sums.recovery` and `boxes`. Keys hold nothing of the rows, so a party pays when
its masked input leaves and not before.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.crypto.sums.boxes import Dispute, check_begun_again
from common.crypto.sums.plan import SumPlan
from common.crypto.sums.recovery import RecoverableCurator, RecoverableParty
from common.errors import RemoteProtocolError
from common.exchanges.masked import MASKED_INPUT, awaited_chunk, chunk_posts
from common.study.messages import StepMessage
from common.study.requests import encode_cells
from common.study.sides import BeginAgain, CuratorSide, Expel, Move, Notice, PartySide, Post
from common.study.steps import StepAtCurator, StepAtParty


class Round(enum.StrEnum):
    """The rounds, in the order of the table above."""

    SHARE_KEYS = "share keys"
    MASKED_INPUT = MASKED_INPUT
    ACCUSE = "accuse"
    OPEN_BOX = "open box"
    JUDGE = "judge"
    CONSISTENCY_CHECK = "consistency check"
    UNMASK = "unmask"


class At(enum.Enum):
    """Where a side is: the rounds that it takes there, by party and by curator."""

    SHARING_KEYS = ((Round.SHARE_KEYS,), (Round.SHARE_KEYS,))
    INPUT = (
        (Round.OPEN_BOX, Round.JUDGE, Round.CONSISTENCY_CHECK),
        (Round.MASKED_INPUT, Round.ACCUSE),
    )
    BLAME = ((Round.OPEN_BOX, Round.JUDGE), (Round.OPEN_BOX,))
    CHECKING = ((Round.UNMASK,), (Round.CONSISTENCY_CHECK,))
    UNMASKING = ((), (Round.UNMASK,))

    def __init__(self, party: tuple[str, ...], curator: tuple[str, ...]) -> None:
        self.party, self.curator = party, curator


def answers(plan: SumPlan) -> Counter[str]:
    """Count what a party sends, by round, in a sum without a dispute."""
    once = (Round.SHARE_KEYS, Round.CONSISTENCY_CHECK, Round.UNMASK)
    return Counter({**dict.fromkeys(once, 1), Round.MASKED_INPUT: plan.chunks})


class RecoveringParty(PartySide):
    """A party of one sum. Holds secrets; `count` returns its counts when keys are shared."""

    def __init__(
        self,
        plan: SumPlan,
        context: StepAtParty,
        count: Callable[[StepAtParty], NDArray[np.int64]],
    ) -> None:
        if context.again:
            check_begun_again(plan, may_miss=context.study.may_miss)
        self._plan, self._context, self._count = plan, context, count
        self._sum = RecoverableParty(plan, context.memory.member, source=context.source)
        self._at = At.SHARING_KEYS
        self._at_fault: set[str] = set()
        self._absent: tuple[str, ...] = ()

    @property
    def awaits(self) -> Collection[str]:
        return self._at.party

    @property
    def may_begin_again(self) -> bool:
        return self._at in (At.INPUT, At.BLAME)

    @property
    def absent(self) -> Collection[str]:
        return self._absent

    @property
    def at_fault(self) -> Collection[str]:
        return self._at_fault

    def begin(self) -> list[Post]:
        return [Post(round=Round.SHARE_KEYS, payload=(self._sum.offer(),), of_rows=False)]

    def receive(self, message: StepMessage) -> list[Post]:
        match message.round:
            case Round.SHARE_KEYS:
                return self._contribute(*message.parts(tuple, bytes))
            case Round.OPEN_BOX:
                receiver, signature = message.parts(str, bytes)
                secret = self._sum.open_box(receiver, signature)
                return [Post(round=Round.OPEN_BOX, payload=(receiver, secret), of_rows=False)]
            case Round.JUDGE:
                return self._judge(*message.parts(str, str, bytes, bytes, bytes))
            case Round.CONSISTENCY_CHECK:
                return self._sign(*message.parts(tuple))
            case _:
                shares = self._sum.reveal(*message.parts(bytes))
                self._at = At.UNMASKING
                return [Post(round=Round.UNMASK, payload=(shares,))]

    def _contribute(self, missing: tuple[str, ...], relayed: bytes) -> list[Post]:
        accusation = self._sum.take_boxes(relayed, missing)
        if accusation is not None:
            self._at = At.BLAME
            return [Post(round=Round.ACCUSE, payload=accusation, of_rows=False)]
        counts, source = self._count(self._context), self._context.source
        chunks = self._sum.contribute(counts, source=source)
        self._at = At.INPUT
        return chunk_posts(chunks)

    def _judge(
        self, dealer: str, receiver: str, evidence: bytes, signature: bytes, secret: bytes
    ) -> list[Post]:
        """See for ourselves who is at fault in a dispute: the study goes on without that party."""
        dispute = Dispute(
            dealer=dealer, receiver=receiver, evidence=evidence, signature=signature, secret=secret
        )
        self._at_fault.add(dispute.at_fault(self._plan, self._context.study.roster))
        return []

    def _sign(self, missing: tuple[str, ...]) -> list[Post]:
        still_in = self._at_fault - set(missing) - {self._context.name}
        if still_in:
            raise RemoteProtocolError(
                f"the curator goes on with {', '.join(sorted(still_in))}, which is at fault in a "
                "dispute about key shares"
            )
        signature = self._sum.sign(missing)
        self._absent, self._at = missing, At.CHECKING
        return [Post(round=Round.CONSISTENCY_CHECK, payload=(signature,))]


class RecoveringCurator(CuratorSide):
    """The curator of one sum. Learns the total over one list and nothing else."""

    def __init__(self, plan: SumPlan, context: StepAtCurator) -> None:
        self._plan, self._context, self._number = plan, context, context.number
        self._sum = RecoverableCurator(plan, context.study.roster)
        self._disputes: dict[tuple[str, str], Dispute] = {}  # by dealer and receiver
        self._left = list(plan.parties)
        self._awaited_chunks: set[tuple[str, int]] = set()
        self._missing: tuple[str, ...] = ()
        self._at, self._pending = At.SHARING_KEYS, set(plan.parties)

    @property
    def awaits(self) -> Collection[str]:
        return self._at.curator

    @property
    def waiting_for(self) -> tuple[str, ...]:
        return tuple(sorted(self._pending | {name for name, _ in self._awaited_chunks}))

    @property
    def done(self) -> bool:
        return self._at is At.UNMASKING and not self._pending

    @property
    def collects(self) -> bool:
        return self._at is At.INPUT

    @property
    def absent(self) -> Collection[str]:
        return self._missing

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        match message.round:
            case Round.MASKED_INPUT:
                chunk, payload = awaited_chunk(self._awaited_chunks, sender, message)
                self._sum.accept(sender, chunk, payload)
                self._awaited_chunks.discard((sender, chunk))
                return self._next()
            case Round.ACCUSE:
                return self._accuse(sender, *message.parts(str, bytes))
            case Round.OPEN_BOX:
                return self._answer(sender, *message.parts(str, bytes))
        if sender not in self._pending:
            raise RemoteProtocolError(f"a second {message.round!r} of {sender!r} is not expected")
        (payload,) = message.parts(bytes)
        match message.round:
            case Round.SHARE_KEYS:
                self._sum.take_offer(sender, payload)
            case Round.CONSISTENCY_CHECK:
                self._sum.take_signature(sender, payload)
            case _:
                self._sum.take_revealed(sender, payload)
        self._pending.discard(sender)
        return self._next()

    def without(self, party: str) -> list[Move]:
        self._leave(party)
        return self._next()

    def result(self) -> bytes:
        return encode_cells(self._sum.total())

    def _leave(self, party: str) -> None:
        self._left = [name for name in self._left if name != party]
        self._pending.discard(party)
        self._awaited_chunks = {chunk for chunk in self._awaited_chunks if chunk[0] != party}

    def _accuse(self, receiver: str, dealer: str, signature: bytes) -> list[Move]:
        """Take in that a party cannot open a partner's box; it sends no words before a verdict."""
        chunks = {chunk for chunk in self._awaited_chunks if chunk[0] == receiver}
        if len(chunks) < self._plan.chunks:
            raise RemoteProtocolError(f"an accusation of {receiver!r} is not expected here")
        dispute = self._sum.dispute(dealer=dealer, receiver=receiver, signature=signature)
        self._disputes[dealer, receiver] = dispute
        self._awaited_chunks -= chunks
        words = (
            f"{receiver} cannot open the key shares of {dealer} in step {self._number + 1}; "
            f"{dealer} is asked to open them"
        )
        return [Notice(words), *self._next()]

    def _answer(self, dealer: str, receiver: str, secret: bytes) -> list[Move]:
        dispute = self._disputes.get((dealer, receiver))
        if dispute is None or dispute.secret is not None:
            raise RemoteProtocolError(f"{dealer!r} is not asked for its box for {receiver!r}")
        self._disputes[dealer, receiver] = replace(dispute, secret=secret)
        if any(other.dealer == dealer for other in self._unanswered()):
            return []
        self._pending.discard(dealer)
        return self._next()

    def _next(self) -> list[Move]:
        """Begin the next round, unless this one waits for a party."""
        if self._pending or self._awaited_chunks:
            return []
        match self._at:
            case At.SHARING_KEYS:
                return self._relay_keys()
            case At.INPUT:
                return self._dispute()
            case At.BLAME:
                return self._judge()
            case At.CHECKING:
                self._await(At.UNMASKING)
                return [
                    Post(round=Round.UNMASK, payload=(self._sum.signatures_for(name),), to=name)
                    for name in self._left
                ]
            case At.UNMASKING:
                return []

    def _await(self, at: At) -> None:
        self._at, self._pending = at, set(self._left)

    def _relay_keys(self) -> list[Move]:
        absent = tuple(name for name in self._plan.parties if name not in self._left)
        keys = self._sum.relay(absent)
        self._awaited_chunks = {(name, n) for name in keys for n in range(self._plan.chunks)}
        self._at = At.INPUT
        return [
            Post(round=Round.SHARE_KEYS, payload=(absent, boxes), to=name)
            for name, boxes in keys.items()
        ]

    def _unanswered(self) -> list[Dispute]:
        """List the disputes whose two parties are there, and whose dealer has not answered."""
        return [
            dispute
            for pair, dispute in self._disputes.items()
            if dispute.secret is None and set(pair) <= set(self._left)
        ]

    def _dispute(self) -> list[Move]:
        """Ask the dealers of boxes that do not open; go on if there is none."""
        unanswered = self._unanswered()
        if not unanswered:
            return self._judge()
        self._at, self._pending = At.BLAME, {dispute.dealer for dispute in unanswered}
        return [
            Post(round=Round.OPEN_BOX, payload=(one.receiver, one.signature), to=one.dealer)
            for one in unanswered
        ]

    def _judge(self) -> list[Move]:
        """Expel who is at fault; then publish the list, or begin the sum again."""
        moves: list[Move] = []
        for dispute in self._disputes.values():
            if dispute.secret is None:
                continue
            party = dispute.at_fault(self._plan, self._context.study.roster)
            if party in self._left:
                moves.append(_expulsion(dispute, party, step=self._number))
                self._leave(party)
        left = self._left
        if any(receiver in left and dealer not in left for dealer, receiver in self._disputes):
            return [*moves, BeginAgain()]  # a party that is there has no share of one that left
        self._missing = self._sum.close()
        self._await(At.CHECKING)
        listed = [
            Post(round=Round.CONSISTENCY_CHECK, payload=(self._missing,), to=name)
            for name in self._left
        ]
        return [*moves, *listed]


def _expulsion(dispute: Dispute, party: str, *, step: int) -> Expel:
    """Say in words what a party at fault did, and prove it."""
    dealer, receiver = dispute.dealer, dispute.receiver
    if party == dealer:
        reason = (
            f"party {party!r} dealt a box of key shares in step {step} that {receiver!r} cannot "
            "open, nor can any other"
        )
    else:
        reason = (
            f"party {party!r} said in step {step} that it cannot open the box of key shares of "
            f"{dealer!r}, and the box opens"
        )
    return Expel(
        party=party,
        reason=reason,
        round=Round.JUDGE,
        payload=(dealer, receiver, dispute.evidence, dispute.signature, dispute.secret or b""),
        facts={"dealer": dealer, "receiver": receiver},
    )
