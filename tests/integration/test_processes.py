"""Curator and parties as processes of their own, on real files, ended by SIGTERM and by kill -9."""

import json
import os
import signal
import subprocess

import pytest

from curator.store.records import StudyState
from tests.harness.process_consortium import NAMES, ROOT, ProcessConsortium


@pytest.fixture
def consortium(tmp_path):
    made = ProcessConsortium(tmp_path)
    made.propose()
    yield made
    made.stop()


def another(consortium, role, **environment):
    """Start a second process of a service, which is expected to end at once."""
    done = subprocess.run(
        consortium.command(role),
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    return done.stderr


def test_a_study_of_processes_ends_in_a_release_and_sigterm_ends_them(consortium):
    """Also when a service is started twice, and a party is told to stop and started again."""
    for who in ("curator", "north"):
        consortium.start(who)
    approved = 'parley_curator_calls_total{method="Approve",outcome="OK"}'
    consortium.wait_for(lambda: approved in consortium.metrics())
    check_that_nothing_is_started_twice(consortium)
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


def check_that_nothing_is_started_twice(consortium):
    """Start a service on the folder or port of a running one, which is not disturbed."""
    listen, folder = f"127.0.0.1:{consortium.port}", consortium.folder
    told = another(consortium, "curator", PARLEY_CURATOR_LISTEN="127.0.0.1:0")
    assert f"{folder / 'curator'}: another curator runs on this folder" in told
    told = another(consortium, "north", PARLEY_PARTY_CURATOR=listen)
    assert f"{folder / 'north'}: another node of this party runs on this folder" in told
    elsewhere = {"PARLEY_CURATOR_LISTEN": listen, "PARLEY_CURATOR_FOLDER": str(folder / "another")}
    assert "cannot listen" in another(consortium, "curator", **elsewhere)
    assert consortium.record().state is StudyState.WAITING, "commands on the folder still read it"


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
