"""Alerts are kept in order until they are taken, over a restart too."""

import pytest

from curator.store.alerts import AlertLog
from tests.unit.curator.conftest import start


def told(log):
    return [(each.name, each.event, each.words) for each in log.pending()]


def test_alerts_wait_in_order_and_are_dropped_up_to_the_newest_that_was_taken(stage):
    start(stage, stage.studies())
    log = AlertLog(stage.database)
    log.drop(max((each.number for each in log.pending()), default=0))
    for event in ("overdue", "failed", "done"):
        log.add(stage.study.digest, event, words=f"it is {event}", at="now")
    first, second, third = log.pending()
    assert told(log) == [("test", e, f"it is {e}") for e in ("overdue", "failed", "done")]
    assert (first.study, first.at) == (stage.study.digest, "now")
    log.drop(second.number)
    assert log.pending() == [third]
    log.add(stage.study.digest, "late", words="", at="then")
    assert [each.number for each in log.pending()] == sorted(each.number for each in log.pending())
    stage.studies()  # another process on the same file
    assert told(AlertLog(stage.database))[0] == ("test", "done", "it is done")


def test_an_alert_of_a_change_that_was_rolled_back_is_not_told(stage):
    start(stage, stage.studies())
    log = AlertLog(stage.database)
    before = log.pending()

    def fail():
        with stage.database.transaction():
            log.add(stage.study.digest, "failed", words="", at="now")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert log.pending() == before
