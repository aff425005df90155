"""Curator and parties as processes of their own, on real files, ended by SIGTERM and by kill -9."""

import json
import signal

import pytest

from curator.store.records import StudyState
from tests.harness.process_consortium import NAMES, ProcessConsortium


@pytest.fixture
def consortium(tmp_path):
    made = ProcessConsortium(tmp_path)
    made.propose()
    yield made
    made.stop()


def test_a_study_of_processes_ends_in_a_release_and_sigterm_ends_them(consortium):
    """Also when a party is told to stop and started again."""
    for who in ("curator", "north"):
        consortium.start(who)
    approved = 'parley_curator_calls_total{method="Approve",outcome="OK"}'
    consortium.wait_for(lambda: approved in consortium.metrics())
    assert consortium.kill("north", signal.SIGTERM) == 0, "it was waiting for work"
    for who in NAMES:
        consortium.start(who)
    consortium.check_end()
    figures = consortium.metrics()
    assert 'parley_curator_studies{state="done"} 1' in figures
    assert 'parley_curator_calls_total{method="Submit",outcome="OK"}' in figures
    assert consortium.kill("curator", signal.SIGTERM) == 0
    for line in (consortium.folder / "curator.log").read_text().splitlines():
        assert json.loads(line)["logger"]


@pytest.mark.slow
def test_processes_killed_again_and_again_end_in_the_same_kind_of_release(consortium):
    for who in ("curator", *NAMES):
        consortium.start(who)
    killed = 0
    for _ in range(3):
        for who in ("curator", *NAMES):
            before = consortium.record()
            if before.state is StudyState.DONE or consortium.processes[who].poll() is not None:
                break
            consortium.kill(who)
            killed += 1
            consortium.start(who)
            consortium.wait_for(lambda before=before: consortium.record() != before)
    assert killed
    consortium.check_end(restarted=True)
