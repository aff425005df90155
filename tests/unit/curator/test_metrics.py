"""What an operator watches is counted by state, method and outcome, and has bounded labels."""

from concurrent.futures import ThreadPoolExecutor

from curator.metrics import CallCounter, curator_samples
from tests.unit.curator.conftest import HOUR, NOW, start


def test_calls_are_counted_by_method_and_outcome_whichever_thread_they_come_from():
    calls = CallCounter()
    with ThreadPoolExecutor(4) as threads:
        for number in range(200):
            outcome = "OK" if number % 4 else "BUSY"
            threads.submit(calls.add, "Poll", outcome=outcome)
    assert calls.counted() == [(("Poll", "BUSY"), 50), (("Poll", "OK"), 150)]
    one, other = calls.samples()
    assert (one.labels, one.value, one.kind) == (
        {"method": "Poll", "outcome": "BUSY"},
        50,
        "counter",
    )
    assert other.value == 150


def test_studies_are_counted_in_every_state_and_waits_are_of_running_ones(stage, ring):
    studies = stage.studies()

    def read():
        samples = curator_samples(
            stage.store, CallCounter(), ring.files, deadline=HOUR, now=stage.now
        )
        return {(own.name, *own.labels.values()): own.value for own in samples}

    empty = read()
    assert {value for (name, *_), value in empty.items() if name == "parley_curator_studies"} == {0}
    start(stage, studies)
    stage.now = NOW + 2 * HOUR
    found = read()
    assert found["parley_curator_studies", "running"] == 1
    assert sum(v for (name, *_), v in found.items() if name == "parley_curator_studies") == 1
    assert found["parley_curator_overdue_studies",] == 1
    study = stage.study.digest.hex()[:16]
    assert found["parley_curator_waiting_seconds", study, "north"] == 7200
