"""One study at one party, from the invitation to the end, turn by turn.

Fetch the study and compare its digest; check it against the owner's policy; when the owner has
approved, sign; then take in messages and hand in answers until the study is over. A turn does what
can be done now: waiting for the owner, or for other parties, needs no turn. Every turn has a
connection of its own and begins with what both sides have on disk, so a lost connection does no
harm.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NoReturn

from common.errors import InputError, PolicyError, RemoteProtocolError
from common.service.process import software
from common.study.document import Study
from common.study.ids import StudyId, short_id
from common.study.progress import StudyState, StudySummary
from common.study.signatures import approval_statement
from common.wire.catalogue import ErrorCode, WireError
from common.wire.frames import NumberedMessage
from party.client.connection import Connection
from party.client.context import PartyContext, PinnedRows
from party.client.turn import Turn
from party.journal import CURATOR, JournalState
from party.ledger import Caps
from party.node import PartyNode
from party.owner.decisions import OwnerDecision
from party.owner.policy import Policy, expiry
from party.owner.review import Review

logger = logging.getLogger(__name__)

_ACKNOWLEDGE_EVERY = 8  # messages; an acknowledgement costs a call, and saves the curator's disk
_OPENINGS = 3  # of a table that does not fit a study, before it is refused: it may be in the works
# All that the curator is told: why is the owner's own business, and may say something about rows.
_DECLINED = "the owner does not take part in this study"
_OTHER_PRIOR = "the prior is not the release that the study names"
_OTHER_CURATOR = "this curator is not the one that the study pins"
_OUTSIDE_POLICY = "the owner's policy does not allow this study"


class Need(enum.IntEnum):
    """What a study needs of its party, most urgent first."""

    WORK = 0
    REVIEW = 1
    NOTHING = 2  # for now: its owner, or other parties, come next
    OVER = 3


def decline(connection: Connection, study: StudyId, *, public_reason: str = _DECLINED) -> None:
    """Tell the curator that the owner takes no part, or no longer; a closed study stays closed."""
    try:
        connection.decline(study, public_reason)
    except WireError as error:
        if error.code is not ErrorCode.STUDY_CLOSED:
            raise
        logger.info("study %s is closed already", short_id(study))


class PartySession:
    """One study at one party. Turns are taken one at a time.

    Between two turns a session keeps what the next one would have to fetch, read and replay again:
    the study, the rows, the node. `drop` lets go of all three.
    """

    def __init__(self, study: StudyId, context: PartyContext) -> None:
        self._digest = study
        self._context = context
        self._study: Study | None = None
        self._source: PinnedRows | None = None
        self._node: PartyNode | None = None
        self._outbox: list[NumberedMessage] = []  # to hand in when the message at hand is taken in
        self._waits_for_owner = self._rehearses = False
        self._unopened = 0  # how many times the rows did not fit the study

    def needs(self, summary: StudySummary) -> Need:
        """Say what there is to do, by the curator's summary and our own file."""
        journal = self._context.journal
        record = journal.record(self._digest)
        if record is None:
            if summary.state.over:
                return Need.OVER
            if self._context.approvals.decision(self._digest) is not None:
                return Need.WORK
            # A policy that approves by itself since then decides about it after all.
            decides = self._context.policy.approves(rehearsal=self._rehearses)
            return Need.NOTHING if self._waits_for_owner and not decides else Need.REVIEW
        running, is_open = record.state is JournalState.RUNNING, not summary.state.over
        if not running and not is_open:
            return Need.OVER
        has_more = (
            summary.queued > journal.inbox.newest(self._digest, CURATOR)
            or next(journal.outbox.due(self._digest, CURATOR), None) is not None
        )
        if has_more or (running and not (summary.approved and is_open)):
            return Need.WORK
        return Need.NOTHING if running else Need.OVER

    def ended(self) -> JournalState | None:
        """Return how the study ended here; None if it did not, or never began."""
        record = self._context.journal.record(self._digest)
        return None if record is None or record.state is JournalState.RUNNING else record.state

    @property
    def holds_rows(self) -> bool:
        return self._source is not None

    def drop(self) -> None:
        """Drop study, rows and role; the next turn fetches and replays them, as after a crash."""
        self._study = self._source = self._node = None

    def take_turn(
        self, turn: Turn, connection: Connection, summary: StudySummary
    ) -> JournalState | None:
        """Do what can be done now; return how the study ended, None if it goes on.

        Raises:
            PolicyError: the owner declined, or the policy refuses the study.
            RemoteProtocolError: the curator cannot be reached, or does what it must not.
            InputError: the party's own files or data are not in order.
        """
        decision = self._context.approvals.decision(self._digest)
        if decision is not None and not decision.approved:
            # Whatever the curator says it has: nothing works around an owner's no.
            word = "declined" if decision.withdrawn_at is None else "withdrawn"
            self._refuse(connection, f"study {short_id(self._digest)} was {word} by its owner")
        if summary.state.over and self._queue_is_gone(connection):
            return self._close(summary)
        study = self._fetched(connection)
        if decision is None or (not summary.approved and not summary.state.over):
            self._node = self._approve(connection, study)
        elif self._node is None:
            self._context.take_prior(study, connection)
            self._node = self._make_node(study, self._opened(study), decision)
        if self._node is None:
            return None
        self._catch_up(connection, self._node, summary)
        self._work(turn, connection, self._node, summary)
        if self._node.state is not JournalState.RUNNING:
            return self._told(self._node.state)
        if not turn.ceded:
            raise WireError(ErrorCode.UNAVAILABLE, "the curator ended the stream of work")
        return None

    def _queue_is_gone(self, connection: Connection) -> bool:
        """Say whether the curator has no message left for us about a study that ended there.

        We came too late for them, or one of the two folders was rolled back.
        """
        received = self._context.journal.inbox.newest(self._digest, CURATOR)
        try:
            return next(connection.work(self._digest, received=received), None) is None
        except WireError as error:
            if error.code is not ErrorCode.OUT_OF_ORDER:
                raise
            return True

    def _close(self, summary: StudySummary) -> JournalState:
        """End a study here that ended at the curator, without its last messages.

        It finished for us, too, if it was done with everything that we ever sent: whatever is
        missing here was published, and is in the release.
        """
        journal, at = self._context.journal, self._context.now()
        sent = journal.outbox.newest(self._digest, CURATOR)
        ending = JournalState.ABORTED
        if summary.state is StudyState.DONE and 0 < sent == summary.submitted:
            journal.acknowledge(self._digest, sent, at=at)
            ending = JournalState.FINISHED
        reason = f"at the curator the study is {summary.state}, and its last messages are gone"
        journal.end(self._digest, ending, reason=reason, at=at)
        return self._told(ending)

    def _told(self, ending: JournalState) -> JournalState:
        spent = self._context.ledger.spent(self._digest.hex())
        logger.info("study %s: %s, epsilon %s spent", short_id(self._digest), ending.value, spent)
        return ending

    def _work(
        self, turn: Turn, connection: Connection, node: PartyNode, summary: StudySummary
    ) -> None:
        """Take in and answer, until the study, the stream or the turn is over."""
        stream = connection.work(self._digest, received=node.newest_received)
        while True:
            with turn.waiting(connection, has_all=node.newest_received >= summary.queued):
                whole = next(stream, None)
            if whole is None:
                return
            self._take_in(connection, node, whole)
            turn.messages += 1
            self._hand_in(connection, node)
            over = node.state is not JournalState.RUNNING
            if over or whole.sequence % _ACKNOWLEDGE_EVERY == 0:
                connection.acknowledge(self._digest, node.newest_received)
            if turn.ceded and not over:
                return

    def _take_in(self, connection: Connection, node: PartyNode, whole: NumberedMessage) -> None:
        """Take in a message; what must not be answered ends the study, and the curator hears so."""
        try:
            node.receive(whole.sequence, whole.body)
        except (RemoteProtocolError, PolicyError) as error:
            if whole.sequence > node.newest_received + 1:
                raise  # a gap, which another connection closes, and nothing that was asked of us
            logger.error("study %s is refused: %s", short_id(self._digest), error)
            node.refuse(error)
            self._hand_in(connection, node)
            raise

    def _fetched(self, connection: Connection) -> Study:
        """Return the study, with the digest that was asked for."""
        if self._study is None:
            study = _study_in(connection.fetch_study(self._digest))
            if study.digest != self._digest:
                raise RemoteProtocolError(
                    f"the curator sent study {short_id(study.digest)}, and this node asked for "
                    f"study {short_id(self._digest)}"
                )
            self._study = study
        return self._study

    def _opened(self, study: Study) -> PinnedRows:
        """Return the rows in the study's domains."""
        if self._source is None:
            # A study's domains are the proposer's choice. Were cells outside of them refused here,
            # a curator that sees us stop would have an exact and free answer about our rows. The
            # owner is told of these cells in a review.
            forgiving = replace(study, schema=study.schema.forgiven())
            self._source = self._context.open_source(forgiving)
        return self._source

    def _approve(self, connection: Connection, study: Study) -> PartyNode | None:
        """Sign if the owner has approved; None if the owner has not decided yet."""
        context, policy = self._context, self._context.policy  # one reading of it for all
        source, review = self._reviewed(connection, study, policy)
        decision = self._decision(review, automatic=policy.approves(rehearsal=study.rehearsal))
        if decision is None:
            self._wait_for_owner(study)
            return None
        if not decision.approved:
            self._refuse(connection, f"study {study.name!r} was declined")
        context.approvals.compare_rows(self._digest, source.snapshot.digest, at=context.now())
        # The rows are pinned before the curator hears of us: other rows are noticed from here on.
        context.journal.forget_unanswered(self._digest)
        node = self._make_node(study, source, decision)
        statement = approval_statement(study=self._digest, party=context.name)
        try:
            connection.approve(self._digest, context.identity.sign(statement))
        except WireError as error:
            if error.code is ErrorCode.STUDY_CLOSED:
                context.journal.forget_unanswered(self._digest)
            raise
        logger.info("study %s is approved, and the curator knows", short_id(self._digest))
        return node

    def _reviewed(
        self, connection: Connection, study: Study, policy: Policy
    ) -> tuple[PinnedRows, Review]:
        """Return the rows and what the study asks of them; refuse what the policy refuses."""
        context = self._context
        if study.expired(context.today()):
            # The curator ends it. A clock that is wrong here must not end it for all.
            raise PolicyError(f"study {study.name!r}: {expiry(study)}")
        self._check_curator(connection, study)
        at_sight = policy.reasons_at_sight(
            study,
            party=context.name,
            identity=context.identity.public,
            curator=context.authority(policy),
        )
        self._refuse_for(connection, study, at_sight)
        try:
            context.take_prior(study, connection)
        except InputError as error:
            self._refuse(connection, str(error), public_reason=_OTHER_PRIOR, cause=error)
        source = self._opened_or_refused(connection, study)
        try:
            review = context.review(study, source, policy)
        except PolicyError as error:  # its steps ask for more than any policy allows
            self._refuse(connection, str(error), public_reason=_OUTSIDE_POLICY)
        self._refuse_for(connection, study, review.reasons_against)
        return source, review

    def _check_curator(self, connection: Connection, study: Study) -> None:
        """Refuse a study that pins another curator than the one that offers it."""
        if not study.curator:
            return
        proved = connection.prove_identity(self._context.name)
        offering = "a curator without an identity" if proved is None else proved.fingerprint
        if offering != study.curator:
            reason = (
                f"study {study.name!r}: it pins curator {study.curator}, and {offering} offers it. "
                "Ask its proposer which is right"
            )
            self._refuse(connection, reason, public_reason=_OTHER_CURATOR)

    def _wait_for_owner(self, study: Study) -> None:
        """Tell the owner that there is a study to decide, which may take weeks."""
        self._waits_for_owner, self._rehearses = True, study.rehearsal
        self.drop()
        self._context.alert(self._digest, "to decide", words=study.name)
        logger.info(
            "study %s waits for its owner: `parley party approve`, or `decline`",
            short_id(self._digest),
        )

    def _opened_or_refused(self, connection: Connection, study: Study) -> PinnedRows:
        """Return the rows; refuse, as the policy would, a study that they have no columns for."""
        try:
            return self._opened(study)
        except InputError as error:
            self._context.check_source()
            self._unopened += 1
            if self._unopened < _OPENINGS:
                raise
            reason = f"study {study.name!r} does not fit our table: {error}"
            self._refuse(connection, reason, public_reason=_OUTSIDE_POLICY, cause=error)

    def _refuse_for(self, connection: Connection, study: Study, reasons: Sequence[str]) -> None:
        if reasons:
            listed = "\n".join(f"- {reason}" for reason in reasons)
            self._refuse(
                connection,
                f"study {study.name!r} is refused by this owner's policy:\n{listed}",
                public_reason=_OUTSIDE_POLICY,
            )

    def _refuse(
        self,
        connection: Connection,
        reason: str,
        *,
        public_reason: str = _DECLINED,
        cause: InputError | None = None,
    ) -> NoReturn:
        """Tell the curator no more than `public_reason`, and our own side why."""
        decline(connection, self._digest, public_reason=public_reason)
        journal = self._context.journal
        record = journal.record(self._digest)
        if record is not None and record.state is JournalState.RUNNING:
            journal.end(self._digest, JournalState.REFUSED, reason=reason, at=self._context.now())
        if public_reason == _OUTSIDE_POLICY:  # and nothing that another curator would do better
            self._note_refusal(reason)
        raise PolicyError(reason) from cause

    def _note_refusal(self, reason: str) -> None:
        """Write down that we said no, so that an owner who approves later hears of it."""
        approvals = self._context.approvals
        decision = approvals.decision(self._digest)
        if decision is None or decision.approved:
            at = self._context.now()
            no = OwnerDecision(approved=False, reason=reason, decided_by="policy", decided_at=at)
            approvals.decide(self._digest, no)

    def _decision(self, review: Review, *, automatic: bool) -> OwnerDecision | None:
        context = self._context
        decision = context.approvals.decision(self._digest)
        if decision is None and automatic:
            decision = OwnerDecision(
                approved=True,
                epsilon=review.charged,
                decided_by="policy",
                decided_at=context.now(),
            )
            context.approvals.decide(self._digest, decision)
        return decision

    def _make_node(self, study: Study, source: PinnedRows, decision: OwnerDecision) -> PartyNode:
        context = self._context

        def caps() -> Caps:
            allowed = context.policy.caps
            return replace(allowed, per_study=min(allowed.per_study, decision.epsilon))

        return PartyNode(
            study,
            source.snapshot,
            party=context.name,
            role=partial(context.role, study, source),
            journal=context.journal,
            ledger=context.ledger,
            caps=caps,
            clock=context.clock,
            send=self._outbox.append,
            consents=lambda: not context.withdrew(study.digest),
        )

    def _catch_up(self, connection: Connection, node: PartyNode, summary: StudySummary) -> None:
        """Compare what both sides have; hand in again what the curator misses."""
        node.acknowledge(summary.submitted)
        self._outbox.clear()
        node.resume()
        self._hand_in(connection, node)

    def _hand_in(self, connection: Connection, node: PartyNode) -> None:
        if not self._outbox:
            return
        try:
            newest = connection.submit(self._digest, self._outbox)
        except WireError as error:
            if error.code is not ErrorCode.STUDY_CLOSED:
                raise
            # The study ended while we were answering; the stream of work says how.
            logger.info("study %s is closed", short_id(self._digest))
        else:
            node.acknowledge(newest)
        self._outbox.clear()


def _study_in(text: str) -> Study:
    """Read a study that the curator sent; say what to do about one of another version."""
    try:
        return Study.from_toml(text, where="the study")
    except InputError as error:
        raise InputError(
            f"{error}. If the study needs another version of parley than {software()}, install "
            "that: `parley doctor party` names the version of the curator"
        ) from error
