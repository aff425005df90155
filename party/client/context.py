"""What a party is and has, for all its studies: keys, policy, decisions, ledger, rows."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from common.crypto.identities.identity import Identity
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.privacy.spending import Spending
from common.release.prior import Priors
from common.service.alerts import Hook
from common.service.process import Clock, stamp
from common.study.document import Study
from common.study.ids import StudyId, short_id
from common.study.requests import PartyRows
from common.study.script import ScriptRun
from party.client.connection import Connection
from party.collection import Collection
from party.journal import Journal
from party.ledger import Ledger
from party.notes import Notes
from party.owner.approvals import Approvals
from party.owner.policy import Circumstances, Policy
from party.owner.review import PlannedStep, Review, fewest_owners, review
from party.role import BlinderOfKey
from party.sources.source import Snapshot

logger = logging.getLogger(__name__)

MOST_PRIOR_BYTES = 1 << 32


class PinnedRows(PartyRows, Protocol):
    """A party's rows, and which table they are."""

    @property
    def snapshot(self) -> Snapshot:
        """Which table this is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyContext:
    """What a party is and has, for all its studies."""

    name: str
    identity: Identity  # its keys, as studies pin them
    policy: Policy  # what its owner takes part in
    approvals: Approvals  # what its owner decided
    journal: Journal  # with the ledger and the approvals in one file
    ledger: Ledger
    notes: Notes  # what the node says about its studies, for the owner
    collection: Collection  # the releases that were fetched
    # Raises InputError if the owner's table cannot be read, whatever the study.
    check_source: Callable[[], None]
    open_source: Callable[[Study], PinnedRows]  # reads the owner's table in a study's domains
    begin: Callable[[Study], ScriptRun]  # begins a fresh copy of a study's script
    # What a study asks of a party, at most, step by step.
    forecast: Callable[[Study, str], Sequence[PlannedStep]]
    clock: Clock
    # Fingerprint of the authority that certified the curator; TLS checks that it did.
    authority: str | None = None
    # Makes the source of Paillier blinding factors, once per key.
    blinder_of: BlinderOfKey = FixedBaseBlinder
    hook: Hook = field(default_factory=Hook)  # where the owner is told of events
    # The earlier releases that studies build on, if there is a place for them.
    priors: Priors | None = None

    def take_prior(self, study: Study, connection: Connection) -> None:
        """Fetch the release that a study builds on, if it does and we do not have it.

        Raises:
            InputError: what the curator sends is not what the study names, or has another schema.
        """
        if self.priors is not None and not self.priors.has(study):
            pieces = connection.fetch_release(study.digest, prior=True)
            found = self.priors.keep(pieces, study, most=MOST_PRIOR_BYTES)
            logger.info(
                "study %s builds on release %s, signed by %s", short_id(study.digest),
                found.digest[:16], ", ".join(found.signers) or "nobody",
            )  # fmt: skip

    def review(self, study: Study, source: PinnedRows) -> Review:
        steps = self.forecast(study, self.name)
        digest = study.digest.hex()
        circumstances = Circumstances(
            party=self.name,
            identity=self.identity.public,
            fewest_owners=fewest_owners(steps),
            rows=source.rows,
            note=source.snapshot.note,
            data_as_of=source.snapshot.as_of,
            data_newest=source.snapshot.newest,
            today=self.today(),
            cost=_cost(study, steps),
            spent_in_total=self.ledger.spending(besides=digest),
            spent_in_year=self.ledger.spending(besides=digest, year=self.ledger.year(self.now())),
            signer=study.signer,
            curator=self.authority,
        )
        return review(study, self.policy, circumstances, steps)

    def withdrew(self, study: StudyId) -> bool:
        """Whether the owner took an approval back."""
        decision = self.approvals.decision(study)
        return decision is not None and decision.withdrawn_at is not None

    def today(self) -> dt.date:
        """The day by which studies expire."""
        return self.clock().astimezone(dt.UTC).date()

    def alert(self, study: StudyId, event: str, *, words: str = "") -> None:
        """Tell the owner of an event; the words must not depend on rows."""
        self.hook.tell_later(
            {
                "service": f"party {self.name}",
                "event": event,
                "study": study.hex(),
                "words": words,
                "at": self.now(),
            }
        )

    def now(self) -> str:
        """The time as records have it."""
        return stamp(self.clock())


def _cost(study: Study, steps: Sequence[PlannedStep]) -> Spending:
    """What is approved: what the steps cost, which may pass what the study claims."""
    cost = max(study.promise.budget, sum((step.cost for step in steps), Fraction(0)))
    return Spending.of(cost, study.delta)
