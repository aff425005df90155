"""A party at one study, from the invitation to the end, over any number of connections.

Fetch the study and compare its digest; check it against the owner's policy; wait for the owner's
decision; sign; then take in work and hand in answers until the study is over. Every connection
begins with what both sides have on disk, so a lost one is a non-event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NoReturn

from common.errors import PolicyError, RemoteProtocolError
from common.messages import ToCurator, ToParty
from common.study import Study
from common.wire import approval, codec
from common.wire.catalogue import ErrorCode, WireError
from common.wire.frames import Whole
from party.approvals import Decision
from party.client.connection import ENDED, Connection, HungUpError, Summary
from party.client.household import Household, PinnedRows
from party.client.patience import Patience
from party.journal import Outgoing, StudyState
from party.node import PartyNode, SourceForStep, StudyTicket
from party.review import Review
from party.role import PartyRole

logger = logging.getLogger(__name__)

_ACKNOWLEDGE_EVERY = 8  # messages; an acknowledgement costs a call, and saves the curator's disk
# All that anybody is told: why is the owner's own business, and may say something about the rows.
_DECLINED = "the owner does not take part in this study"
_OUTSIDE_POLICY = "the owner's policy does not allow this study"


def decline(connection: Connection, study: bytes, *, told: str = _DECLINED) -> None:
    """Tell the curator that the owner takes no part, or no longer; one that is over stays so."""
    try:
        connection.decline(study, told)
    except WireError as error:
        if error.code is not ErrorCode.STUDY_CLOSED:
            raise
        logger.info("study %s is closed already", study.hex()[:16])


class Attendance:
    """One study at one party. Used from one thread.

    Args:
        study: the digest of the study.
        house: who attends.
        dial: opens a connection.
        patience: between connections.
        look_again_s: how often to look for the owner's decision.
    """

    def __init__(
        self,
        study: bytes,
        house: Household,
        *,
        dial: Callable[[], AbstractContextManager[Connection]],
        patience: Patience,
        look_again_s: float = 5.0,
    ) -> None:
        self._digest = study
        self._house = house
        self._dial = dial
        self._patience = patience
        self._look_again_s = look_again_s
        self._study: Study | None = None
        self._source: PinnedRows | None = None
        self._node: PartyNode | None = None
        self._outbox: list[Outgoing] = []

    def attend(self) -> StudyState | None:
        """Take part until the study is over; None if told to stop before.

        Raises:
            PolicyError: the owner declined, or the policy refuses the study.
            RemoteProtocolError: the curator cannot be reached, or does what it must not.
            InputError: the party's own files or data are not in order.
        """
        while True:
            try:
                with self._dial() as connection:
                    return self._attend_over(connection)
            except HungUpError:
                logger.info("study %s: this node is stopping", self._digest.hex()[:16])
                return self._ended_already()
            except WireError as error:
                logger.warning("study %s: %s", self._digest.hex()[:16], error)
                if self._patience.wait_after(error):
                    return None

    def _ended_already(self) -> StudyState | None:
        """How the study ended if it did just before we were told to stop; else None."""
        record = self._house.journal.record(self._digest)
        return None if record is None or record.state is StudyState.RUNNING else record.state

    def _attend_over(self, connection: Connection) -> StudyState | None:
        """How the study ended; None if told to stop before."""
        house = self._house
        invited = connection.enrol(house.name, house.identity.public.encoded)
        summary = next((each for each in invited if each.study == self._digest), None)
        if summary is None:
            raise WireError(ErrorCode.STUDY_UNKNOWN, self._digest.hex()[:16])
        self._patience.reached()
        decision = house.approvals.decision(self._digest)
        if decision is not None and not decision.approved:
            # Whatever the curator says it has: an owner's no is never worked around.
            word = "declined" if decision.withdrawn_at is None else "withdrawn"
            self._refuse(connection, f"study {self._digest.hex()[:16]} was {word} by its owner")
        study = self._fetched(connection)
        if decision is None or not summary.approved:
            at_sight = house.policy.reasons_at_sight(
                study, party=house.name, identity=house.identity.public, curator=house.authority
            )
            self._refuse_for(connection, study, at_sight)
        source = self._opened(study)
        if decision is None or not summary.approved:
            answer = self._approve(connection, study, source)
            if not isinstance(answer, Decision):
                return answer
            decision = answer
        node = self._node = self._node or self._make_node(study, source, decision)
        self._catch_up(connection, node, summary)
        try:
            self._work(connection, node)
        except WireError as error:
            if error.code is not ErrorCode.OUT_OF_ORDER or summary.state not in ENDED:
                raise
        if node.state is StudyState.RUNNING:
            if summary.state not in ENDED:
                raise WireError(ErrorCode.UNAVAILABLE, "the curator ended the stream of work")
            # One that was restored from an old copy cannot say so in the conversation we had.
            reason = f"at the curator the study is {summary.state}"
            house.journal.end(self._digest, StudyState.ABORTED, reason=reason, at=house.now())
        spent = house.ledger.spent(self._digest.hex())
        logger.info(
            "study %s: %s, epsilon %s spent", self._digest.hex()[:16], node.state.value, spent
        )
        return node.state

    def _work(self, connection: Connection, node: PartyNode) -> None:
        """Take in and answer, until the study or the stream is over."""
        for whole in connection.work(self._digest, received=node.newest_received):
            self._take_in(connection, node, whole)
            self._patience.progressed()
            self._hand_in(connection, node)
            over = node.state is not StudyState.RUNNING
            if over or whole.sequence % _ACKNOWLEDGE_EVERY == 0:
                connection.acknowledge(self._digest, node.newest_received)

    def _take_in(self, connection: Connection, node: PartyNode, whole: Whole) -> None:
        """One message; what must not be answered ends the study, and the curator is told so."""
        try:
            node.receive(whole.sequence, whole.data)
        except (RemoteProtocolError, PolicyError) as error:
            if whole.sequence > node.newest_received + 1:
                raise  # a gap, which another connection closes, and nothing that was asked of us
            logger.error("study %s is refused: %s", self._digest.hex()[:16], error)
            node.refuse(error)
            self._hand_in(connection, node)
            raise

    def _fetched(self, connection: Connection) -> Study:
        """The study, with the digest that was asked for."""
        if self._study is None:
            study = Study.from_toml(connection.fetch_study(self._digest), where="the study")
            if study.digest != self._digest:
                raise RemoteProtocolError(
                    f"the curator sent study {study.digest.hex()[:16]}, asked for was "
                    f"{self._digest.hex()[:16]}"
                )
            self._study = study
        return self._study

    def _opened(self, study: Study) -> PinnedRows:
        """The rows in the study's domains."""
        if self._source is None:
            # A study's domains are the proposer's choice. Were cells outside of them refused here,
            # whoever watches us stop would have an exact and free answer about our rows; the owner
            # is told of such cells in a review.
            forgiving = replace(study, schema=study.schema.forgiven())
            self._source = self._house.open_source(forgiving)
        return self._source

    def _approve(
        self, connection: Connection, study: Study, source: PinnedRows
    ) -> Decision | StudyState | None:
        """Sign when the owner has approved; else how the study ended, or None if told to stop."""
        house = self._house
        try:
            seen = house.review(study, source)
        except PolicyError as error:  # its plan asks for more than anybody's policy allows
            self._refuse(connection, str(error), told=_OUTSIDE_POLICY)
        self._refuse_for(connection, study, seen.reasons_against)
        decision = self._decision(seen)
        if decision is None:
            logger.info(
                "study %s waits for its owner: `parley party approve`, or `decline`",
                self._digest.hex()[:16],
            )
        while decision is None:
            if self._patience.sleep(self._look_again_s):
                return None
            decision = self._decision(seen)
            if decision is None and connection.status(self._digest).state in ENDED:
                logger.info("study %s ended without us", self._digest.hex()[:16])
                return StudyState.ABORTED
        if not decision.approved:
            self._refuse(connection, f"study {study.name!r} was declined")
        statement = approval.statement(study=self._digest, party=house.name)
        connection.approve(self._digest, house.identity.sign(statement))
        logger.info("study %s is approved, and the curator knows", self._digest.hex()[:16])
        return decision

    def _refuse_for(self, connection: Connection, study: Study, reasons: Sequence[str]) -> None:
        """Refuse if the policy has reasons to."""
        if reasons:
            listed = "\n".join(f"- {reason}" for reason in reasons)
            self._refuse(
                connection,
                f"study {study.name!r} is refused by this owner's policy:\n{listed}",
                told=_OUTSIDE_POLICY,
            )

    def _refuse(self, connection: Connection, reason: str, *, told: str = _DECLINED) -> NoReturn:
        """Tell the curator no more than that, and our own side why; keys of a begun one go."""
        decline(connection, self._digest, told=told)
        journal = self._house.journal
        record = journal.record(self._digest)
        if record is not None and record.state is StudyState.RUNNING:
            journal.end(self._digest, StudyState.REFUSED, reason=reason, at=self._house.now())
        raise PolicyError(reason)

    def _decision(self, seen: Review) -> Decision | None:
        house = self._house
        decision = house.approvals.decision(self._digest)
        if decision is None and house.policy.automatic:
            decision = Decision(
                approved=True,
                epsilon=seen.cost,
                reason="",
                decided_by="policy",
                decided_at=house.now(),
            )
            house.approvals.decide(self._digest, decision)
        return decision

    def _make_node(self, study: Study, source: PinnedRows, decision: Decision) -> PartyNode:
        allowed = self._house.policy.caps
        approved = replace(allowed, per_study=min(allowed.per_study, decision.epsilon))
        return PartyNode(
            StudyTicket(
                digest=study.digest,
                name=study.name,
                party=self._house.name,
                data_digest=source.snapshot.digest,
            ),
            role=lambda source_of: self._make_role(study, source, source_of),
            journal=self._house.journal,
            ledger=self._house.ledger,
            caps=approved,
            codec=WireCodec(),
            clock=self._house.clock,
            send=self._outbox.append,  # handed in together when the message is taken in
            consents=lambda: not self._house.withdrew(study.digest),
        )

    def _make_role(self, study: Study, data: PinnedRows, source_of: SourceForStep) -> PartyRole:
        return PartyRole(
            study=study,
            plan=self._house.make_plan(study),
            name=self._house.name,
            identity=self._house.identity,
            data=data,
            source_of=source_of,
            blinder_of=self._house.blinder_of,
        )

    def _catch_up(self, connection: Connection, node: PartyNode, summary: Summary) -> None:
        """Both sides say what they have; what the curator misses is handed in again."""
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
            logger.info("study %s is closed", self._digest.hex()[:16])
        else:
            node.acknowledge(newest)
        self._outbox.clear()


class WireCodec:
    """Messages as the wire has them."""

    def encode(self, message: ToCurator) -> bytes:
        """The bytes of a message to the curator."""
        return codec.encode_to_curator(message)

    def decode(self, body: bytes) -> ToParty:
        """The message to a party in these bytes."""
        return codec.decode_to_party(body)
