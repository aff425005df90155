"""No service starts on a damaged file."""

import sqlite3

import pytest

from tests.harness.deployed_folder import HUB, NORTH


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("hub/state/curator.db", ("curator", "serve", *HUB)),
        ("north/state/party.db", ("party", "join", *NORTH)),
    ],
)
def test_no_service_starts_on_a_damaged_file(parley, place, written, file, words):
    parley("curator", "study", "add", "study.toml", *HUB)
    parley("party", "decline", "study.toml", *NORTH)
    path = place.folder / file
    with sqlite3.connect(path) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'step_time'"
        ((page,),) = connection.execute(query)  # which no start looks at
        ((size,),) = connection.execute("PRAGMA page_size")
    connection.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(content)
    done = parley(*words)
    assert done.code == 3
    assert "is damaged" in done.err
    assert "newest copy" in done.err
