"""`parley restore`: a state never goes backwards."""

import sqlite3
from fractions import Fraction

from common.service.database import Database
from common.service.process import alone_in
from curator.app import curator_settings, open_store
from curator.store.records import StudyState as CuratorState
from party.ledger import Caps, Charge, Ledger
from tests.harness.deployed_folder import BACKUP, HUB, NORTH, RESTORE, books_of_north, spend, state


def damage(path):
    path.write_bytes(path.read_bytes()[:1000])


def test_a_ledger_is_backed_up_and_restored_where_it_is_lost(parley, place):
    spend(place.folder)
    before = parley("party", "ledger", "--verify", "--json", *NORTH).json
    done = parley(*BACKUP)
    assert done.code == 0, done.err
    assert before["head"] in done.out
    assert (place.folder / "north.backup").stat().st_mode & 0o777 == 0o600
    assert "nothing is overwritten" in parley(*BACKUP).err
    state(place).unlink()
    done = parley(*RESTORE, "--json")
    assert done.code == 0, done.err
    assert "has forgotten what was charged since" in done.err
    after = parley("party", "ledger", "--verify", "--json", *NORTH).json
    assert after["entries"][: len(before["entries"])] == before["entries"]
    assert state(place).stat().st_mode & 0o777 == 0o600
    assert {p.name for p in state(place).parent.iterdir()} == {"party.db", "running.lock"}


def test_a_state_that_can_be_read_is_never_replaced(parley, place):
    spend(place.folder)
    assert parley(*BACKUP).code == 0
    database = Database(state(place))
    charge = Charge(
        study="s", study_name="later", step="1", mechanism="laplace", epsilon=Fraction(1)
    )
    Ledger(database).charge(charge, Caps(per_study=Fraction(1), in_total=Fraction(9)), "now")
    database.close()
    before = state(place).read_bytes()
    done = parley(*RESTORE)
    assert done.code == 3
    assert "never goes backwards" in done.err
    assert state(place).read_bytes() == before


def test_a_damaged_state_is_kept_beside_the_restored_one(parley, place):
    spend(place.folder)
    assert parley(*BACKUP).code == 0
    damage(state(place))
    broken = state(place).read_bytes()
    assert parley(*RESTORE).code == 0
    assert state(place).with_name("party.db.damaged-1").read_bytes() == broken
    assert parley("party", "ledger", "--verify", *NORTH).code == 0


def test_nothing_is_restored_under_a_running_service_or_without_a_yes(parley, place, monkeypatch):
    spend(place.folder)
    assert parley(*BACKUP).code == 0
    state(place).unlink()
    with alone_in(state(place).parent, service="node of this party"):
        done = parley(*RESTORE)
    assert (done.code, "another node of this party runs" in done.err) == (3, True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert "nothing was restored" in parley("restore", "north.backup", *NORTH).err
    assert not state(place).exists()


def test_a_study_that_was_running_is_charged_in_full_and_never_answered_again(
    parley, place, written
):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    database, journal = books_of_north(place, written)
    journal.step_key(written.digest, 0)
    database.close()
    assert parley(*BACKUP).code == 0
    state(place).unlink()
    done = parley(*RESTORE)
    assert "ends      study 'regional', which was running" in done.out
    told = parley("party", "ledger", "--verify", "--json", *NORTH).json
    assert told["spent"] == "1", "1/3 was charged by then, and 1 was approved"
    assert told["entries"][-1]["mechanism"] == "what may have left since the backup"
    with sqlite3.connect(state(place)) as file:
        assert file.execute("SELECT COUNT(*) FROM step_key").fetchone() == (0,)
    file.close()
    (line,) = parley("party", "status", "--offline", "--json", *NORTH).json
    assert line["here"] == "refused"
    assert "withdrawn on" in line["decision"]
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 4


def test_a_study_that_was_approved_and_had_not_begun_is_withdrawn_from(parley, place, written):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    assert parley(*BACKUP).code == 0
    state(place).unlink()
    assert parley(*RESTORE).code == 0
    assert parley("party", "ledger", "--json", *NORTH).json["spent"] == "0"
    assert "was withdrawn" in parley("party", "approve", "study.toml", "--yes", *NORTH).err


def test_a_running_study_of_a_restored_curator_is_to_end(parley, place, written):
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    settings = curator_settings(place.folder / "hub" / "curator.toml", {}).values
    with open_store(settings) as store, store.transaction():
        store.move(written.digest, CuratorState.RUNNING, step=0, phase="")
    assert parley("backup", "curator", "--out", "hub.backup", *HUB).code == 0
    (settings.folder / "curator.db").unlink()
    done = parley("restore", "hub.backup", "--yes", "--json", *HUB)
    assert done.json["ended"] == ["regional"]
    told = parley("curator", "study", "status", "regional", *HUB).out
    assert "to end   the curator was restored from a backup of" in told
