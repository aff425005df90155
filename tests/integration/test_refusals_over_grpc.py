"""What curator and parties refuse each other over real gRPC, and whose approval is waited for."""

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import pytest

from common.crypto.sums.plan import Aggregation
from common.errors import PolicyError, RemoteProtocolError
from common.service.process import system_clock
from common.study.requests import TableRequest
from common.study.signatures import approval_statement
from common.wire import codec
from common.wire.catalogue import ErrorCode, WireError
from common.wire.frames import NumberedMessage
from common.wire.pki import certificates
from curator.store.records import StudyState
from party.client.dialer import Address, Dialer
from party.journal import JournalState
from party.owner.decisions import OwnerDecision
from tests.harness.consortium import (
    Party,
    Wrapped,
    enrolled,
    finish,
    wrapping,
)
from tests.harness.rounds import say
from tests.harness.small_study import SIZES, EveryKindOfStep


def refusal_of(call):
    with pytest.raises(WireError) as refusal:
        call()
    return refusal.value.code


def test_a_study_nobody_proposed_is_unknown(gathering):
    consortium = gathering(1)
    other = dataclasses.replace(consortium.study, name="another")
    north = consortium.parties["north"]
    assert refusal_of(lambda: north.attend(other)) is ErrorCode.STUDY_UNKNOWN
    with north.dial() as connection:
        for call in (connection.fetch_study, partial(connection.acknowledge, received=0)):
            assert refusal_of(lambda call=call: call(other.digest)) is ErrorCode.STUDY_UNKNOWN


def test_another_study_of_the_same_name_is_not_answered(gathering):
    consortium = gathering(1)
    north = consortium.parties["north"]
    other = dataclasses.replace(consortium.study, epsilon=consortium.study.epsilon * 100)

    class Swapping(Wrapped):
        def fetch_study(self, study):
            return other.to_toml()

    north.dial = wrapping(north, Swapping)
    with pytest.raises(RemoteProtocolError, match="and this node asked for study"):
        north.attend(consortium.study)
    assert consortium.session.record.state is StudyState.WAITING


def test_a_curator_proves_its_identity_and_no_other(gathering):
    consortium = gathering(1)
    north, curator = consortium.parties["north"], consortium.curator
    with north.dial() as connection:
        assert connection.prove_identity("north") == curator.identity.public
        # A proof to another party, as a curator in the middle could get one, is none to us.
        wrong = refusal_of(lambda: connection.prove_identity("east"))
    assert wrong is ErrorCode.FIELD_INVALID
    curator.identity = None
    curator.restart()
    with north.dial() as connection:
        assert connection.prove_identity("north") is None


def test_a_stranger_with_a_good_certificate_sees_no_study(gathering, tmp_path):
    consortium = gathering(1)
    stranger = enrolled(consortium.curator.ring, tmp_path / "stranger", "stranger")
    party = Party(tmp_path, "stranger", stranger, None, consortium.curator)
    digest = consortium.study.digest
    with party.dial() as connection:
        assert connection.enrol("stranger", b"") == []
        assert refusal_of(lambda: connection.enrol("north", b"")) is ErrorCode.NAME_MISMATCH
        assert refusal_of(lambda: connection.fetch_study(digest)) is ErrorCode.STUDY_UNKNOWN
        assert refusal_of(lambda: list(connection.work(digest, received=0))) is (
            ErrorCode.STUDY_UNKNOWN
        )
        assert refusal_of(
            lambda: connection.submit(digest, [NumberedMessage(sequence=1, body=b"x")])
        ) is (ErrorCode.STUDY_UNKNOWN)


def test_a_certificate_revoked_during_the_study_opens_no_door_any_more(gathering):
    consortium = gathering(2)
    north = consortium.parties["north"]
    with north.dial() as connection:
        assert connection.enrol("north", b"")
        certificate = north.ring.files.load().certificate
        consortium.curator.ring.revoke(certificates.fingerprint(certificate), reason="lost")
        assert refusal_of(lambda: connection.enrol("north", b"")) is ErrorCode.CERTIFICATE_REVOKED
    assert refusal_of(lambda: north.attend(consortium.study)) is ErrorCode.CERTIFICATE_REVOKED


