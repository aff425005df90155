"""Clocks that jump in the middle of a study: the same release, or a refusal that names the cause.

What TLS itself thinks of the time is the machine's business, and not of these tests: here jump the
clocks that the services are given, by which certificates are looked at in every call.
"""

from datetime import timedelta

import pytest

from common.service.process import system_clock
from common.study.signatures import approval_statement
from common.wire.catalogue import ErrorCode, WireError
from curator.store.records import StudyState
from party.journal import JournalState
from tests.harness.consortium import Wrapped, check_release, finish, wrapping

DAY = timedelta(days=1)
HARMLESS = [10 * DAY, timedelta(minutes=-50)]
BEYOND_CERTIFICATES = [60 * DAY, -10 * DAY]  # they are valid for 30 days from an hour ago on


class Clock:
    """The time, and how wrong this clock is about it."""

    wrong_by = timedelta()

    def __call__(self):
        return system_clock() + self.wrong_by


class Jumping(Wrapped):
    """When the first answer was handed in, a clock jumps and the connection is lost."""

    def submit(self, study, messages):
        newest = self.connection.submit(study, messages)
        if not self.jumped:
            self.jumped.append(study)
            self.jump()
            raise WireError(ErrorCode.UNAVAILABLE, "the connection was lost")
        return newest


def jumping(party, clock_that_jumps, by):
    """Make a party in the middle of whose study a clock jumps; return when it did."""

    moments = []

    class JumpingBy(Jumping):
        jumped = moments

        def jump(self):
            clock_that_jumps.wrong_by = by

    party.dial = wrapping(party, JumpingBy)
    return moments


@pytest.fixture
def consortium(gathering):
    """Start two parties and a curator, each with a clock of its own."""
    made = gathering(2)
    for each in (made.curator, *made.parties.values()):
        each.clock = Clock()
    made.curator.restart()
    return made


@pytest.mark.parametrize("who", ["curator", "north"])
@pytest.mark.parametrize("by", HARMLESS, ids=str)
def test_a_jump_within_the_life_of_the_certificates_changes_nothing(consortium, who, by):
    north = consortium.parties["north"]
    wrong = consortium.curator if who == "curator" else north
    jumped = jumping(north, wrong.clock, by)
    finish(consortium)
    assert jumped


def check_refused(consortium, party):
    """Check that the study waits, and that parties paid only for what was asked."""
    with pytest.raises(WireError) as refusal:
        party.attend(consortium.study)
    assert refusal.value.code is ErrorCode.CERTIFICATE_EXPIRED
    assert "clock" in str(refusal.value), "it says what to look at"
    assert consortium.curator.store.record(consortium.study.digest).state is StudyState.RUNNING


@pytest.mark.parametrize("who", ["curator", "north"])
@pytest.mark.parametrize("by", BEYOND_CERTIFICATES, ids=str)
def test_a_jump_beyond_the_certificates_is_refused_by_name_until_the_clock_is_right_again(
    consortium, who, by
):
    north, east = consortium.parties.values()
    wrong = consortium.curator if who == "curator" else north
    jumped = jumping(north, wrong.clock, by)
    for party in (north, east):  # so that the study runs
        approve(consortium, party)
    check_refused(consortium, north)
    assert jumped
    with north.context() as context:
        before = [(e.charge.step, e.charge.epsilon) for e in context.ledger.entries()]
        assert [step for step, _ in before] == ["tables"]
    check_refused(consortium, north)
    with north.context() as context:
        assert [(e.charge.step, e.charge.epsilon) for e in context.ledger.entries()] == before
    wrong.clock.wrong_by = timedelta()
    finish(consortium)


def approve(consortium, party):
    statement = approval_statement(study=consortium.study.digest, party=party.name)
    with party.dial() as connection:
        connection.approve(consortium.study.digest, party.identity.sign(statement))


@pytest.mark.parametrize("by", [10 * DAY, timedelta(minutes=-50)], ids=str)
def test_a_party_that_comes_back_at_another_time_is_not_charged_again(consortium, by):
    """Entries may then be dated before the ones before them; their chain holds all the same."""
    north = consortium.parties["north"]

    moments = []

    class Dying(Jumping):
        jumped = moments

        def jump(self):
            north.clock.wrong_by = by
            raise KeyboardInterrupt

    north.dial = wrapping(north, Dying)
    living = north.attend

    def attend_twice(study):
        with pytest.raises(KeyboardInterrupt):
            living(study)
        return living(study)

    north.attend = attend_twice
    finish(consortium)
    with north.context() as context:
        context.ledger.verify()
        times = [entry.charged_at for entry in context.ledger.entries()]
        assert (times == sorted(times)) is (by > timedelta())
        assert context.journal.state(consortium.study.digest) is JournalState.FINISHED


def test_every_clock_wrong_in_its_own_way(consortium):
    wrong = [10 * DAY, timedelta(minutes=-50), 20 * DAY]
    for each, by in zip((consortium.curator, *consortium.parties.values()), wrong, strict=True):
        each.clock.wrong_by = by
    assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
    check_release(consortium)
