"""A state file of another version, a damaged one, or none at all: said, and left as it was."""

import os
import shutil
import signal
import sqlite3
import threading
from contextlib import closing

import pytest

from common.errors import InputError, LocalError
from common.service.database import Database
from tests.harness.forked import exit_code, fork


@pytest.fixture
def file(tmp_path):
    database = Database(tmp_path / "state.db")
    database.add_tables("CREATE TABLE IF NOT EXISTS word (text TEXT NOT NULL) STRICT;")
    with database.transaction():
        for number in range(2000):
            database.write("INSERT INTO word VALUES (?)", (f"word {number}",))
    database.close()
    return database.path


def test_rows_are_objects_of_a_kind(file):
    with closing(Database(file)) as database:
        query = "SELECT text AS first, 'x' AS second FROM word WHERE text = ?"
        assert database.records(dict, query, ("word 7",), second=str.upper) == [
            {"first": "word 7", "second": "X"}
        ]
        assert database.records(dict, query, ("none",), second=str.upper) == []
        with pytest.raises(LocalError):
            database.records(dict, "SELECT * FROM nothing")


def set_version(path, number):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={number}")
    connection.close()


@pytest.mark.parametrize(
    ("written", "words"), [(7, "a later"), (1, "an earlier"), (0, "an earlier")]
)
def test_tables_of_another_version_are_left_alone(file, written, words):
    set_version(file, written)
    before = file.read_bytes()
    with pytest.raises(InputError, match=f"{words} version of parley") as refused:
        Database(file)
    assert f"version {written}" in str(refused.value)
    assert "run the version that wrote it" in str(refused.value)
    assert file.read_bytes() == before


def test_a_file_of_something_else_is_said_to_be_and_what_to_do(tmp_path):
    path = tmp_path / "state.db"
    path.write_text("these are notes, and no database\n" * 100)
    with pytest.raises(InputError, match=r"not a database\)\. Stop the service") as refused:
        Database(path)
    assert "newest copy" in str(refused.value)
    assert path.read_text().startswith("these are notes")


def test_damage_where_nobody_reads_is_found_by_looking_at_all_of_it(file):
    intact = Database(file)
    intact.check()
    intact.close()
    content = bytearray(file.read_bytes())
    content[8192:12288] = bytes(range(256)) * 16
    file.write_bytes(content)
    damaged = Database(file)
    with pytest.raises(LocalError, match="newest copy"):
        damaged.check()
    damaged.close()


def test_a_service_does_not_start_on_a_damaged_file(file):
    content = bytearray(file.read_bytes())
    content[8192:12288] = bytes(range(256)) * 16
    file.write_bytes(content)
    damaged = Database(file)
    with pytest.raises(LocalError, match=r"damaged.*newest copy"):
        damaged.check_at_start()
    damaged.close()


def test_a_check_that_takes_too_long_is_left_unfinished_and_said(file, monkeypatch, caplog):
    monkeypatch.setattr("common.service.database._START_S", -1.0)
    database = Database(file)
    database.check_at_start()
    assert "not all of it was checked for damage" in caplog.text
    assert database.check(), "and without haste all of it is read"
    assert len(database.rows("SELECT * FROM word")) == 2000
    database.close()