def test_a_certificate_replaced_during_the_study_is_used_from_the_next_connection_on(gathering):
    consortium = gathering(2)
    north, ring = consortium.parties["north"], consortium.curator.ring

    class Rotating(Wrapped):
        """The old certificate is revoked, and a new one is there, when the first answer goes."""

        def submit(self, study, messages):
            if not rotated:
                old = north.ring.files.load().certificate
                north.ring.rotate(now=system_clock())
                _, path = ring.approve(north.ring.read_request(), days=30, now=system_clock())
                north.ring.accept(path.read_bytes(), where=path, now=system_clock())
                ring.revoke(certificates.fingerprint(old), reason="rotated")
                rotated.append(old)
            return self.connection.submit(study, messages)

    rotated = []
    north.dial = wrapping(north, Rotating)
    finish(consortium)
    assert rotated


def test_an_expired_certificate_is_told_before_anything_is_dialled(gathering):
    consortium = gathering(1)
    north = consortium.parties["north"]
    later = system_clock().replace(year=system_clock().year + 2)
    there = Address(target="127.0.0.1:1", proxy=None, files=north.ring.files, software="test")

    def call():
        with Dialer(there, lambda: later).dial():
            pass

    assert refusal_of(call) is ErrorCode.CERTIFICATE_EXPIRED


def test_a_dead_curator_is_given_up_on_after_a_bounded_number_of_attempts(gathering):
    consortium = gathering(1)
    north = consortium.parties["north"]
    consortium.curator.stop()
    waits = []
    north.backoff = lambda: Party.backoff(north, attempts=4)
    north.stopping.wait = lambda seconds: bool(waits.append(seconds))
    assert refusal_of(lambda: north.attend(consortium.study)) is ErrorCode.UNAVAILABLE
    assert len(waits) == 3
    assert waits == sorted(waits), "it waits longer each time"


def share(study, step=0, chunk=0):
    message = say("masked input", chunk, b"x", study=study.digest, step=step)
    return codec.TO_CURATOR.encode(message)


def test_a_party_out_of_turn_is_refused_and_the_study_goes_on(gathering):
    consortium = gathering(2)
    study = consortium.study
    with consortium.parties["north"].dial() as connection:
        early = [NumberedMessage(sequence=1, body=share(study))]
        assert refusal_of(lambda: connection.submit(study.digest, early)) is ErrorCode.OUT_OF_TURN
        gap = [NumberedMessage(sequence=2, body=share(study))]
        assert refusal_of(lambda: connection.submit(study.digest, gap)) is ErrorCode.OUT_OF_ORDER
        for name, party in consortium.parties.items():
            statement = approval_statement(study=study.digest, party=name)
            with party.dial() as own:
                own.approve(study.digest, party.identity.sign(statement))
        wrong = [NumberedMessage(sequence=1, body=share(study, step=3))]
        assert refusal_of(lambda: connection.submit(study.digest, wrong)) is ErrorCode.OUT_OF_TURN
        ahead = lambda: connection.acknowledge(study.digest, 99)  # noqa: E731
        assert refusal_of(ahead) is ErrorCode.OUT_OF_ORDER
    finish(consortium)


def test_another_answer_under_the_same_number_is_refused(gathering):
    consortium = gathering(2)
    finish(consortium)
    digest = consortium.study.digest
    with consortium.parties["north"].dial() as connection:
        reused = [NumberedMessage(sequence=1, body=share(consortium.study))]
        assert refusal_of(lambda: connection.submit(digest, reused)) is ErrorCode.SEQUENCE_REUSED
        newest = consortium.curator.store.inbox.newest(digest, "north")
        more = [NumberedMessage(sequence=newest + 1, body=share(consortium.study))]
        assert refusal_of(lambda: connection.submit(digest, more)) is ErrorCode.STUDY_CLOSED


class AnotherMarginal(EveryKindOfStep):
    """Asks for a table that the approved study does not imply."""

    def step(self):
        step = super().step()
        if self.results:
            return step
        return dataclasses.replace(step, request=TableRequest(((0, 1), (1,)), SIZES))


class LessNoise(EveryKindOfStep):
    """Asks for the same tables with less noise."""

    def step(self):
        step = super().step()
        return (
            step if self.results else dataclasses.replace(step, law=step.law.times(Fraction(1, 2)))
        )


class SamePhaseAgain(EveryKindOfStep):
    """Asks for the first tables once more after the first result."""

    def step(self):
        if len(self.results) == 1:
            results, self.results = self.results, []
            try:
                return super().step()
            finally:
                self.results = results
        return super().step()


