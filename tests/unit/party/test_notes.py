"""What a node last said about a study replaces what it said before, and outlives the node."""

from common.service.database import Database
from party.notes import Notes

ONE, OTHER = bytes(32), bytes(31) + b"\1"


def test_the_last_word_about_each_study_is_kept_until_it_is_cleared(tmp_path):
    with Database(tmp_path / "party.db") as file:
        notes = Notes(file)
        notes.write(ONE, "waits for the curator", at="noon")
        notes.write(ONE, "counts", at="one")
        notes.write(OTHER, "refused", at="two")
    with Database(tmp_path / "party.db") as file:
        notes = Notes(file)
        assert notes.all() == {ONE: "counts (since one)", OTHER: "refused (since two)"}
        notes.write(ONE, "", at="three")
        assert list(notes.all()) == [OTHER]
        notes.clear()
        assert notes.all() == {}