def test_a_file_that_several_open_at_once_is_of_this_version(tmp_path):
    """Look at the version of a file that others are just making."""
    failed = []

    def use(path):
        try:
            file = Database(path)
            file.add_tables("CREATE TABLE IF NOT EXISTS there (x);")
            file.close()
        except InputError as error:
            failed.append(error)

    for number in range(40):
        path = tmp_path / f"{number}.db"
        threads = [threading.Thread(target=use, args=(path,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
    assert failed == []


SECRET = b"a key that must not stay"


def files_with(needle, folder):
    # To close the index that processes share would let go of its locks.
    files = [file for file in folder.iterdir() if not file.name.endswith("-shm")]
    return {file.name for file in files if needle in file.read_bytes()}


def keep_secret(database):
    database.add_tables("CREATE TABLE IF NOT EXISTS secret (key BLOB NOT NULL) STRICT;")
    with database.transaction():
        database.write("INSERT INTO secret VALUES (?)", (SECRET,))


def test_a_service_writes_ahead_and_leaves_one_plain_file(tmp_path):
    database = Database(tmp_path / "state.db", logged=True)
    keep_secret(database)
    assert files_with(SECRET, tmp_path) == {"state.db-wal"}
    assert {file.name for file in tmp_path.iterdir()} == {
        "state.db", "state.db-shm", "state.db-wal"
    }  # fmt: skip
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    for read_only in (True, False):
        with Database(database.path, read_only=read_only) as other:
            assert other.rows("SELECT key FROM secret") == [(SECRET,)]
    database.close()
    assert [file.name for file in tmp_path.iterdir()] == ["state.db"]
    with Database(database.path) as other:
        assert other.rows("PRAGMA journal_mode") == [("delete",)]
        assert other.rows("SELECT key FROM secret") == [(SECRET,)]


@pytest.mark.parametrize("logged", [True, False])
def test_what_is_wiped_is_in_no_file(tmp_path, logged):
    with Database(tmp_path / "state.db", logged=logged) as database:
        keep_secret(database)
        assert files_with(SECRET, tmp_path)
        with database.transaction():
            database.wipe("DELETE FROM secret")
        assert files_with(SECRET, tmp_path) == set()


def test_what_a_command_wipes_beside_a_service_is_in_no_file(tmp_path):
    with Database(tmp_path / "state.db", logged=True) as service:
        keep_secret(service)
        with Database(service.path) as command, command.transaction():
            command.wipe("DELETE FROM secret")
        assert files_with(SECRET, tmp_path) == set()
        assert service.rows("SELECT * FROM secret") == []


def test_what_is_wiped_beside_a_reader_goes_when_the_reader_is_done(tmp_path, caplog):
    with Database(tmp_path / "state.db", logged=True) as database:
        keep_secret(database)
        reader = sqlite3.connect(database.path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM secret").fetchall()
        with database.transaction():
            database.wipe("DELETE FROM secret")
        assert files_with(SECRET, tmp_path), "the reader may still look at it"
        assert "state.db-wal: it could not be emptied" in caplog.text
        reader.close()
        with database.transaction():
            pass
        assert files_with(SECRET, tmp_path) == set()


def test_what_was_wiped_before_a_kill_goes_at_the_next_start(tmp_path):
    path = tmp_path / "state.db"
    child = fork()
    if not child:
        database = Database(path, logged=True)
        keep_secret(database)
        database._connection.set_trace_callback(
            lambda statement: "wal_checkpoint" in statement and os.kill(os.getpid(), signal.SIGKILL)
        )
        with database.transaction():
            database.wipe("DELETE FROM secret")
        os._exit(1)
    assert exit_code(child) == -signal.SIGKILL
    assert files_with(SECRET, tmp_path) == {"state.db-wal"}
    with Database(path, logged=True) as database:
        assert database.rows("SELECT * FROM secret") == []
        database.add_tables("")
        assert files_with(SECRET, tmp_path) == set()


def test_a_log_without_its_last_syncs_has_an_earlier_state_in_order(tmp_path):
    """Cut the log anywhere, as a power failure may: transactions are there up to one of them."""
    with Database(tmp_path / "state.db", logged=True) as database:
        database.add_tables("CREATE TABLE IF NOT EXISTS word (text TEXT NOT NULL) STRICT;")
        for number in range(8):
            with database.transaction(synced=number % 2 == 0):
                database.write("INSERT INTO word VALUES (?)", (str(number),))
        log = (tmp_path / "state.db-wal").read_bytes()
        seen = set()
        for size in (*range(0, len(log), 1000), len(log)):
            copy = tmp_path / str(size) / "state.db"
            copy.parent.mkdir()
            shutil.copy(database.path, copy)
            copy.with_name("state.db-wal").write_bytes(log[:size])
            with closing(sqlite3.connect(copy)) as file:
                if not file.execute("SELECT * FROM sqlite_schema").fetchall():
                    continue
                words = [word for (word,) in file.execute("SELECT text FROM word")]
            assert words == [str(number) for number in range(len(words))]
            seen.add(len(words))
    assert seen == set(range(9))


def test_a_synced_transaction_is_not_part_of_one_that_is_not(tmp_path):
    with Database(tmp_path / "state.db", logged=True) as database:
        database.add_tables("CREATE TABLE IF NOT EXISTS word (text TEXT NOT NULL) STRICT;")
        with (
            pytest.raises(LocalError, match="only if the one around it"),
            database.transaction(synced=False),
            database.transaction(),
        ):
            pass
        with database.transaction(), database.transaction(synced=False):
            database.write("INSERT INTO word VALUES ('x')")
        assert database.rows("SELECT text FROM word") == [("x",)]


def test_a_log_that_was_removed_takes_nothing_more_and_is_saved_at_the_end(tmp_path):
    database = Database(tmp_path / "state.db", logged=True)
    keep_secret(database)
    (tmp_path / "state.db-wal").unlink()
    with pytest.raises(LocalError, match=r"removed.*SIGTERM"), database.transaction():
        pass
    database.close()
    with Database(database.path) as again:
        assert again.rows("SELECT key FROM secret") == [(SECRET,)]
