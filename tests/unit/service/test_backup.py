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
