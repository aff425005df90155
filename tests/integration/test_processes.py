"""Curator and parties as processes of their own, on real files, ended by SIGTERM and by kill -9."""

import json
import os
import signal
import subprocess
import sys

import pytest

from curator.store.records import StudyState as CuratorState
from tests.harness.process_consortium import NAMES, ROOT, Town


@pytest.fixture
def town(tmp_path):
    made = Town(tmp_path)
    yield made
    made.stop()


def test_a_study_of_processes_ends_in_a_release_and_sigterm_ends_the_curator(town):
    for who in ("curator", *NAMES):
        town.start(who)
    town.check_end()
    figures = town.metrics()
    assert 'parley_curator_studies{state="done"} 1' in figures
    assert 'parley_curator_calls_total{method="Submit",outcome="OK"}' in figures
    assert town.kill("curator", signal.SIGTERM) == 0
    for line in (town.folder / "curator.log").read_text().splitlines():
        assert json.loads(line)["logger"]


def test_a_party_told_to_stop_leaves_at_once_and_comes_back_to_the_same_study(town):
    for who in ("curator", "north"):
        town.start(who)
    approved = 'parley_curator_calls_total{method="Approve",outcome="OK"}'
    town.wait_for(lambda: approved in town.metrics())
    assert town.kill("north", signal.SIGTERM) == 0, "it was waiting for work"
    for who in NAMES:
        town.start(who)
    town.check_end()


@pytest.mark.slow
def test_processes_killed_again_and_again_end_in_the_same_kind_of_release(town):
    for who in ("curator", *NAMES):
        town.start(who)
    killed = 0
    for _ in range(3):
        for who in ("curator", *NAMES):
            before = town.record()
            if before.state is CuratorState.DONE or town.processes[who].poll() is not None:
                break
            town.kill(who)
            killed += 1
            town.start(who)
            town.wait_for(lambda before=before: town.record() != before)
    assert killed
    town.check_end(restarted=True)


def another(town, role, **environment):
    """A second process of a service, which is expected to end at once."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.services", "party" if role in NAMES else role,
         str(town.folder / f"{role}.toml")],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    return done.stderr


def test_a_second_curator_on_the_same_port_is_an_error(town):
    town.start("curator")
    listen = f"127.0.0.1:{town.port}"
    folder = str(town.folder / "another folder")
    told = another(town, "curator", PARLEY_CURATOR_LISTEN=listen, PARLEY_CURATOR_FOLDER=folder)
    assert "cannot listen" in told


def test_a_second_service_on_the_same_folder_is_an_error_and_disturbs_nobody(town):
    for who in ("curator", "north"):
        town.start(who)
    approved = 'parley_curator_calls_total{method="Approve",outcome="OK"}'
    town.wait_for(lambda: approved in town.metrics())
    told = another(town, "curator", PARLEY_CURATOR_LISTEN="127.0.0.1:0")
    assert f"another curator runs on the folder {town.folder / 'curator'}" in told
    told = another(town, "north", PARLEY_PARTY_CURATOR=f"127.0.0.1:{town.port}")
    assert f"another node of this party runs on the folder {town.folder / 'north'}" in told
    assert town.record().state is CuratorState.WAITING, "commands on the folder still read it"
    town.start("east")
    town.check_end()
