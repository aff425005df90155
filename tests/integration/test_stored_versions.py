"""Folders that earlier versions wrote: every later version opens them and goes on.

`tests/stored/make.py` says what is in them and how they were made.
"""

import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from common.methods.registry import methods
from common.privacy.randomness import OsRandomSource
from common.release.contents import open_release, read_json
from common.service import migrations
from common.service.database import Database
from common.service.process import system_clock
from curator.settings import STORE, curator_settings, open_store
from curator.store.records import StudyState
from party import app as party_app
from party.collection import Collection
from party.journal import Journal, Notes
from party.ledger import Ledger
from party.owner.decisions import Approvals
from party.settings import party_settings, source_settings
from party.state import STATE
from tests.harness.deployed_folder import serving

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests" / "stored"
VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in STORED.glob("[0-9]*.tar.xz"))
OWNERS = ("north", "east")


def unpacked(version, folder):
    with tarfile.open(STORED / f"{version}.tar.xz") as tar:
        tar.extractall(folder, filter="tar")
    return folder


@pytest.fixture(params=VERSIONS)
def folder(request, tmp_path, monkeypatch):
    """Unpack the folders of a version; commands run in it."""
    monkeypatch.chdir(tmp_path)
    return unpacked(request.param, tmp_path)


def version_of(path):
    with closing(sqlite3.connect(path)) as file:
        return file.execute("PRAGMA user_version").fetchone()[0]


def columns(path):
    """Return the columns of every table of a state file."""
    with closing(sqlite3.connect(path)) as file:
        tables = file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {
            table: file.execute("SELECT * FROM pragma_table_xinfo(?)", (table,)).fetchall()
            for (table,) in sorted(tables)
        }


def open_curator(home):
    """Open a curator's store; return the states of its studies."""
    settings = curator_settings(home / "curator.toml", {}).values
    with open_store(settings, begin=True) as store:
        return {record.name: record.state for record in store.records()}


def open_party(path):
    """Open everything in a party's file; return the states of its studies."""
    path.parent.mkdir(exist_ok=True)
    with Database(path) as database:
        Ledger(database).verify()
        for tables in (Approvals, Notes, Collection):
            tables(database)
        studies = Journal(database, OsRandomSource()).studies()
    return {each.name: each.state.value for each in studies}


def test_the_tables_of_an_earlier_file_are_those_of_a_new_one(folder):
    (folder / "new").mkdir()
    shutil.copy(folder / "hub" / "curator.toml", folder / "new")
    files = (folder / "hub" / "state" / STORE, folder / "north" / "state" / STATE)
    written = [version_of(file) for file in files]
    assert open_curator(folder / "hub") == {
        "finished": StudyState.DONE, "running": StudyState.RUNNING, "waiting": StudyState.WAITING,
    }  # fmt: skip
    assert open_party(files[1]) == {"finished": "finished", "running": "running"}
    open_curator(folder / "new")
    open_party(folder / "new" / "state" / STATE)
    newest = migrations.newest(migrations.MIGRATIONS)
    for file, version in zip(files, written, strict=True):
        assert columns(file) == columns(folder / "new" / "state" / file.name)
        assert version_of(file) == newest
        copy = file.with_name(f"{file.name}.version-{version}")
        assert copy.exists() == (version < newest)


def test_what_an_owner_spent_is_listed_and_its_chain_is_whole(folder, parley):
    north = ("--config", "north/party.toml")
    told = parley("party", "ledger", "--verify", "--json", *north)
    assert told.code == 0, told.err
    assert [(each["study_name"], each["epsilon"]) for each in told.json["entries"]] == [
        ("finished", "1"), ("running", "1/2"),
    ]  # fmt: skip
    assert told.json["spent"] == "3/2"
    for words in (
        ("party", "transcript", *north), ("backup", "party", "--out", "north.backup", *north),
        ("config", "show", "party", *north),
        ("curator", "study", "list", "--config", "hub/curator.toml"),
        ("backup", "curator", "--out", "hub.backup", "--config", "hub/curator.toml"),
    ):  # fmt: skip
        done = parley(*words)
        assert done.code == 0, (words, done.err)


