"""What a study took is counted by phase and party, once, over a crash, whatever the clock does."""

import datetime as dt

import pytest

from common.errors import LocalError
from common.service.database import Database
from common.service.traffic import TrafficLog
from common.study.messages import ResultPublished, StepOpened, StudyOpened
from common.study.transcript import SETTING_UP
from tests.harness.rounds import say

STUDY, OTHER = bytes(32), bytes(31) + b"\1"
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


@pytest.fixture
def log(tmp_path):
    return TrafficLog(Database(tmp_path / "node.db"))


def opened(study=STUDY):
    return StudyOpened(study=study, public_key=b"")


def step(number, study=STUDY):
    return StepOpened(study=study, step=number, digest=bytes(32), opening=b"")


def result(number):
    return ResultPublished(study=STUDY, step=number, result=b"")


def note(log, message, size, at, *, party="north", sent=False, phase="counts"):
    moment = NOON + dt.timedelta(seconds=at)
    with log._file.transaction():
        log.note(message, size, party=party, sent=sent, phase=phase, at=moment)


def test_bytes_and_seconds_belong_to_the_phase_of_their_step(log):
    note(log, opened(), 10, 0)
    note(log, step(0), 20, 5, phase="views")
    note(log, say("envelope", b"", study=STUDY, peer="a"), 7, 6, sent=True)
    note(log, result(0), 30, 7.5)
    note(log, step(1), 1, 8, phase="tables")
    note(log, result(1), 2, 10)
    note(log, step(2), 4, 10, phase="views")  # a phase that comes back
    note(log, result(2), 8, 11)
    found = log.phases(STUDY)
    assert list(found) == [SETTING_UP, "views", "tables"]
    assert {name: (own.rounds, own.seconds) for name, own in found.items()} == {
        SETTING_UP: (0, 5.0),
        "views": (2, 3.5),
        "tables": (1, 2.0),
    }
    assert {name: own.received["north"] for name, own in found.items()} == {
        SETTING_UP: 10,
        "views": 20 + 30 + 4 + 8,
        "tables": 3,
    }
    assert [own.sent["north"] for own in found.values()] == [0, 7, 0]
    assert log.newest_step(STUDY) == 2


def test_a_message_to_two_parties_opens_a_step_once_and_counts_for_both(log):
    note(log, opened(), 1, 0)
    for at, party in ((1, "north"), (3, "south")):
        note(log, step(0), 5, at, party=party)
    for at, party in ((4, "north"), (9, "south")):
        note(log, result(0), 6, at, party=party)
    counts = log.phases(STUDY)["counts"]
    assert (counts.rounds, counts.seconds) == (1, 3.0)  # from the first opening to the first result
    assert counts.received == {"north": 11, "south": 11}


def test_a_clock_that_is_set_back_makes_no_time_negative_and_an_open_step_takes_none_yet(log):
    note(log, step(0), 1, 100)
    note(log, result(0), 1, 50)
    note(log, step(1), 1, 60)
    counts = log.phases(STUDY)["counts"]
    assert (counts.rounds, counts.seconds) == (2, 0.0)


def test_studies_are_counted_apart_and_are_there_after_a_restart(log, tmp_path):
    note(log, step(3, OTHER), 9, 0)
    assert log.newest_step(STUDY) == 0
    assert list(log.phases(STUDY)) == [SETTING_UP]
    again = TrafficLog(Database(tmp_path / "node.db"))
    assert again.newest_step(OTHER) == 3
    assert again.phases(OTHER)["counts"].received == {"north": 9}


def test_a_message_is_counted_in_the_callers_transaction_only(log):
    with pytest.raises(LocalError, match="needs a transaction"):
        log.note(opened(), 1, party="north", sent=True, phase="", at=NOON)
