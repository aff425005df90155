"""What a curator keeps for its operator: alerts until they are taken, requests until seen to."""

import pytest

from tests.unit.curator.conftest import start


def told(store):
    return [(each.name, each.event, each.words) for each in store.alerts()]


def test_alerts_wait_in_order_and_are_dropped_up_to_the_newest_that_was_taken(stage):
    start(stage, stage.studies())
    store = stage.store
    store.drop_alerts(max((each.number for each in store.alerts()), default=0))
    for event in ("overdue", "failed", "done"):
        store.add_alert(stage.study.digest, event, words=f"it is {event}", at="now")
    first, second, third = store.alerts()
    assert told(store) == [("test", e, f"it is {e}") for e in ("overdue", "failed", "done")]
    assert (first.study, first.at) == (stage.study.digest, "now")
    store.drop_alerts(second.number)
    assert store.alerts() == [third]
    store.add_alert(stage.study.digest, "late", words="", at="then")
    assert [each.number for each in store.alerts()] == sorted(
        each.number for each in store.alerts()
    )
    stage.studies()  # another process on the same file
    assert told(stage.store)[0] == ("test", "done", "it is done")


def test_an_alert_of_a_change_that_was_rolled_back_is_not_told(stage):
    start(stage, stage.studies())
    store = stage.store
    before = store.alerts()

    def fail():
        with stage.database.transaction():
            store.add_alert(stage.study.digest, "failed", words="", at="now")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.alerts() == before


def test_a_request_waits_until_it_is_dropped_and_is_there_once(stage):
    start(stage, stage.studies())
    store, study = stage.store, stage.study.digest
    assert store.asked_to_miss() == []
    for party in ("north", "east", "north"):
        store.ask_to_miss(study, party, at="now")
    assert store.asked_to_miss() == [(study, "north"), (study, "east")]
    store.drop_missing(study, "north")
    store.drop_missing(study, "nobody")
    stage.studies()  # another process on the same file
    assert stage.store.asked_to_miss() == [(study, "east")]
