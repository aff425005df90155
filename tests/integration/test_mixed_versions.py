"""A curator and nodes of different versions: they finish a study, or say which version is needed.

The other version is exported from the history of this repository and runs as processes of its own,
on the stored folders that it wrote (`tests/stored/make.py`). Without that history, as in a shallow
clone, the tests with two versions are skipped.
"""

import io
import os
import re
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from common.errors import InputError
from common.wire.catalogue import PROTOCOL, ErrorCode, WireError
from curator.settings import curator_settings
from curator.store.records import StudyState
from tests.harness.deployed_folder import serving
from tests.integration.test_stored_versions import OWNERS, join, open_curator, unpacked

ROOT = Path(__file__).resolve().parents[2]
COMMITS = {"0.2.0": "6c05c1e7"}
SERVICE = "import sys; from parley.cli.main import main; sys.exit(main())"


@pytest.fixture(scope="session", params=COMMITS)
def earlier(request, tmp_path_factory):
    """Export the tree of an earlier version."""
    words = ["git", "archive", COMMITS[request.param]]
    exported = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    if exported.returncode:
        pytest.skip(f"no history here with the tree of {request.param}")
    tree = tmp_path_factory.mktemp(f"parley-{request.param}")
    with tarfile.open(fileobj=io.BytesIO(exported.stdout)) as tar:
        tar.extractall(tree, filter="data")
    return request.param, tree


@pytest.fixture
def folder(earlier, tmp_path):
    return unpacked(earlier[0], tmp_path)


def started(earlier, *words, log, **environment):
    """Start a command of the earlier version."""
    _, tree = earlier
    with log.open("w") as stream:
        return subprocess.Popen(
            [sys.executable, "-c", SERVICE, *words],
            cwd=tree, env={**os.environ, "PYTHONPATH": str(tree), **environment},
            stdout=stream, stderr=stream,
        )  # fmt: skip


def port_in(log):
    """Wait for a curator to listen; return its port."""
    for _ in range(1_000):
        listening = re.search(r"listening on port (\d+)", log.read_text())
        if listening:
            return int(listening[1])
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def test_a_curator_is_upgraded_first_and_an_owner_later(folder, earlier, parley):
    hub = curator_settings(folder / "hub" / "curator.toml", {}).values
    with serving(hub, listen="127.0.0.1:0") as port, ThreadPoolExecutor(1) as threads:
        north = started(
            earlier, "party", "join", "--once", "--config", str(folder / "north" / "party.toml"),
            PARLEY_PARTY_CURATOR=f"127.0.0.1:{port}", log=folder / "north.log",
        )  # fmt: skip
        threads.submit(join, folder, "east", port).result(timeout=120)
        assert north.wait(timeout=120) == 0, (folder / "north.log").read_text()
    assert set(open_curator(folder / "hub").values()) == {StudyState.DONE}
    for release in (folder / "hub" / "releases").iterdir():
        assert parley("verify", str(release)).code == 0


def test_owners_that_were_upgraded_first_finish_with_an_earlier_curator(folder, earlier, parley):
    log = folder / "hub.log"
    hub = started(
        earlier, "curator", "serve", "--config", str(folder / "hub" / "curator.toml"),
        PARLEY_CURATOR_LISTEN="127.0.0.1:0", log=log,
    )  # fmt: skip
    try:
        port = port_in(log)
        with ThreadPoolExecutor(2) as threads:
            for joined in [threads.submit(join, folder, name, port) for name in OWNERS]:
                joined.result(timeout=120)
    finally:
        hub.terminate()
        hub.wait(timeout=60)
    assert set(open_curator(folder / "hub").values()) == {StudyState.DONE}
    for release in (folder / "hub" / "releases").iterdir():
        assert parley("verify", str(release)).code == 0


def test_both_sides_name_the_versions_when_they_speak_different_protocols(
    consortium, monkeypatch, caplog
):
    monkeypatch.setattr("party.client.connection.PROTOCOL", PROTOCOL + 1)
    with consortium.parties["north"].dial() as connection, pytest.raises(WireError) as refused:
        connection.enrol("north", b"")
    assert refused.value.code is ErrorCode.VERSION_MISMATCH
    runs = f"said the other side, which runs parley [0-9.]+ and speaks protocol {PROTOCOL}"
    assert re.search(runs, str(refused.value))
    assert "Run the same minor version of parley on both sides, the later one." in str(
        refused.value
    )
    there = (
        f"'north' runs test and speaks protocol {PROTOCOL + 1}; this curator runs test and speaks"
    )
    assert there in caplog.text


def test_a_node_says_what_to_do_about_a_study_that_it_cannot_read(consortium):
    store = consortium.curator.store
    with store.transaction():
        text = 'method_of_a_later_version = "x"\n' + store.document(consortium.study.digest)
        store._file.write("UPDATE study SET document = ?", (text,))
    north = consortium.parties["north"]
    with pytest.raises(InputError, match="unknown") as refused:
        north.attend(consortium.study)
    assert "If the study needs another version of parley than parley " in str(refused.value)
    assert "`parley doctor party` names the version of the curator" in str(refused.value)
