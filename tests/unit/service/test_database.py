"""A state file of another version, a damaged one, or none at all: said, and left as it was."""

import sqlite3
import threading

import pytest

from common.errors import InputError, LocalError
from common.service.database import Database


@pytest.fixture
def file(tmp_path):
    database = Database(tmp_path / "state.db")
    database.add_tables("CREATE TABLE IF NOT EXISTS word (text TEXT NOT NULL) STRICT;")
    with database.transaction():
        for number in range(2000):
            database.write("INSERT INTO word VALUES (?)", (f"word {number}",))
    database.close()
    return database.path


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
