"""A file of an earlier version: migrated once, all or nothing, with a copy of it as it was."""

import itertools
import os
import signal
import sqlite3
import threading

import pytest

from common.errors import InputError, LocalError
from common.service import database as module
from common.service import migrations
from common.service.database import Database
from common.service.migrations import FIRST, MIGRATIONS, Migration, StateOwner
from common.service.process import alone_in
from tests.harness.forked import exit_code, fork

WORD = "CREATE TABLE IF NOT EXISTS word (text TEXT NOT NULL{}) STRICT;"
TWO = (
    Migration(
        number=FIRST + 1, service=StateOwner.PARTY, table="word",
        statements=(
            "ALTER TABLE word ADD COLUMN length INTEGER NOT NULL DEFAULT 0",
            "UPDATE word SET length = LENGTH(text)",
        ),
    ),
    Migration(
        number=FIRST + 2, service=StateOwner.PARTY, table="word",
        statements=("DELETE FROM word WHERE length > 6",),
    ),
)  # fmt: skip
KEPT = [(f"word {number}", 6) for number in range(10)]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Make a file of the first version."""
    monkeypatch.setattr(module, "MIGRATIONS", ())
    with Database(tmp_path / "state.db") as database:
        database.add_tables(WORD.format(""))
        with database.transaction():
            for number in range(200):
                database.write("INSERT INTO word VALUES (?)", (f"word {number}",))
    return database.path


@pytest.fixture
def later(file, monkeypatch):
    """Be a version of this program with two more migrations."""
    monkeypatch.setattr(module, "MIGRATIONS", TWO)


def words(path):
    with Database(path, read_only=True, any_version=True) as database:
        return database.version, database.rows("SELECT * FROM word")


def copies(path):
    return sorted(each.name for each in path.parent.glob("*.version-*"))


def test_the_numbers_follow_one_another():
    assert [each.number for each in MIGRATIONS] == list(
        range(FIRST + 1, FIRST + 1 + len(MIGRATIONS))
    )


def test_every_migration_runs_once_and_the_file_as_it_was_stays_beside(file, later):
    for _ in range(2):
        Database(file).close()
        assert words(file) == (FIRST + 2, KEPT)
    assert copies(file) == [f"state.db.version-{FIRST}"]
    copy = file.with_name(f"state.db.version-{FIRST}")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert words(copy) == (FIRST, [(f"word {number}",) for number in range(200)])


def test_a_table_that_is_not_there_yet_and_one_of_the_other_service_are_left_alone(later, tmp_path):
    with Database(tmp_path / "new.db") as new:
        new.add_tables(WORD.format(", length INTEGER NOT NULL"))
        assert new.version == FIRST + 2
    assert copies(new.path) == []
    tables = {"party", "word"}
    assert migrations.statements(TWO, FIRST, tables) == []
    assert migrations.statements(TWO, FIRST, {"other"}) == []
    assert len(migrations.statements(TWO, FIRST + 1, {"word"})) == 1


def test_a_failed_migration_changes_nothing(file, monkeypatch):
    bad = Migration(
        number=FIRST + 3,
        service=StateOwner.PARTY,
        table="word",
        statements=("UPDATE absent SET x=1",),
    )
    monkeypatch.setattr(module, "MIGRATIONS", (*TWO, bad))
    before = words(file)
    with pytest.raises(LocalError, match="no such table"):
        Database(file)
    assert words(file) == before


def test_nothing_is_migrated_under_a_running_service(file, later, tmp_path):
    """Keep off while a node of the version before runs: it would not notice."""
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        with alone_in(tmp_path, service="node"):
            os.write(writing, b"x")
            signal.pause()
    os.read(reading, 1)
    try:
        before = words(file)
        with pytest.raises(InputError, match=rf"a service runs on it \(process {child}\)\. Stop"):
            Database(file)
        assert words(file) == before
        assert copies(file) == []
    finally:
        os.kill(child, signal.SIGKILL)
        exit_code(child)
    with alone_in(tmp_path, service="node"):  # as a service of this version does
        Database(file).close()
    assert words(file) == (FIRST + 2, KEPT)


def test_who_may_only_read_migrates_nothing(file, later):
    with pytest.raises(InputError, match="start the service in this version once"):
        Database(file, read_only=True)
    assert words(file)[0] == FIRST


def test_a_disk_without_room_for_the_copy_changes_nothing(file, later, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "flush", full)
    with pytest.raises(LocalError, match=r"Nothing was changed\. Make room"):
        Database(file)
    assert words(file)[0] == FIRST


def test_several_that_open_a_file_at_once_migrate_it_once(file, later):
    failures = []

    def use():
        try:
            Database(file).close()
        except InputError as error:
            failures.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert failures == []
    assert words(file) == (FIRST + 2, KEPT)


def killed_at(file, point):
    """Migrate in a process that dies at a point; return whether it came that far."""
    child = fork()
    if child:
        return exit_code(child) == -signal.SIGKILL
    points = itertools.count(1)

    def step(*_):
        if next(points) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    connect, flush = sqlite3.connect, module.flush

    def connect_traced(*given, **named):
        connection = connect(*given, **named)
        connection.set_trace_callback(step)
        return connection

    def flush_counted(path):
        step()
        flush(path)
        step()

    module.sqlite3.connect, module.flush = connect_traced, flush_counted
    try:
        Database(file)
    finally:
        os._exit(0)


def test_a_migration_that_is_killed_anywhere_is_made_whole_at_the_next_start(file, later, tmp_path):
    before, content = words(file), file.read_bytes()
    for point in itertools.count(1):
        file.write_bytes(content)
        killed = killed_at(file, point)
        with sqlite3.connect(file) as connection:  # rolls back what was under way
            ((version,),) = connection.execute("PRAGMA user_version").fetchall()
            rows = connection.execute("SELECT * FROM word").fetchall()
        assert (version, rows) in (before, (FIRST + 2, KEPT)), f"killed at point {point}"
        for copy in copies(file):
            assert words(file.with_name(copy)) == before, f"killed at point {point}"
        Database(file).close()
        assert words(file) == (FIRST + 2, KEPT), f"killed at point {point}"
        assert words(file.with_name(f"state.db.version-{FIRST}")) == before
        if not killed:
            break
        file.with_name(f"state.db.version-{FIRST}").unlink()
    assert point > 15, "the statements and writes of a migration are counted"
    assert [each.name for each in tmp_path.glob(".state*")] == []
