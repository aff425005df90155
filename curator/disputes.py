"""The disputes about boxes of key shares in one sum, as the curator keeps them.

A receiver accuses a dealer, the dealer answers, and both can be judged: see
`common.crypto.sums.boxes`. `CuratorRole` says when each of that happens.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from common.crypto.identities.identity import PublicIdentity
from common.crypto.sums.boxes import Dispute
from common.crypto.sums.plan import SumPlan
from common.crypto.sums.recovery import RecoverableCurator
from common.errors import RemoteProtocolError


@dataclass(slots=True)
class Disputes:
    """Who could not open whose box, and what the dealers answered."""

    accusations: dict[tuple[str, str], bytes] = field(default_factory=dict)  # dealer, receiver
    answers: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def accuse(
        self,
        recoverable: RecoverableCurator,
        *,
        dealer: str,
        receiver: str,
        signature: bytes,
    ) -> None:
        """Take an accusation in, or raise and change nothing."""
        recoverable.require_accused(dealer=dealer, receiver=receiver, signature=signature)
        self.accusations[dealer, receiver] = signature

    def answer(self, *, dealer: str, receiver: str, secret: bytes) -> None:
        """Take a dealer's answer in, or raise and change nothing."""
        if (dealer, receiver) not in self.accusations or (dealer, receiver) in self.answers:
            raise RemoteProtocolError(f"{dealer!r} is not asked for its box for {receiver!r}")
        self.answers[dealer, receiver] = secret

    def unanswered(self, left: Collection[str]) -> list[tuple[str, str]]:
        """List the disputes, as dealer and receiver, whose dealer is there and has not answered."""
        return [
            pair for pair in self.accusations if pair not in self.answers and set(pair) <= set(left)
        ]

    def verdicts(
        self,
        recoverable: RecoverableCurator,
        plan: SumPlan,
        identities: Mapping[str, PublicIdentity],
    ) -> list[tuple[Dispute, str]]:
        """Return every dispute that was answered, and who is at fault in it."""
        disputes = [
            Dispute(
                dealer=dealer,
                receiver=receiver,
                evidence=recoverable.evidence(dealer=dealer, receiver=receiver),
                signature=self.accusations[dealer, receiver],
                secret=secret,
            )
            for (dealer, receiver), secret in self.answers.items()
        ]
        return [(dispute, dispute.at_fault(plan, identities)) for dispute in disputes]

    def left_a_gap(self, left: Collection[str]) -> bool:
        """Return whether a party that is there has no share of one that left: begin again then."""
        return any(receiver in left and dealer not in left for dealer, receiver in self.accusations)


def why_at_fault(dispute: Dispute, party: str, *, step: int) -> str:
    """Say in words what a party at fault did."""
    if party == dispute.dealer:
        return (
            f"party {party!r} dealt a box of key shares in step {step} that "
            f"{dispute.receiver!r} cannot open, nor can any other"
        )
    return (
        f"party {party!r} said in step {step} that it cannot open the box of key shares of "
        f"{dispute.dealer!r}, and the box opens"
    )
