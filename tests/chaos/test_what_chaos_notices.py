"""A violation does not pass unseen: every kind of damage, done to files that were in order."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import pytest

from common.crypto.sums.plan import Aggregation
from common.privacy.randomness import OsRandomSource
from common.service.database import Database
from curator.settings import open_store
from curator.store.records import StudyState
from party.journal import Journal
from party.ledger import Caps, Ledger, LedgerCharge
from tests.chaos import checks
from tests.chaos.files import CuratorFile, PartyFile, read_curator, read_party
from tests.chaos.observer import Observer
from tests.chaos.soak import BOUNDS, Soak
from tests.chaos.world import PER_STUDY, World

AT = "2026-01-02T03:04:05+00:00"


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path, 2)
    yield made
    made.close()


@pytest.fixture
def offer(world):
    return world.offer("s", method="floor", aggregation=Aggregation.MASKED, epsilon=Fraction(1))


@pytest.fixture
def files(world, offer):
    """What a study leaves that went well."""
    party = PartyFile(
        states={offer.digest: "finished"},
        sent={(offer.digest, 1): "d"},
        step_keys={},
        ledger={1: (offer.digest, "first", "1/3", "x"), 2: (offer.digest, "next", "2/3", "y")},
        secrets={},
    )
    arrived = {(name, offer.digest, 1): "d" for name in world.names}
    curator = CuratorFile(
        studies={offer.digest: ("done", "", "place")}, arrived=arrived, secrets={}
    )
    return curator, dict.fromkeys(world.names, party)


def test_a_study_that_went_well_has_no_problem(offer, files):
    assert list(checks.of_study(offer, *files)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: {"ledger": {1: (d, "first", "1/3", "x")}}, "epsilon 1/3, not 1"),
        (lambda d: {"ledger": {n: (d, f"{n}", "1", "x") for n in (1, 2)}}, "epsilon 2, not 1"),
        (lambda d: {"sent": {(d, 1): "other"}}, "not what the curator has"),
        (lambda d: {"sent": {}}, "not what the curator has"),
        (lambda d: {"sent": {(d, 1): "d", (d, 2): "e"}}, "not what the curator has"),
        (lambda d: {"secrets": {d: ["a step key"]}}, "still has a step key"),
        (lambda d: {"states": {d: "running"}}, "it is running"),
    ],
)  # fmt: skip
def test_what_is_wrong_at_a_party_is_a_problem(offer, files, change, said):
    curator, parties = files
    damaged = replace(parties["east"], **change(offer.digest))
    (found,) = checks.of_study(offer, curator, parties | {"east": damaged})
    assert said in found
    assert "east" in found


def test_a_study_that_is_not_done_or_leaves_secrets_is_a_problem(offer, files):
    curator, parties = files
    failed = replace(curator, studies={offer.digest: ("failed", "cause", "")})
    assert list(checks.of_study(offer, failed, parties)) == ["is failed, not done: cause"]
    left = replace(curator, secrets={offer.digest: ["the key paillier"]})
    assert list(checks.of_study(offer, left, parties)) == ["the curator still has the key paillier"]


def test_a_study_beyond_the_policy_must_be_refused_for_that(world, files):
    beyond = world.offer(
        "t", refused=True, method="floor", aggregation=Aggregation.MASKED,
        epsilon=Fraction(PER_STUDY + 1),
    )  # fmt: skip
    curator, parties = files
    for state, cause, right in (
        ("refused", "'east' refused: the owner's policy does not allow this study", True),
        ("refused", "for fun", False),
        ("done", "", False),
    ):
        seen = replace(curator, studies={beyond.digest: (state, cause, "")})
        assert (list(checks.of_study(beyond, seen, parties)) == []) is right


@pytest.fixture
def written(world, offer):
    """Files of the services, in the middle of a study."""
    digest = offer.study.digest
    for name in world.names:
        database = Database(world.folder / name / "party.db")
        journal, ledger = Journal(database, OsRandomSource()), Ledger(database)
        journal.begin(digest, name="s", data_digest="d", at=AT)
        journal.step_key(digest, 0)
        with journal.transaction():
            journal.add_outgoing(digest, b"body", kind="Answer", recipient="curator", at=AT)
        charge = LedgerCharge(
            study=offer.digest, study_name="s", step="first", mechanism="m", epsilon=Fraction(1)
        )
        ledger.charge(charge, Caps(per_study=Fraction(8), in_total=Fraction(8)), AT)
        database.close()
    release = world.folder / "release"
    release.mkdir()
    (release / "synthetic.csv").write_text("a\n")
    with open_store(world.settings) as store, store.transaction():
        store.inbox.add(digest, "north", sequence=1, body=b"body", effects=[], at=AT)
        store.end(digest, StudyState.DONE, cause="", place=str(release), at=AT)


def test_what_the_services_write_is_read(world, offer, written):
    party = read_party(world.folder / "north" / "party.db")
    assert party.spent(offer.digest) == 1
    assert party.secrets == {offer.digest: ["a step key", "a sent message"]}
    curator = read_curator(world.folder / "curator" / "curator.db")
    assert curator.arrived_of("north", offer.digest) == party.sent_of(offer.digest)
    assert curator.studies[offer.digest][0] == "done"


def test_a_study_that_does_not_move_is_a_violation(world, offer, written):
    checks.settle(world, [offer], seconds=0)
    assert "study s: at east it is running" in world.violations


@pytest.mark.parametrize(
    ("file", "statement", "said"),
    [
        ("north/party.db", "UPDATE outgoing SET digest = x'00'", "('message'"),
        ("north/party.db", "UPDATE step_key SET key = x'00'", "('step key'"),
        ("north/party.db", "UPDATE entry SET epsilon = '2'", "('charge', 1) was"),
        ("north/party.db", "DELETE FROM entry", "('charge', 1) was there"),
        ("curator/curator.db", "UPDATE received SET digest = x'00'", "('message', 'north'"),
    ],
)
def test_an_observer_sees_what_changes_or_vanishes(world, written, file, statement, said):
    observer = Observer(world)
    for _ in range(2):
        observer.look()
    assert world.violations == []
    with closing(sqlite3.connect(world.folder / file, isolation_level=None)) as database:
        database.execute(statement)
    observer.look()
    (found,) = world.violations
    assert said in found


def test_an_observer_sees_a_release_that_changes_but_for_its_signatures(world, written):
    observer = Observer(world)
    observer.look()
    (world.folder / "release" / "signatures").mkdir()
    (world.folder / "release" / "signatures" / "north.json").write_text("{}")
    observer.look()
    assert world.violations == []
    (world.folder / "release" / "synthetic.csv").write_text("ab\n")
    observer.look()
    (found,) = world.violations
    assert "('release'" in found


def test_a_stack_trace_in_a_log_is_a_violation_unless_a_full_disk_caused_it(world):
    for who in world.everybody:
        (world.folder / f"{who}.log").write_text('{"message": "m", "level": "info"}\n')
    checks.check_logs(world)
    assert world.violations == []
    with (world.folder / "north.log").open("a") as log:
        log.write('{"message": "m", "error": "LocalError", "at": ["a.py:1 f"]}\n')
    checks.check_logs(world)
    assert world.violations.pop() == (
        "north: a stack trace in the log, 1 times: LocalError: m, a.py:1 f"
    )
    world.filled.add("north")
    checks.check_logs(world)
    assert world.violations == []


@pytest.mark.parametrize(("code", "violations"), [(5, 0), (1, 1), (0, 1)])
def test_a_service_that_ends_by_itself_must_say_why(world, monkeypatch, code, violations):
    process = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])
    process.wait()
    world.processes["north"] = process
    monkeypatch.setattr(world, "start", lambda who: None)
    world.revive()
    assert len(world.violations) == violations


@pytest.mark.parametrize("what", BOUNDS)
def test_growth_beyond_a_bound_is_seen(what):
    for factor, seen in ((0.5, False), (2, True)):
        soak = Soak(done=1000)
        slope = factor * BOUNDS[what].most("north", 750)
        for at in range(0, 1001, 50):
            figures = dict.fromkeys(BOUNDS, 100.0) | {what: 100 + slope * at}
            soak.samples.append((at, float(at), "north", figures))
        grown = [each.what for each in soak.growth() if each.slope > each.most]
        assert grown == ([what] if seen else [])
