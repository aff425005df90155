"""`parley doctor`, `config`, `backup` and `restore`."""

import socket
import sqlite3
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from common.service.checks import CheckResult
from common.service.database import Database
from common.service.process import alone_in
from common.study.document import Study
from curator.settings import curator_settings, open_store
from curator.store.records import StudyState
from party.ledger import Caps, Ledger, LedgerCharge
from tests.harness.deployed_folder import (
    BACKUP,
    HUB,
    NORTH,
    RESTORE,
    DeployedFolder,
    begun_study,
    spend,
    state,
)


def findings(done):
    return {check["check"]: check for check in done.json["checks"]}


def test_a_curator_that_is_ready_is_told_so(parley, place):
    done = parley("doctor", "curator", "--json", *HUB)
    assert done.code == 0, done.out
    assert done.json["ready"]
    assert parley("doctor", "curator", *HUB).out.count("ok  ") == len(done.json["checks"])


def test_a_contact_of_an_owner_that_nobody_knows_is_a_warning(parley, place, written):
    parley("curator", "study", "add", "study.toml", *HUB)
    with Path("hub/curator.toml").open("a") as file:
        file.write('\n[contacts]\nnorth = "ops@north.example"\n')
    done = parley("doctor", "curator", "--json", *HUB)
    assert findings(done)["contacts"]["words"] == "of 1 owner"
    with Path("hub/curator.toml").open("a") as file:
        file.write('nroth = "ops@north.example"\n')
    words = findings(parley("doctor", "curator", "--json", *HUB))["contacts"]["words"]
    assert words.startswith("no owner here is called nroth; known: ")
    assert "north" in words


def test_a_curator_that_is_down_is_the_only_thing_wrong(parley, place, written):
    done = parley("doctor", "party", "--json", "--study", "study.toml", *NORTH)
    assert done.code == 3
    assert [name for name, check in findings(done).items() if not check["ok"]] == ["curator"]
    assert "40 rows" in findings(done)["data source"]["words"]
    assert "FAIL  curator" in parley("doctor", "party", *NORTH).out


