"""An auditor replays an ended study: honest answers follow, and lies do not."""

import datetime as dt
from collections import deque
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from common.crypto.paillier.blinding import PowerBlinder
from common.crypto.sums.plan import Aggregation
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.service.database import Database
from common.study.commitments import Commitments
from common.wire import codec
from curator.role import SendToParty
from parley.simulation.in_process import RowsInMemory
from party.auditing import ReplayFinding, audit
from party.client.context import PartyContext
from party.journal import Journal
from party.ledger import Caps, Ledger
from party.node import PartyNode
from party.retention import Retention
from party.sources.source import Snapshot
from tests.harness.roles import curator_role, party_role
from tests.harness.small_study import SIZES, Sums, make_study

CAPS = Caps(per_study=Fraction(100), in_total=Fraction(100), delta=Fraction(1, 10))
SNAPSHOT = Snapshot(rows=1, digest="of the rows", as_of=None)
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Rows(RowsInMemory):
    snapshot = SNAPSHOT


class Owner:
    """An owner's node on a file; `lie` is the table that it really counts."""

    def __init__(self, path, name, study, identity, table, *, lie=None, days=30):
        self.name, self.study, self.identity, self.table = name, study, identity, table
        self.database, self.sent, self.delivered = Database(path), deque(), 0
        self.ledger = Ledger(self.database)
        retention = Retention(self.database, identity, lambda: days)
        self.journal = Journal(self.database, SeededRandomSource(name), retention)
        counted = table if lie is None else lie
        self.node = PartyNode(
            study,
            SNAPSHOT,
            party=name,
            role=lambda source_of: party_role(
                study, Sums, name, identity, counted, source_of=source_of
            ),
            journal=self.journal,
            ledger=self.ledger,
            caps=lambda: CAPS,
            clock=lambda: NOW,
            send=self.sent.append,
            consents=lambda: True,
        )
        self.received = []

    def deliver(self, message):
        self.delivered += 1
        self.node.receive(self.delivered, codec.TO_PARTY.encode(message))

    def context(self, *, table=None):
        """What an audit looks at, with the rows that the auditor is shown."""
        shown = self.table if table is None else table
        context = SimpleNamespace(
            name=self.name, identity=self.identity, journal=self.journal, ledger=self.ledger,
            open_source=lambda study: Rows(shown), begin=Sums, blinder_of=PowerBlinder,
        )  # fmt: skip
        context.role = partial(PartyContext.role, context)
        return context


@pytest.fixture
def held(tmp_path, identities, rows, tables, paillier_key):
    """Runs a whole study; returns the study, and the owners by name."""
    opened = []

    def hold(*, lies=None, days=30, released=None, **options):
        study = make_study(identities, rows, **options)
        curator = curator_role(study, Sums, key=paillier_key)
        owners = {
            name: Owner(
                tmp_path / f"{name}.db", name, study, identities[name], tables[name],
                lie=(lies or {}).get(name), days=days,
            )
            for name in tables
        }  # fmt: skip
        opened.extend(owner.database for owner in owners.values())
        waiting = deque(curator.start())
        while waiting:
            effect = waiting.popleft()
            if isinstance(effect, SendToParty):
                owner = owners[effect.to]
                owner.deliver(effect.message)
                while owner.sent:
                    body = owner.sent.popleft().body
                    owner.received.append(body)
                    waiting.extend(curator.receive(owner.name, codec.TO_CURATOR.decode(body)))
        if released is not None:
            released.append(curator.commitments)
        return study, owners

    yield hold
    for database in opened:
        database.close()


def other_rows(table):
    """The same number of rows, one of them another one."""
    columns = [column.astype(np.int64) for column in table.columns]
    columns[0][0] = (columns[0][0] + 1) % SIZES[0]
    return Codes.from_columns(columns, table.sizes)


def findings(report, finding):
    return [message for message, outcome in report.messages if outcome is finding]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"agreement": "hybrid"},
        {"delta": Fraction(1, 1000)},
        {"aggregation": Aggregation.PAILLIER},
        {"commitments": True},
        {"commitments": True, "agreement": "hybrid"},
        {"commitments": True, "may_miss": 1, "colluders": 0},
        {"commitments": True, "aggregation": Aggregation.PAILLIER},
    ],
    ids=[
        "masked", "hybrid", "delta", "ring", "committed", "committed hybrid", "committed may miss",
        "committed ring",
    ],
)  # fmt: skip
def test_an_honest_owner_passes(held, options):
    study, owners = held(**options)
    for owner in owners.values():
        report = audit(study, owner.context())
        assert report.passed
        assert not findings(report, ReplayFinding.DIFFERS)
        assert report.received_agree is None
        assert report.commitments_agree is (True if "commitments" in options else None)
        assert "our own word" in report.sentences()[-1]
        if "aggregation" not in options:
            assert len(findings(report, ReplayFinding.FOLLOWS)) >= 3  # a word for every sum
    assert len(report.messages) == len(owner.journal.sent_log())