def verified_releases(folder, parley):
    """What `parley verify` says of each release, and the method that made it."""
    (finished,) = (folder / "hub" / "releases").iterdir()
    collected = next((folder / "north" / "state" / "releases").iterdir())
    unsigned = "--unsigned"  # by an identity that the study names: it was simulated
    for path, *words in (
        (finished, "--all-parties"), (collected,), ("single.zip",), ("delta.zip", unsigned),
    ):  # fmt: skip
        done = parley("verify", str(path), "--json", *words)
        assert done.code == 0, (path, done.out, done.err)
        assert done.json["problems"] == []
        with open_release(Path(path)) as contents:
            yield done.json, read_json(contents, "model.json")["method"]


def test_its_releases_are_verified_and_derived_where_the_method_is_as_it_was(folder, parley):
    for told, method in verified_releases(folder, parley):
        same = method not in methods() or methods()[method].version == 1
        assert told["verified"] == same
        assert told["derived"] == (same and method in methods())


def test_its_releases_are_checked_when_their_method_has_another_version(
    folder, parley, monkeypatch
):
    newer = {name: replace(each, version=99) for name, each in methods().items()}
    monkeypatch.setattr("common.release.derive.methods", lambda: newer)
    for told, method in verified_releases(folder, parley):
        assert not told["derived"]
        words = [f"version 1 of {method} made it"] if method in methods() else []
        assert len(told["not_checked"]) == len(words)
        assert all(map(str.__contains__, told["not_checked"], words))


def join(folder, name, port):
    """Take part in all studies, as `parley party join --once` does."""
    path = folder / name / "party.toml"
    settings = party_settings(path, {}, {"curator": f"127.0.0.1:{port}"})
    source = source_settings(settings, path, {})
    with (
        party_app.alone(settings.values),
        party_app.party_context(settings.values, source, clock=system_clock) as context,
    ):
        manager = party_app.session_manager(
            settings.values, context, environment={}, stopping=threading.Event(), software="parley"
        )
        return manager.run(once=True)


def test_its_studies_go_on_to_their_end(folder, parley):
    settings = curator_settings(folder / "hub" / "curator.toml", {}).values
    with (
        serving(settings, listen="127.0.0.1:0") as port,
        ThreadPoolExecutor(len(OWNERS)) as threads,
    ):
        for joined in [threads.submit(join, folder, name, port) for name in OWNERS]:
            joined.result(timeout=120)
    assert set(open_curator(folder / "hub").values()) == {StudyState.DONE}
    for name in OWNERS:
        assert set(open_party(folder / name / "state" / STATE).values()) == {"finished"}
        with Database(folder / name / "state" / STATE) as database:
            spent = {
                each.name: Ledger(database).spent(each.study.hex())
                for each in Journal(database, OsRandomSource()).studies()
            }
        assert {study: str(epsilon) for study, epsilon in spent.items()} == {
            "finished": "1", "running": "1/2", "waiting": "1",
        }  # fmt: skip
    for release in (folder / "hub" / "releases").iterdir():
        assert parley("verify", str(release)).code == 0


def test_the_ledger_from_before_can_be_read(tmp_path, monkeypatch, parley):
    """Read the ledger of a folder of before 0.2.0, which nothing else opens."""
    monkeypatch.chdir(tmp_path)
    unpacked("before-0.2.0", tmp_path)
    (tmp_path / "party.toml").write_text(
        'folder = "state"\nkeys = "keys"\npolicy = "policy.toml"\ncurator = "127.0.0.1:1"\n'
        '[source]\nkind = "csv"\npath = "rows.csv"\n'
    )
    before = (tmp_path / "state" / STATE).read_bytes()
    told = parley("party", "ledger", "--verify", "--json", "--config", "party.toml")
    assert told.code == 0, told.err
    assert "written by an earlier version of parley" in told.err
    assert [each["epsilon"] for each in told.json["entries"]] == ["1/3", "1/6", "1/2"]
    assert (told.json["spent"], told.json["verified"]) == ("1", True)
    assert (tmp_path / "state" / STATE).read_bytes() == before


MEMORY = """
import sys, tempfile
from pathlib import Path
from common.study.document import Study
from curator.publisher import publish
from tests.harness.deployed_folder import outcome_of

def resident_kb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4

outcome, taken = outcome_of(Study.load(Path(sys.argv[1]))), []
for number in range(12):
    publish(outcome, Path(tempfile.mkdtemp(dir=sys.argv[2])), signer=None)
    taken.append(resident_kb())
print(taken[-1] - taken[1])
"""


def test_later_releases_take_no_more_memory(folder):
    """Publish again and again in a process of its own: what the first loads is all there is."""
    words = [sys.executable, "-c", MEMORY, str(folder / "waiting.toml"), str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < 8_000
