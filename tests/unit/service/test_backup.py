"""A backup beside a writer, and where none may be restored."""

import sqlite3
import tarfile
import threading
from contextlib import closing
from fractions import Fraction

import pytest

from common.errors import InputError
from common.service import backup
from common.service.database import Database
from party.ledger import Caps, Ledger, LedgerCharge


def test_a_backup_beside_a_writer_is_of_one_moment(tmp_path):
    path, stopping = tmp_path / "party.db", threading.Event()
    caps = Caps(per_study=Fraction(10**6), in_total=Fraction(10**6))
    with Database(path) as database:
        Ledger(database)

    def write():
        database, number = Database(path), 0
        ledger = Ledger(database)
        while not stopping.is_set() and number < 5000:
            number += 1
            step = LedgerCharge(
                study="s", study_name="s", step=str(number), mechanism="m", epsilon=Fraction(1)
            )
            ledger.charge(step, caps, "now")
        database.close()

    writing = threading.Thread(target=write)
    writing.start()
    try:
        seen = []
        for number in range(5):
            with backup.snapshot(path) as copy:
                with Database(copy) as database:
                    ledger = Ledger(database)
                    ledger.verify()
                    seen.append(len(ledger.entries()))
                out = tmp_path / f"{number}.tar"
                backup.write(copy, out=out, role="party", at="now", software="parley")
    finally:
        stopping.set()
        writing.join()
    assert seen == sorted(seen)
    with tarfile.open(tmp_path / "4.tar") as tar:
        assert tar.getnames() == ["backup.json", "party.db"]
    with pytest.raises(InputError, match="no state to back up"), backup.snapshot(tmp_path / "x.db"):
        pass


def test_the_state_of_a_later_version_is_not_taken_for_a_damaged_one(tmp_path):
    with Database(tmp_path / "party.db") as database:
        database.add_tables("CREATE TABLE IF NOT EXISTS t (x); INSERT INTO t VALUES (1);")
    with backup.snapshot(database.path) as copy:
        about = backup.write(
            copy, out=tmp_path / "copy", role="party", at="2026-11-18", software="parley"
        )
    with closing(sqlite3.connect(database.path)) as file:
        file.execute("PRAGMA user_version=99")
    before = database.path.read_bytes()
    with (
        pytest.raises(InputError, match="this state can be read"),
        backup.restored(tmp_path / "copy", about, tmp_path),
    ):
        pass
    assert database.path.read_bytes() == before


def add_row(database, number):
    database.add_tables("CREATE TABLE IF NOT EXISTS entry (x);")
    with database.transaction():
        database.write("INSERT INTO entry VALUES (?)", (number,))


def test_a_backup_of_a_running_service_is_one_plain_file_with_what_is_in_its_log(tmp_path):
    with Database(tmp_path / "party.db", logged=True) as database:
        add_row(database, 1)
        with backup.snapshot(database.path) as copy:
            assert [file.name for file in copy.parent.iterdir()] == ["party.db"]
            with Database(copy, read_only=True) as read:
                assert read.rows("PRAGMA journal_mode") == [("delete",)]
                assert read.rows("SELECT x FROM entry") == [(1,)]
            assert [file.name for file in copy.parent.iterdir()] == ["party.db"]


@pytest.mark.parametrize("lost", [True, False])
def test_a_backup_is_restored_without_the_log_of_the_state_in_its_place(tmp_path, lost):
    folder = tmp_path / "state"
    folder.mkdir()
    place = folder / "party.db"
    with Database(place, logged=True) as database:
        add_row(database, 1)
        with backup.snapshot(place) as copy:
            out = tmp_path / "copy"
            about = backup.write(copy, out=out, role="party", at="now", software="parley")
        with database.transaction():
            database.wipe("DELETE FROM entry WHERE x = 0")  # what came first is in the file alone
        add_row(database, 2)
        log = place.with_name("party.db-wal").read_bytes()
    # A service that was killed, and whose file is lost or damaged: its log is still there.
    place.with_name("party.db-wal").write_bytes(log)
    place.unlink() if lost else place.write_bytes(b"damaged" * 1000)
    with backup.restored(tmp_path / "copy", about, folder):
        pass
    with Database(place) as restored:
        assert restored.rows("SELECT x FROM entry") == [(1,)]
    assert (folder / "party.db.damaged-1-wal").read_bytes() == log
    assert (folder / "party.db.damaged-1").exists() is not lost