def test_an_owner_that_counted_other_rows_than_it_shows_is_convicted(held, tables):
    lie = other_rows(tables["east"])
    study, owners = held(lies={"east": lie})
    report = audit(study, owners["east"].context())
    assert not report.passed
    assert len(findings(report, ReplayFinding.DIFFERS)) == 3  # every sum
    assert "does NOT follow" in " ".join(report.sentences())
    assert audit(study, owners["north"].context()).passed
    assert audit(study, owners["east"].context(table=lie)).passed  # it did count these


def test_another_table_than_the_one_that_the_study_began_with_is_named(held):
    study, owners = held()
    context = owners["east"].context()
    context.open_source = lambda study: SimpleNamespace(
        snapshot=SimpleNamespace(digest="another"),
        rows=owners["east"].table.rows,
        count=RowsInMemory(owners["east"].table).count,
        codes=owners["east"].table,
    )
    report = audit(study, context)
    assert not report.rows_as_pinned
    assert not report.passed


def test_a_ledger_that_lacks_a_charge_is_noticed(held):
    study, owners = held()
    with owners["east"].database.transaction():
        owners["east"].database.write("DELETE FROM entry WHERE number = 1", ())
    report = audit(study, owners["east"].context())
    assert not report.charges_agree
    assert not report.passed


def test_what_the_curator_received_is_compared(held):
    study, owners = held()
    owner = owners["east"]
    sent = [each.digest for each in owner.journal.sent_log()]
    assert audit(study, owner.context(), received=sent).passed
    report = audit(study, owner.context(), received=["00" * 32, *sent[1:]])
    assert report.received_agree is False
    assert not report.passed
    assert "is NOT" in report.sentences()[-1]


def test_a_sent_log_that_was_changed_to_fit_other_rows_does_not_fit_the_curators_record(
    held, tables
):
    """An owner that forges its own records after the fact is convicted by the other side's."""
    lie = other_rows(tables["east"])
    study, owners = held(lies={"east": lie})
    owner = owners["east"]
    received = [each.digest for each in owner.journal.sent_log()]
    report = audit(study, owner.context())
    forged = [m for m, finding in report.messages if finding is ReplayFinding.DIFFERS]
    assert forged
    assert audit(study, owner.context(table=lie), received=received).passed
    assert not audit(study, owner.context(), received=received).passed


def test_the_commitments_in_the_release_stand_in_for_the_curator_s_record(held):
    released = []
    study, owners = held(commitments=True, released=released)
    for owner in owners.values():
        report = audit(study, owner.context(), released=released[0])
        assert report.passed
        assert "in the release open to these rows" in report.sentences()[-1]


def test_an_owner_that_shows_other_rows_than_it_committed_to_is_convicted(held, tables):
    """It counted the rows that it committed to, and shows the auditor prettier ones."""
    released = []
    study, owners = held(commitments=True, released=released)
    shown = owners["east"].context(table=other_rows(tables["east"]))
    report = audit(study, shown, released=released[0])
    assert report.commitments_agree is False
    assert not report.passed
    assert "do NOT open to" in " ".join(report.sentences())


def test_an_owner_that_counted_other_rows_than_it_committed_to_is_convicted(held, tables):
    """Whichever table it shows: its commitments are of one, and its answers of the other."""
    released = []
    lie = other_rows(tables["east"])
    study, owners = held(commitments=True, released=released, lies={"east": lie})
    assert not audit(study, owners["east"].context(), released=released[0]).passed
    assert audit(study, owners["east"].context(table=lie), released=released[0]).passed


@pytest.mark.parametrize("what", ["table", "contribution"])
def test_records_that_were_made_up_after_the_study_do_not_open_what_was_released(held, what):
    """The owner's journal agrees with itself; the release, which all owners signed, does not."""
    released = []
    study, owners = held(commitments=True, released=released)
    place = study.parties.index("east")
    tables, contributions = released[0].tables, released[0].contributions
    if what == "table":
        tables = {**tables, "east": replace(tables["east"], value=bytes(32))}
    else:
        first = list(contributions[0])
        first[place] = bytes(32)
        contributions = (tuple(first), *contributions[1:])
    report = audit(study, owners["east"].context(), released=Commitments(tables, contributions))
    assert report.commitments_agree is False
    assert not report.passed
    others = audit(study, owners["north"].context(), released=Commitments(tables, contributions))
    assert others.passed


def test_nothing_kept_is_nothing_to_audit(held):
    study, owners = held(days=0)
    with pytest.raises(InputError, match="keep_for_audit"):
        audit(study, owners["east"].context())
