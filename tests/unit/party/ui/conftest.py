"""A party with a page for its owner."""

import datetime as dt
from fractions import Fraction

import pytest

from common.privacy.randomness import SeededRandomSource
from common.service.database import Database
from parley.simulation.in_process import RowsInMemory
from party.client.context import PartyContext
from party.collection import Collection
from party.journal import Journal, Notes
from party.ledger import Ledger
from party.owner.decisions import Approvals
from party.owner.dry_run import PlannedStep
from party.owner.policy import Policy
from party.sources.source import Snapshot
from tests.harness.policies import GivenPolicy
from tests.harness.small_study import EveryKindOfStep, make_study

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NASTY = "<img src=x onerror=alert(1)>"


class Rows(RowsInMemory):
    @property
    def snapshot(self):
        return Snapshot(rows=self.rows, digest="d", as_of=None)


@pytest.fixture
def source_of_people():
    """Whether the source says whose row a row is."""
    return False


@pytest.fixture
def context(tmp_path, identities, tables, source_of_people):
    database = Database(tmp_path / "party.db")
    yield PartyContext(
        name="north",
        identity=identities["north"],
        policies=GivenPolicy(Policy(
            epsilon_per_study=Fraction(3), epsilon_in_total=Fraction(10), min_parties=3
        )),
        approvals=Approvals(database),
        journal=Journal(database, SeededRandomSource("north")),
        ledger=Ledger(database),
        notes=Notes(database),
        collection=Collection(database),
        check_source=lambda: None,
        open_source=lambda study: Rows(tables["north"]),
        begin=EveryKindOfStep,
        forecast=lambda study, party: [
            PlannedStep(phase="counting", cost=Fraction(1, 3), tables=2, cells=8),
            PlannedStep(phase="choosing", cost=Fraction(2), choices=1),
        ],
        clock=lambda: NOW,
        source_of_people=source_of_people,
    )  # fmt: skip
    database.close()


@pytest.fixture
def study(identities, rows):
    return make_study(identities, rows, name=f"health {NASTY}")
