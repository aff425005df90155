"""A curator's folder and its parties', with certificates, for tests of commands; nothing runs."""

from datetime import UTC, datetime
from fractions import Fraction

import numpy as np

from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.service.database import Database
from common.study.sums import encode_result
from common.study.transcript import SETTING_UP, PhaseTraffic
from common.wire.pki.keyring import init_curator, init_party
from curator.context import Outcome
from party.journal import Journal
from party.ledger import Caps, Charge, Ledger

POLICY = """
[budget]
epsilon_per_study = "{per_study}"
epsilon_in_total = "4"
"""


class Place:
    """A curator's folder and one party's, with certificates; nothing runs."""

    def __init__(self, folder, days=30, now=None):
        self.folder = folder
        self.now = now or datetime.now(UTC)
        self.ring = init_curator(
            folder / "hub" / "keys", "hub", ("127.0.0.1",), now=self.now, external=False
        )
        self.days = days
        (folder / "hub" / "curator.toml").write_text(
            'folder = "state"\nkeys = "keys"\nreleases = "releases"\nlisten = "127.0.0.1:0"\n'
        )
        for name in ("north", "east"):
            self.add(name)

    def add(self, name):
        home = self.folder / name
        own = init_party(home / "keys", name)
        _, path = self.ring.approve(own.read_request(), days=self.days, now=self.now)
        own.trust(self.ring.files.authority.read_bytes(), where=path)
        own.accept(path.read_bytes(), where=path, now=self.now)
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


def spend(folder):
    """What a study leaves in the books of north: a message, and a half of epsilon."""
    (folder / "north" / "state").mkdir()
    database = Database(folder / "north" / "state" / "party.db")
    ledger, journal = Ledger(database), Journal(database, OsRandomSource())
    journal.begin(b"s" * 32, name="regional", data_digest="d", at="2026-01-02T03:04:05+00:00")
    with journal.transaction():
        journal.add_outgoing(
            b"s" * 32, b"12345", kind="Answer", recipient="curator", at="2026-01-02T03:04:05+00:00"
        )
    for step, epsilon in (("first", Fraction(1, 3)), ("second", Fraction(1, 6))):
        charge = Charge(
            study=(b"s" * 32).hex(), study_name="regional", step=step, mechanism="laplace",
            epsilon=epsilon,
        )  # fmt: skip
        caps = Caps(per_study=Fraction(1), in_total=Fraction(1))
        ledger.charge(charge, caps, "2026-01-02T03:04:05+00:00")
    database.close()


def outcome_of(study):
    """What a curator would have if every sum were zero."""
    plan, steps, results = run_of(study), [], []
    while (step := plan.step()) is not None:
        steps.append(step)
        zeros = np.zeros(step.request.cells, np.int64)
        results.append(encode_result(zeros))
        plan.advance(zeros)
    traffic = {SETTING_UP: PhaseTraffic()}
    for step in steps:
        traffic.setdefault(step.phase, PhaseTraffic()).rounds += 1
    return Outcome(
        study=study, model=plan.model(), steps=steps, results=results, private=True,
        traffic=traffic,
    )  # fmt: skip


BACKUP = ("backup", "party", "--out", "north.backup", *NORTH)
RESTORE = ("restore", "north.backup", "--yes", *NORTH)


def state(place):
    return place.folder / "north" / "state" / "party.db"


def books_of_north(place, study):
    """North's file with the study begun and one step charged."""
    database = Database(place.folder / "north" / "state" / "party.db")
    ledger, journal = Ledger(database), Journal(database, OsRandomSource())
    journal.begin(study.digest, name="regional", data_digest="d", at="now")
    charge = Charge(
        study=study.digest.hex(), study_name="regional", step="first", mechanism="laplace",
        epsilon=Fraction(1, 3),
    )  # fmt: skip
    ledger.charge(charge, Caps(per_study=Fraction(1), in_total=Fraction(1)), "now")
    return database, journal