@pytest.mark.parametrize("plan", [AnotherMarginal, LessNoise, SamePhaseAgain])
def test_a_curator_that_asks_for_something_else_gets_no_answer_and_no_budget(gathering, plan):
    consortium = gathering(1)
    consortium.curator.begin = plan
    consortium.curator.restart()
    north = consortium.parties["north"]
    with pytest.raises(RemoteProtocolError, match="is not what the approved study"):
        north.attend(consortium.study)
    with north.context() as context:
        charged = [entry.charge.step for entry in context.ledger.entries()]
        assert charged == (["tables"] if plan is SamePhaseAgain else [])
        left = [departure.kind for departure in context.journal.sent_log()]
        assert left == [*["ShareSubmitted"] * len(charged), "PartyRefused"]
        assert context.journal.state(consortium.study.digest) is JournalState.REFUSED
    record = consortium.curator.store.record(consortium.study.digest)
    assert record.state is StudyState.REFUSED
    assert record.cause.endswith("not one that the approved study allows")


def test_an_approval_signed_by_somebody_else_does_not_count(gathering):
    consortium = gathering(2)
    study = consortium.study
    statement = approval_statement(study=study.digest, party="north")
    forged = consortium.parties["east"].identity.sign(statement)
    with consortium.parties["north"].dial() as connection:
        assert refusal_of(lambda: connection.approve(study.digest, forged)) is (
            ErrorCode.APPROVAL_INVALID
        )
        assert set(consortium.session.waiting_for) == {"north", "east"}


def test_a_policy_that_refuses_ends_the_study_for_everybody_without_a_charge(gathering):
    consortium = gathering(3)
    north, *others = consortium.parties.values()
    north.policy = dataclasses.replace(north.policy, min_parties=4)
    with pytest.raises(PolicyError, match="min_parties"):
        north.attend(consortium.study)
    assert consortium.session.record.state is StudyState.REFUSED
    assert "north" in consortium.session.record.cause
    assert "min_parties" not in consortium.session.record.cause, "the owner's reasons stay at home"
    with north.context() as context:
        decision = context.approvals.decision(consortium.study.digest)
        assert decision.decided_by == "policy"
        yes = dataclasses.replace(decision, approved=True, decided_by="owner")
        with pytest.raises(PolicyError, match="declined by the policy"):
            context.approvals.decide(consortium.study.digest, yes)
    for party in others:
        assert party.attend(consortium.study) is JournalState.ABORTED
        with party.context() as context:
            assert context.ledger.spent() == 0


def owner_approves(epsilon):
    return OwnerDecision(
        approved=True, epsilon=epsilon, reason="", decided_by="owner", decided_at="today"
    )


def test_a_study_that_would_cost_more_than_was_approved_ends_for_everybody(gathering):
    consortium = gathering(2)
    north = consortium.parties["north"]
    first = EveryKindOfStep(consortium.study).step().costs["north"]
    with north.context() as context:
        context.approvals.decide(consortium.study.digest, owner_approves(epsilon=first))
    ends = consortium.attend_all()
    assert ends == {"north": JournalState.REFUSED, "east": JournalState.ABORTED}
    assert consortium.session.record.state is StudyState.REFUSED
    with north.context() as context:
        assert context.ledger.spent() == first


def test_a_party_that_refuses_with_more_work_in_its_queue_ends_with_its_refusal(gathering):
    consortium = gathering(2, aggregation=Aggregation.PAILLIER)
    north, east = consortium.parties.values()
    digest = consortium.study.digest
    with east.context() as context:
        context.approvals.decide(digest, owner_approves(epsilon=Fraction(1, 100)))
    with east.dial() as connection:
        statement = approval_statement(study=digest, party="east")
        connection.approve(digest, east.identity.sign(statement))
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(north.attend, consortium.study)
        deadline = time.monotonic() + 60
        while consortium.curator.store.outbox.newest(digest, "east") < 3:
            assert time.monotonic() < deadline, "the key, the step, and what north sealed for east"
            time.sleep(0.02)
        assert east.attend(consortium.study) is JournalState.REFUSED
        assert other.result(timeout=60) is JournalState.ABORTED
    assert "party 'east' refused" in consortium.session.record.cause
    with east.context() as context:
        assert "cap of 1/100" in context.journal.studies()[0].reason
        assert context.ledger.entries() == []


def test_an_owner_is_waited_for_when_the_policy_does_not_approve_by_itself(gathering):
    consortium = gathering(1)
    north = consortium.parties["north"]
    north.policy = dataclasses.replace(north.policy, automatic=False)
    waits = []

    def wait_and_approve(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            with north.context() as context:  # as another process would
                context.approvals.decide(consortium.study.digest, owner_approves(epsilon=100))
        return False

    north.stopping.wait = wait_and_approve
    assert north.attend(consortium.study) is JournalState.FINISHED
    assert len(waits) == 2