def test_a_port_that_is_taken_is_named_in_one_line(shell, place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = shell(f"parley curator serve --config hub/curator.toml --listen {listen}")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith(
        f"error: cannot listen on {listen}: is it in use?"
    )
    assert len(done.stderr.splitlines()) == 1, "gRPC's own log is not among it"


@pytest.mark.parametrize(
    ("words", "folder", "service"),
    [
        (["curator", "serve", *HUB], "hub/state", "curator"),
        (["party", "join", *NORTH], "north/state", "node of this party"),
    ],
)
def test_a_folder_with_a_running_service_has_no_second_one(parley, place, words, folder, service):
    with alone_in(place.folder / folder, service=service):
        done = parley(*words)
    assert done.code == 3
    assert f"{folder}: another {service} runs on this folder" in done.err


def test_few_descriptors_are_worth_a_warning(shell, place):
    done = shell("ulimit -n 1000; parley doctor curator --config hub/curator.toml")
    assert done.returncode == 0
    (line,) = (each for each in done.stdout.splitlines() if "open files" in each)
    assert line.startswith("warn  open files   at most 1,000 files and connections")


def test_what_the_doctor_knows_is_said_before_it_waits_for_the_network(parley, monkeypatch, place):
    def examine(*_, **__):
        yield CheckResult(check="disk", ok=True, words="room")
        raise KeyboardInterrupt  # of somebody who does not want to wait

    monkeypatch.setattr("parley.cli.commands.service.examine_party", examine)
    done = parley("doctor", "party", *NORTH)
    assert done.out == "ok    disk         room\n"
    assert done.code == 130


def test_an_address_is_not_written_like_a_web_page(parley, place):
    path = place.folder / "north" / "party.toml"
    text = path.read_text()
    path.write_text(text.replace('curator = "', 'curator = "https://'))
    done = parley("doctor", "party", *NORTH)
    assert done.code == 3
    assert "curator: expected host:port, got 'https://" in done.err


@pytest.mark.parametrize("command", ["doctor party", "config show party", "party status"])
def test_a_duration_that_is_no_number_is_said_in_words(parley, place, command):
    path = place.folder / "north" / "party.toml"
    path.write_text(f"look_again_s = inf\n{path.read_text()}")
    done = parley(*command.split(), *NORTH)
    assert done.code == 3
    assert "party.toml: look_again_s: inf is not a usable duration. Set 0.001" in done.err


def test_an_expired_certificate_is_found(parley, small):
    DeployedFolder(small(), days=30, now=datetime.now(UTC) - timedelta(days=40))
    done = parley("doctor", "party", "--json", *NORTH)
    assert done.code == 3
    assert not findings(done)["certificate"]["ok"]
    assert "parley keys rotate" in findings(done)["certificate"]["words"]


def test_a_missing_column_is_found(parley, place, written):
    (place.folder / "data.csv").write_text("age\n20\n")
    done = parley("doctor", "party", "--json", "--schema", "schema.toml", *NORTH)
    assert done.code == 3
    assert not findings(done)["data source"]["ok"]
    assert "sex" in findings(done)["data source"]["words"]


def test_a_study_of_other_rows_or_of_somebody_else_is_found(parley, place):
    words = [w.replace("north:40:north/", "north:41:east/") for w in place.words()]
    words = [w.replace("east:40:east/", "east:40:north/") for w in words]
    assert parley(*words).code == 0
    found = findings(parley("doctor", "party", "--json", "--study", "study.toml", *NORTH))
    assert "the study says 41" in found["data source"]["words"]
    assert "pins another identity" in found["study"]["words"]


def test_a_ledger_from_the_future_means_a_wrong_clock(parley, place):
    spend(place.folder)
    with sqlite3.connect(place.folder / "north" / "state" / "party.db") as file:
        file.execute("UPDATE entry SET charged_at = '2999-01-01T00:00:00+00:00'")
    file.close()
    found = findings(parley("doctor", "party", "--json", *NORTH))
    assert not found["clock"]["ok"]
    assert not found["ledger"]["ok"], "and somebody changed it"


def test_damage_in_the_books_is_found(parley, place):
    spend(place.folder)
    path = place.folder / "north" / "state" / "party.db"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE filler (text TEXT)")
        file.executemany("INSERT INTO filler VALUES (?)", [("x" * 900,)] * 100)
    file.close()
    content = bytearray(path.read_bytes())
    content[-8192:] = b"\x07" * 8192
    path.write_bytes(content)
    found = findings(parley("doctor", "party", "--json", *NORTH))
    assert not found["ledger"]["ok"]
    assert "is damaged" in found["ledger"]["words"]


def test_rows_that_are_not_there_are_missed_before_there_is_a_study(parley, place):
    (place.folder / "data.csv").unlink()
    found = findings(parley("doctor", "party", "--json", *NORTH))
    assert not found["data source"]["ok"]
    assert "data.csv: no such file" in found["data source"]["words"]


def test_a_node_does_not_start_on_a_ledger_that_was_changed(parley, place):
    spend(place.folder)
    with sqlite3.connect(place.folder / "north" / "state" / "party.db") as file:
        file.execute("UPDATE entry SET epsilon = '1/30' WHERE number = 1")
    file.close()
    done = parley("party", "join", "--once", *NORTH)
    assert done.code == 3
    assert "tampered with, since entry 1" in done.err


def test_settings_are_shown_with_where_they_came_from(parley, place, monkeypatch):
    monkeypatch.setenv("PARLEY_PARTY_CURATOR", "hub.example:7443")
    told = parley("config", "show", "party", "--json", *NORTH).json
    assert told["curator"] == {
        "value": "hub.example:7443",
        "from": "the environment (PARLEY_PARTY_*)",
    }
    assert told["folder"]["from"] == "north/party.toml"
    assert told["log_level"] == {"value": "info", "from": "default"}
    assert (
        "listen = 127.0.0.1:0  # hub/curator.toml" in parley("config", "show", "curator", *HUB).out
    )


def test_an_unknown_setting_is_an_error(parley, place):
    path = place.folder / "hub" / "curator.toml"
    path.write_text(path.read_text() + "lissten = 1\n")
    done = parley("config", "show", "curator", *HUB)
    assert done.code == 3
    assert "lissten" in done.err


@pytest.mark.parametrize("part", ["state", "all"])
def test_a_damaged_backup_is_refused_and_leaves_nothing(parley, place, part):
    spend(place.folder)
    assert parley(*BACKUP).code == 0
    path = place.folder / "north.backup"
    content = bytearray(path.read_bytes())
    content[-12000:-11000] = b"?" * 1000
    path.write_bytes(content if part == "state" else b"no backup")
    state(place).unlink()
    done = parley(*RESTORE)
    assert done.code == 3
    assert "damaged" in done.err
    assert not state(place).exists()


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
    charge = LedgerCharge(
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


def test_a_state_that_can_be_read_is_refused_before_a_yes_is_asked_for(parley, place, monkeypatch):
    spend(place.folder)
    assert parley(*BACKUP).code == 0
    monkeypatch.setattr("typer.confirm", None)
    done = parley("restore", "north.backup", *NORTH)
    assert (done.code, "this state can be read" in done.err) == (3, True)


def test_a_rehearsal_that_was_running_is_charged_nothing(parley, place, written):
    assert parley("curator", "study", "rehearse", "study.toml", "--out", "r.toml", *HUB).code == 0
    approved = parley("party", "approve", "r.toml", "--yes", "--offline", "--json", *NORTH)
    assert (approved.code, approved.json["epsilon"]) == (0, "0")
    study = Study.load(place.folder / "r.toml")
    with begun_study(place.folder, study.digest, charges={}):
        pass
    assert parley(*BACKUP).code == 0
    state(place).unlink()
    assert parley(*RESTORE).code == 0
    assert parley("party", "ledger", "--json", *NORTH).json["entries"] == []


def test_a_study_that_was_running_is_charged_in_full_and_never_answered_again(
    parley, place, written
):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    with begun_study(place.folder, written.digest) as (_, journal):
        journal.step_key(written.digest, 0)
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
        store.move(written.digest, StudyState.RUNNING, step=0, phase="")
    assert parley("backup", "curator", "--out", "hub.backup", *HUB).code == 0
    (settings.folder / "curator.db").unlink()
    done = parley("restore", "hub.backup", "--yes", "--json", *HUB)
    assert done.json["ended"] == ["regional"]
    told = parley("curator", "study", "status", "regional", *HUB).out
    assert "to end   the curator was restored from a backup of" in told
