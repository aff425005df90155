"""`parley party ledger` and `transcript`: what was spent, and what left."""

import sqlite3

from tests.harness.deployed_folder import NORTH, spend


def test_the_ledger_adds_up_exactly_and_shows_that_it_was_changed(parley, place):
    spend(place.folder)
    done = parley("party", "ledger", "--verify", *NORTH)
    assert done.code == 0
    assert "total  epsilon 1/2 (about 0.5) in 2 entries; 7/2 (about 3.5) is left" in done.out
    assert "verified" in done.out
    told = parley("party", "ledger", "--json", *NORTH).json
    assert [entry["epsilon"] for entry in told["entries"]] == ["1/3", "1/6"]
    assert told["spent"] == "1/2"
    assert told["left"] == "7/2"
    with sqlite3.connect(place.folder / "north" / "state" / "party.db") as file:
        file.execute("UPDATE entry SET epsilon = '1/30' WHERE number = 1")
    file.close()
    done = parley("party", "ledger", "--verify", *NORTH)
    assert done.code == 3
    assert "tampered" in done.err


def test_the_transcript_has_every_message_that_left(parley, place):
    spend(place.folder)
    assert "total  5 bytes in 1 message\n" in parley("party", "transcript", *NORTH).out
    (message,) = parley("party", "transcript", "--json", *NORTH).json
    assert (message["recipient"], message["bytes"]) == ("curator", 5)
