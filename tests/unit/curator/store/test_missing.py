"""Requests to go on without a party are kept until they are seen to."""

from curator.store.missing import MissingRequests
from tests.unit.curator.conftest import start


def test_a_request_waits_until_it_is_dropped_and_is_there_once(stage):
    start(stage, stage.studies())
    requests, study = MissingRequests(stage.database), stage.study.digest
    assert requests.pending() == []
    for party in ("north", "east", "north"):
        requests.ask(study, party, at="now")
    assert requests.pending() == [(study, "north"), (study, "east")]
    requests.drop(study, "north")
    requests.drop(study, "nobody")
    stage.studies()  # another process on the same file
    assert MissingRequests(stage.database).pending() == [(study, "east")]
