"""What a party is and has, for all its studies: keys, policy, decisions, ledger, rows.

A folder that was rolled back lacks what was spent since; `require_no_rollback` notices.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from common.crypto.identities.identity import Identity
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.errors import LocalError, PolicyError, RemoteProtocolError
from common.exchanges.setup import BlinderOfKey
from common.privacy.randomness import SourceOfStep
from common.privacy.spending import Spending
from common.release.prior import Priors
from common.service.alerts import Hook
from common.service.process import Clock, stamp
from common.study.document import Study
from common.study.ids import StudyId, short_id
from common.study.progress import StudySummary
from common.study.requests import OwnersRows
from common.study.script import ScriptRun
from party.client.connection import Connection
from party.collection import Collection
from party.journal import CURATOR, Journal, Notes
from party.ledger import Ledger
from party.owner.decisions import Approvals, require_not_over
from party.owner.dry_run import PlannedStep, fewest_owners
from party.owner.policy import Circumstances, Policy
from party.owner.policy_file import PolicyFile
from party.owner.review import Review, review
from party.role import PartyRole
from party.sources.source import Snapshot

logger = logging.getLogger(__name__)

MOST_PRIOR_BYTES = 1 << 32


class PinnedRows(OwnersRows, Protocol):
    """A party's rows, and which table they are."""

    @property
    def snapshot(self) -> Snapshot: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyContext:
    """What a party is and has, for all its studies."""

    name: str
    identity: Identity  # its keys, as studies pin them
    policies: PolicyFile  # what its owner takes part in, as the file says now
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
    # Fingerprints of the authorities of curators; TLS checks that one of them certified ours.
    authorities: Sequence[str] = ()
    # Makes the source of Paillier blinding factors, once per key.
    blinder_of: BlinderOfKey = FixedBaseBlinder
    hook: Hook = field(default_factory=Hook)  # where the owner is told of events
    # The earlier releases that studies build on, if there is a place for them.
    priors: Priors | None = None
    source_of_people: bool = False  # whether our source says whose row a row is

    @property
    def policy(self) -> Policy:
        return self.policies.current

    def take_prior(self, study: Study, connection: Connection) -> None:
        """Fetch the release that a study builds on, once; InputError if another is sent."""
        if self.priors is not None and not self.priors.has(study):
            pieces = connection.fetch_release(study.digest, prior=True)
            prior = self.priors.keep(pieces, study, most=MOST_PRIOR_BYTES)
            logger.info(
                "study %s builds on release %s, signed by %s", short_id(study.digest),
                prior.digest[:16], ", ".join(prior.signers) or "no one",
            )  # fmt: skip

    def review(self, study: Study, source: PinnedRows, policy: Policy | None = None) -> Review:
        """Review a study by a policy; by default, by the one that counts now."""
        policy = policy or self.policy
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
            spent_in_total=self.ledger.totals(besides=digest),
            spent_in_year=self.ledger.totals(besides=digest, year=self.ledger.year(self.now())),
            source_of_people=self.source_of_people,
            curator=self.authority(policy),
        )
        return review(study, policy, circumstances, steps)

    def role(self, study: Study, rows: PinnedRows, source_of: SourceOfStep) -> PartyRole:
        return PartyRole(
            study=study, run=self.begin(study), name=self.name, identity=self.identity, data=rows,
            source_of=source_of, blinder_of=self.blinder_of,
        )  # fmt: skip

    def authority(self, policy: Policy) -> str | None:
        """Return the authority that certified the curator, or the one that is least known."""
        return policy.least_known(self.authorities) if self.authorities else None

    def withdrew(self, study: StudyId) -> bool:
        """Say whether the owner took an approval back."""
        decision = self.approvals.decision(study)
        return decision is not None and decision.withdrawn_at is not None

    def today(self) -> dt.date:
        """Return the day by which studies expire."""
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
        return stamp(self.clock())


def _cost(study: Study, steps: Sequence[PlannedStep]) -> Spending:
    """Return what is approved: the cost of the steps, which may pass what the study claims."""
    cost = max(study.promise.budget, sum((step.cost for step in steps), Fraction(0)))
    return Spending.of(cost, study.delta)


def require_open(
    study: Study,
    party: PartyContext,
    dial: Callable[[], AbstractContextManager[Connection]] | None,
    *,
    warn: Callable[[str], None],
) -> None:
    """Refuse a study that is over, as far as we know, or the curator; offline without `dial`.

    A study that the curator does not know may come.
    """
    require_not_over(study.digest, party.journal)
    if dial is None:
        return
    try:
        with dial() as connection:
            summaries = connection.enrol(party.name, party.identity.public.encoded)
    except RemoteProtocolError as error:
        warn(f"the curator does not say whether the study is still open: {error}")
        return
    for summary in summaries:
        if summary.study == study.digest and summary.state.over:
            raise PolicyError(
                f"study {study.name!r}: it is over, at the curator it is {summary.state}. Nothing "
                "was decided. Ask for a new study"
            )


def require_no_rollback(journal: Journal, policy: Policy, studies: Iterable[StudySummary]) -> None:
    """Refuse to go on if the curator has messages of ours that the journal does not have.

    A party journals before it sends. So if the curator has more, the folder was rolled back to an
    older copy, is new, or is used by a second node; and its ledger lacks what those messages cost.

    Raises:
        LocalError: naming the studies, and the two ways out.
    """
    forgotten = [
        study
        for study in studies
        if study.submitted > journal.outbox.newest(study.study, CURATOR)
        and not policy.writes_off(study.study)
    ]
    if not forgotten:
        return
    listed = "; ".join(
        f"study {short_id(study.study)} ({study.name!r}): {study.submitted}, here "
        f"{journal.outbox.newest(study.study, CURATOR)}"
        for study in forgotten
    )
    keys = ", ".join(f'"{short_id(study.study)}"' for study in forgotten)
    raise LocalError(
        "rollback of the state folder: the curator has more messages of ours than the journal here "
        f"({listed}). The folder was restored from an older copy, is new, or is used by two nodes. "
        "Its ledger lacks what those messages cost, so nothing is answered. Run one node, on the "
        "newest copy of the folder. If the newest copy is lost, lower epsilon_in_total in the "
        f"policy by what these studies cost, and add to its [budget]: forgotten = [{keys}]"
    )
