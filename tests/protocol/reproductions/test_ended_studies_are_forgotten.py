"""A node that runs for years keeps nothing in memory of the studies that ended."""

import threading
import time
from dataclasses import replace

from curator.store.records import StudyState


def test_a_node_has_no_place_for_studies_that_ended(gathering):
    consortium = gathering(2)
    managers, threads = [], []

    def run(party):
        with party.context() as context:
            managers.append(party.manager(context))
            managers[-1].run(once=False)

    for party in consortium.parties.values():
        threads.append(threading.Thread(target=run, args=(party,)))
        threads[-1].start()
    try:
        for number in range(3):
            study = replace(consortium.study, name=f"study {number}", signature=None)
            consortium.curator.studies.propose(study)
        wait_for(lambda: all_done(consortium))
        wait_for(lambda: not any(manager._places for manager in managers))
    finally:
        for party in consortium.parties.values():
            party.stopping.set()
        for thread in threads:
            thread.join(timeout=60)
    for party in consortium.parties.values():
        with party.context() as context:
            assert [each.state.value for each in context.journal.studies()] == ["finished"] * 4


def all_done(consortium):
    return {each.state for each in consortium.curator.store.records()} == {StudyState.DONE}


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.02)
