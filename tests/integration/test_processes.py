"""Curator and parties as processes of their own, on real files, ended by SIGTERM and by kill -9."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from common.crypto.identity_file import load_identity
from common.crypto.sum_plan import Aggregation
from common.database import Database
from common.privacy.randomness import OsRandomSource
from common.schema import Schema
from common.study import Member, Study
from curator.app import CuratorSettings, open_store, propose
from curator.records import StudyState as CuratorState
from parley.keyring import init_curator, init_party
from party.journal import Journal, StudyState
from party.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("north", "east")
ROWS = 60
SCHEMA = "".join(f'[[attribute]]\nname = "a{i}"\nkind = "boolean"\n' for i in range(4))
POLICY = """
[budget]
epsilon_per_study = "2"
epsilon_in_total = "4"
[approval]
automatic = true
"""


def clock():
    return datetime.now(UTC)


class Town:
    """Everybody's folders, and the processes that run on them."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}
        ring = init_curator(
            folder / "curator keys", "hub", ("127.0.0.1",), now=clock(), external=False
        )
        self.settings = CuratorSettings(
            folder=folder / "curator", keys=ring.folder, releases=folder / "releases"
        )
        (folder / "curator.toml").write_text(
            'folder = "curator"\nkeys = "curator keys"\nreleases = "releases"\n'
            'metrics = "127.0.0.1:0"\n'
        )
        members = [self.add_party(name, ring) for name in NAMES]
        self.study = Study(
            name="processes",
            schema=Schema.from_toml(SCHEMA),
            members=tuple(members),
            epsilon=Fraction(2),
            method="dp-subn",
            aggregation=Aggregation.MASKED,
        )
        propose(self.settings, self.study, clock=clock)
        self.port = 0

    def add_party(self, name, ring):
        own = init_party(self.folder / f"{name} keys", name)
        _, path = ring.approve(own.read_request(), days=2, now=clock())
        own.trust(ring.files.authority.read_bytes(), where=path)
        own.accept(path.read_bytes(), where=path, now=clock())
        rng = np.random.default_rng(3)
        cells = rng.integers(0, 2, (ROWS, 4)).tolist()
        lines = [",".join(f"a{i}" for i in range(4)), *(",".join(map(str, r)) for r in cells)]
        (self.folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "policy.toml").write_text(POLICY)
        (self.folder / f"{name}.toml").write_text(
            f'folder = "{name}"\nkeys = "{name} keys"\npolicy = "policy.toml"\n'
            "first_wait_s = 0.05\nlongest_wait_s = 0.5\nlook_again_s = 0.1\n"
            f'[source]\nkind = "csv"\npath = "{name}.csv"\n'
        )
        return Member(name=name, rows=ROWS, identity=load_identity(own.identity).public)

    def start(self, who):
        role = "curator" if who == "curator" else "party"
        environment = {
            **os.environ,
            "PARLEY_CURATOR_LISTEN": f"127.0.0.1:{self.port}",
            "PARLEY_PARTY_CURATOR": f"127.0.0.1:{self.port}",
        }
        if role == "curator":
            del environment["PARLEY_PARTY_CURATOR"]
        log = (self.folder / f"{who}.log").open("ab")
        with log:
            self.processes[who] = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.services", role,
                 str(self.folder / f"{who}.toml")],
                cwd=ROOT, env=environment, stderr=log, stdout=log,
            )  # fmt: skip
        if who == "curator" and not self.port:
            self.wait_for((self.folder / "curator" / "port").exists)
            self.port = int((self.folder / "curator" / "port").read_text())

    def kill(self, who, number=signal.SIGKILL):
        process = self.processes.pop(who)
        process.send_signal(number)
        return process.wait(timeout=60)

    def record(self):
        database, store = open_store(self.settings)
        try:
            return store.record(self.study.digest)
        finally:
            database.close()

    def metrics(self):
        log = (self.folder / "curator.log").read_text()
        port = re.search(r"metrics on port (\d+)", log)[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            return answer.read().decode()

    def wait_for(self, condition, seconds=120):
        for _ in range(seconds * 20):
            if condition():
                return
            time.sleep(0.05)
        logs = {path.name: path.read_text()[-2000:] for path in self.folder.glob("*.log")}
        raise AssertionError(f"waited too long: {logs}")

    def check_end(self):
        """A release; every step charged once, to the fraction; nobody waits for anything."""
        for name in NAMES:
            assert self.processes.pop(name).wait(timeout=60) == 0
        assert self.record().state is CuratorState.DONE
        steps = json.loads(Path(self.record().place).read_text())
        for name in NAMES:
            database = Database(self.folder / name / "party.db")
            ledger, journal = Ledger(database), Journal(database, OsRandomSource())
            ledger.verify()
            charged = {entry.charge.step: str(entry.charge.epsilon) for entry in ledger.entries()}
            assert charged == {step: costs[name] for step, costs in steps if name in costs}
            assert ledger.spent() <= self.study.epsilon
            assert journal.state(self.study.digest) is StudyState.FINISHED
            database.close()


@pytest.fixture
def town(tmp_path):
    made = Town(tmp_path)
    yield made
    for process in made.processes.values():
        process.kill()
        process.wait()


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
    town.check_end()


def test_a_second_curator_on_the_same_port_is_an_error(town):
    town.start("curator")
    other = subprocess.run(
        [sys.executable, "-m", "tests.integration.services", "curator",
         str(town.folder / "curator.toml")],
        cwd=ROOT, env={**os.environ, "PARLEY_CURATOR_LISTEN": f"127.0.0.1:{town.port}"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert other.returncode != 0
    assert "cannot listen" in other.stderr
