"""A curator and its parties as processes of their own, on folders of their own.

`python -m tests.harness.process_consortium ROLE FILE` is one of those processes: a service whose
keys of steps are drawn from a seed if PARLEY_TEST_SEED is set.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from common.crypto.key_files import load_identity
from common.crypto.sums.plan import Aggregation
from common.exchanges.setup import with_commitments, with_hybrid_masks
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes
from common.service.database import Database
from common.service.process import log_to, stopping_on_signals, system_clock
from common.study.document import Study
from common.study.members import Member
from curator import app as curator_app
from curator.app import propose
from curator.settings import CuratorSettings, curator_settings, open_store
from curator.store.records import StudyState
from party import app as party_app
from party.journal import Journal, JournalState
from party.ledger import Ledger
from party.settings import party_settings, source_settings
from tests.harness.consortium import authority, enrolled
from tests.harness.roles import replayed

SEED = "PARLEY_TEST_SEED"
ROOT = Path(__file__).resolve().parents[2]
NAMES = ("north", "east")
ROWS = 300  # enough for a structure to be learnt, in several steps
SCHEMA = "".join(f'[[attribute]]\nname = "a{i}"\nkind = "boolean"\n' for i in range(4))
POLICY = """
[budget]
epsilon_per_study = "{per_study}"
epsilon_in_total = "{in_total}"
[study]
signers = ["{signer}"]
[approval]
automatic = true
"""


class ProcessConsortium:
    """A curator and its parties: their folders, and the processes that run on them."""

    stdin = None  # of every process; None is ours

    def __init__(self, folder, names=NAMES, *, country=None):
        self.folder, self.names, self.country = folder, names, country
        self.processes = {}
        self.port = 0
        hosts = {name: self.curator_of(name) for name in names}
        self.ring = authority(folder / "curator keys", hosts=tuple(hosts.values()))
        self.settings = CuratorSettings(
            folder=folder / "curator", keys=self.ring.folder, releases=folder / "releases"
        )
        (folder / "curator.toml").write_text(
            'folder = "curator"\nkeys = "curator keys"\nreleases = "releases"\n'
            'metrics = "127.0.0.1:0"\n'
        )
        self.tables, self.identities = {}, {}
        self.members = [self.add_party(name) for name in names]

    def new_study(self, name, *, schema=SCHEMA, members=None, **terms):
        """Make a study of some of the parties, or of all, signed by the first party."""
        members = tuple(self.members if members is None else members)
        study = Study(name=name, schema=Schema.from_toml(schema), members=members, **terms)
        study = with_commitments(with_hybrid_masks(study))
        return study.signed_by(self.identities[self.names[0]])

    def write_policy(self, *, per_study, in_total):
        """Write the policy of every party: within the budget, what the first party signed."""
        signer = self.identities[self.names[0]].public.fingerprint
        text = POLICY.format(signer=signer, per_study=per_study, in_total=in_total)
        (self.folder / "policy.toml").write_text(text)

    def add_keys(self, name):
        """Make the keys and the certificate of a party."""
        return enrolled(self.ring, self.folder / f"{name} keys", name, days=2)

    def add_party(self, name):
        own = self.add_keys(name)
        cells = np.random.default_rng(3).integers(0, 2, (ROWS, 4))
        self.tables[name] = Codes.from_columns(list(cells.T), [2] * 4)
        self.identities[name] = load_identity(own.identity)
        lines = [",".join(f"a{i}" for i in range(4)), *(",".join(map(str, r)) for r in cells)]
        (self.folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        (self.folder / f"{name}.toml").write_text(
            f'folder = "{name}"\nkeys = "{name} keys"\npolicy = "policy.toml"\n'
            "first_wait_s = 0.05\nlongest_wait_s = 0.5\nlook_again_s = 0.1\n"
            "fetch_releases = false\n"
            f'[source]\nkind = "csv"\npath = "{name}.csv"\n'
        )
        return Member(name=name, rows=ROWS, identity=self.identities[name].public)

    def curator_of(self, name):
        """Return the curator's address, as a party knows it."""
        if self.country is None:
            return "127.0.0.1"
        return self.country.curator_address(self.names.index(name))

    def command(self, who):
        """Return what runs a service; both read their settings from `who`.toml."""
        role = "curator" if who == "curator" else "party"
        file = str(self.folder / f"{who}.toml")
        return [sys.executable, "-m", "tests.harness.process_consortium", role, file]

    def start(self, who):
        environment = {**os.environ, SEED: who}
        if who == "curator":
            address = "127.0.0.1" if self.country is None else "0.0.0.0"  # noqa: S104  # its own
            environment["PARLEY_CURATOR_LISTEN"] = f"{address}:{self.port}"
        else:
            environment["PARLEY_PARTY_CURATOR"] = f"{self.curator_of(who)}:{self.port}"
        within = [] if self.country is None else self.country.within(who)
        log = (self.folder / f"{who}.log").open("ab")
        with log:
            self.processes[who] = subprocess.Popen(
                [*within, *self.command(who)],
                cwd=ROOT, env=environment, stdin=self.stdin, stderr=log, stdout=log,
            )  # fmt: skip
        if who == "curator" and not self.port:
            self.wait_for((self.folder / "curator" / "port").exists)
            self.port = int((self.folder / "curator" / "port").read_text())

    def kill(self, who, number=signal.SIGKILL):
        process = self.processes.pop(who)
        process.send_signal(number)
        return process.wait(timeout=60)

    def wait_for(self, condition, seconds=120):
        for _ in range(seconds * 20):
            if condition():
                return
            time.sleep(0.05)
        logs = {path.name: path.read_text()[-2000:] for path in self.folder.glob("*.log")}
        raise AssertionError(f"waited too long: {logs}")

    def log(self, who):
        return (self.folder / f"{who}.log").read_text()[-3000:]

    def stop(self):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def propose(self, **terms):
        """Propose the one study that all parties are to run."""
        chosen = {"epsilon": Fraction(8), "method": "dp-subn", "aggregation": Aggregation.MASKED}
        self.study = self.new_study("processes", **chosen | terms)
        self.write_policy(per_study=8, in_total=9)
        propose(self.settings, self.study, clock=system_clock)

    def record(self):
        with open_store(self.settings) as store:
            return store.record(self.study.digest)

    def metrics(self):
        log = self.folder / "curator.log"
        # Calls are taken a moment before metrics are served.
        self.wait_for(lambda: "metrics on port" in log.read_text())
        port = re.search(r"metrics on port (\d+)", log.read_text())[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            return answer.read().decode()

    def check_end(self, *, restarted=False):
        """Expect the release of the in-process run, one charge per step and one answer.

        After a restart a seeded source begins anew, so the release is then one of its kind.
        """
        for name in self.names:
            codes = {0}
            if restarted:  # started again after its study was over, it waits for another
                self.wait_for(lambda name=name: self.state_of(name) is JournalState.FINISHED)
                self.processes[name].terminate()
                codes.add(-signal.SIGTERM)  # it may be on its way out, and heed no signal any more
            assert self.processes.pop(name).wait(timeout=120) in codes, self.log(name)
        assert self.record().state is StudyState.DONE
        released = json.loads(Path(self.record().place).read_text())
        if not restarted:
            expected = replayed(self.study, run_of, self.identities, self.tables).model.as_json()
            assert released["model"] == json.loads(json.dumps(expected))
        for name in self.names:
            self._check_party(name, released["steps"])

    def state_of(self, name):
        database = Database(self.folder / name / "party.db")
        try:
            return Journal(database, OsRandomSource()).state(self.study.digest)
        finally:
            database.close()

    def _check_party(self, name, steps):
        database = Database(self.folder / name / "party.db")
        ledger, journal = Ledger(database), Journal(database, OsRandomSource())
        ledger.verify()
        charged = {entry.charge.step: str(entry.charge.epsilon) for entry in ledger.entries()}
        assert charged == {step: costs[name] for step, costs in steps if name in costs}
        assert ledger.spent() <= self.study.epsilon
        assert journal.state(self.study.digest) is JournalState.FINISHED
        left = {each.sequence: each.digest for each in journal.sent_log()}
        database.close()
        assert left == self.arrived(name), "the curator has what left, and left once"

    def arrived(self, name):
        """Return the digest of every message of a party, as the curator stored it."""
        with open_store(self.settings) as store:
            digests = store.inbox.digests(self.study.digest, name)
        return {sequence: each.hex() for sequence, each in enumerate(digests, start=1)}


def serve_curator(file):
    settings = curator_settings(file, os.environ).values

    def publish(outcome):
        settings.releases.mkdir(exist_ok=True)
        path = settings.releases / f"{outcome.study.digest.hex()[:16]}.json"
        steps = [[step.name, {k: str(v) for k, v in step.costs.items()}] for step in outcome.steps]
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps({"steps": steps, "model": outcome.model.as_json()}))
        scratch.replace(path)
        return path

    def started(port):
        scratch = settings.folder / "port.new"
        scratch.write_text(str(port))
        scratch.replace(settings.folder / "port")

    with stopping_on_signals() as stopping:
        curator_app.serve(
            settings, publish=publish, stopping=stopping, clock=system_clock, software="test",
            started=started,
        )  # fmt: skip


def join_party(file):
    settings = party_settings(file, os.environ)
    source = source_settings(settings, file, os.environ)
    with (
        stopping_on_signals() as stopping,
        party_app.alone(settings.values),
        party_app.party_context(settings.values, source, clock=system_clock) as context,
    ):
        manager = party_app.session_manager(
            settings.values, context, environment=os.environ, stopping=stopping, software="test"
        )
        with party_app.metrics(settings.values, context):
            manager.run(once=True)


def draw_keys_from(seed):
    """Draw keys from a seed, so that two runs can be compared."""
    for app in (curator_app, party_app):
        app.OsRandomSource = partial(SeededRandomSource, seed)


if __name__ == "__main__":
    log_to()
    if seed := os.environ.pop(SEED, ""):
        draw_keys_from(seed)
    role, path = sys.argv[1:]
    {"curator": serve_curator, "party": join_party}[role](Path(path))
