"""A curator's folder and its parties', with certificates, for tests of commands."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np

from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.service.database import Database
from common.service.process import system_clock
from common.study.commitments import Commitments, TableCommitment
from common.study.requests import encode_cells
from common.study.script import drive
from common.study.transcript import SETTING_UP, PhaseTraffic
from curator.app import serve
from curator.context import FinishedStudy
from curator.publisher import curator_signer, publish
from party.journal import Journal
from party.ledger import Caps, Ledger, LedgerCharge
from tests.harness.consortium import authority, enrolled

POLICY = """
[budget]
epsilon_per_study = "{per_study}"
epsilon_in_total = "4"
"""


class DeployedFolder:
    """A curator's folder and one party's, with certificates; nothing runs."""

    def __init__(self, folder, days=30, now=None):
        self.folder = folder
        self.now = now or system_clock()
        self.ring = authority(folder / "hub" / "keys", now=self.now)
        self.days = days
        (folder / "hub" / "curator.toml").write_text(
            'folder = "state"\nkeys = "keys"\nreleases = "releases"\nlisten = "127.0.0.1:0"\n'
        )
        for name in ("north", "east"):
            self.add(name)

    def add(self, name):
        home = self.folder / name
        enrolled(self.ring, home / "keys", name, days=self.days, now=self.now)
        (home / "policy.toml").write_text(POLICY.format(per_study=1))
        (home / "party.toml").write_text(
            'folder = "state"\nkeys = "keys"\npolicy = "policy.toml"\ncurator = "127.0.0.1:1"\n'
            '[source]\nkind = "csv"\npath = "../data.csv"\n'
        )

    def words(self, **changes):
        chosen = {
            "name": "regional", "schema": "schema.toml", "epsilon": "1", "out": "study.toml",
            "aggregation": "masked", "config": "hub/curator.toml",
        } | changes  # fmt: skip
        parties = [f"{name}:40:{name}/keys/identity.pub" for name in ("north", "east")]
        words = [word for key, value in chosen.items() for word in (f"--{key}", value)]
        return ["curator", "study", "new", *words, *(w for p in parties for w in ("--party", p))]


NORTH = ("--config", "north/party.toml")
HUB = ("--config", "hub/curator.toml")
AT = "2026-01-02T03:04:05+00:00"
THIRD = {"first": Fraction(1, 3)}


@contextlib.contextmanager
def begun_study(folder, study, *, charges=THIRD):
    """Yield north's file and journal, with a study begun and its steps charged."""
    (folder / "north" / "state").mkdir(exist_ok=True)
    with Database(folder / "north" / "state" / "party.db") as database:
        ledger, journal = Ledger(database), Journal(database, OsRandomSource())
        journal.begin(study, name="regional", data_digest="d", at=AT)
        for step, epsilon in charges.items():
            charge = LedgerCharge(
                study=study.hex(), study_name="regional", step=step, mechanism="laplace",
                epsilon=epsilon,
            )  # fmt: skip
            ledger.charge(charge, Caps(per_study=Fraction(1), in_total=Fraction(1)), AT)
        yield database, journal


def spend(folder):
    """Leave in north's files what a study leaves: a message, and a charge of one half."""
    charges = THIRD | {"second": Fraction(1, 6)}
    with begun_study(folder, b"s" * 32, charges=charges) as (_, journal), journal.transaction():
        journal.add_outgoing(b"s" * 32, b"12345", kind="Answer", recipient="curator", at=AT)


def outcome_of(study, identities=None):
    """Return what a curator would have if every sum were zero.

    With the identities of its parties, a study that has commitments has some.
    """
    plan = drive(run_of(study), lambda step: np.zeros(step.cells, np.int64))
    steps = plan.steps
    results = [encode_cells(np.zeros(step.cells, np.int64)) for step in steps]
    traffic = {SETTING_UP: PhaseTraffic()}
    for step in steps:
        traffic.setdefault(step.phase, PhaseTraffic()).rounds += 1
    return FinishedStudy(
        study=study, model=plan.model(), steps=steps, results=results, private=True,
        traffic=traffic, commitments=_commitments(study, steps, identities or {}),
    )  # fmt: skip


def _commitments(study, steps, identities):
    if not study.commitments:
        return None
    tables = {
        name: TableCommitment.make(
            study.digest, name, digest="rows", salt=bytes(32), identity=identity
        )
        for name, identity in identities.items()
    }
    return Commitments(tables, tuple(tuple(bytes(32) for _ in step.parties) for step in steps))


BACKUP = ("backup", "party", "--out", "north.backup", *NORTH)
RESTORE = ("restore", "north.backup", "--yes", *NORTH)


def state(place):
    return place.folder / "north" / "state" / "party.db"


@contextlib.contextmanager
def serving(settings, *, software="parley", **changes):
    """Serve a curator on a folder in a thread; yield its port."""
    settings = replace(settings, **changes)
    stopping, ready, ports = threading.Event(), threading.Event(), []
    signer = curator_signer(settings.keys, lambda path: "")

    def started(port):
        ports.append(port)
        ready.set()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(
            serve, settings, stopping=stopping, clock=system_clock, software=software,
            publish=lambda outcome: publish(outcome, settings.releases.absolute(), signer=signer),
            started=started, identity=None if signer is None else signer.identity,
        )  # fmt: skip
        running.add_done_callback(lambda _: ready.set())
        try:
            assert ready.wait(30)
            if not ports:
                running.result(timeout=1)
            yield ports[0]
        finally:
            stopping.set()
            running.result(timeout=60)
