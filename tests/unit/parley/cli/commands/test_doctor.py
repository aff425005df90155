"""`parley doctor` and `parley config show`: what is wrong is found before a study begins."""

import socket
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from common.service.checks import Finding
from tests.harness.deployed_folder import HUB, NORTH, DeployedFolder, spend


def findings(done):
    return {check["check"]: check for check in done.json["checks"]}


def test_a_curator_that_is_ready_is_told_so(parley, place):
    done = parley("doctor", "curator", "--json", *HUB)
    assert done.code == 0, done.out
    assert done.json["ready"]
    assert parley("doctor", "curator", *HUB).out.count("ok  ") == len(done.json["checks"])


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


def test_few_descriptors_are_worth_a_warning(shell, place):
    done = shell("ulimit -n 1000; parley doctor curator --config hub/curator.toml")
    assert done.returncode == 0
    (line,) = (each for each in done.stdout.splitlines() if "open files" in each)
    assert line.startswith("warn  open files   at most 1,000 files and connections")


def test_what_the_doctor_knows_is_said_before_it_waits_for_the_network(parley, monkeypatch, place):
    def examine(*_, **__):
        yield Finding(check="disk", ok=True, words="room")
        raise KeyboardInterrupt  # of somebody who does not want to wait

    monkeypatch.setattr("parley.cli.commands.doctor.examine_party", examine)
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
    assert "tampered with: entry 1" in done.err
