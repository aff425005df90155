"""Nothing that comes from outside is obeyed by an owner's terminal, or looks like our own lines."""

import json
import logging
from fractions import Fraction

import pytest

from common.privacy.randomness import OsRandomSource
from common.service.database import Database
from common.service.process import JsonFormatter
from common.wording import harmless, one_line
from parley.cli import console
from parley.cli.result import Result, show
from party.journal import Journal, JournalState
from party.ledger import Caps, Ledger, LedgerCharge
from tests.harness.deployed_folder import NORTH

# Clears the screen; the same for 8-bit terminals; carriage return; right-to-left; a line separator.
HOSTILE = "\x1b[2Jx\x9b2Jx\rx\u202ex\u2028x\x7f"
OBEYED = set(HOSTILE) - set("[2Jx")


def test_what_a_terminal_obeys_is_escaped_and_nothing_else():
    kept = "Zürich\t\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\u00a0ok\n"
    assert harmless(kept) == kept
    assert harmless(HOSTILE).isascii()
    assert json.loads(harmless(f'"{HOSTILE[1:]}"'.replace("\r", ""))) == HOSTILE[1:].replace(
        "\r", ""
    )
    assert one_line("a\nb\tc\x1b") == "a\\nb\\tc\\u001b"


@pytest.mark.parametrize("say", [console.result, console.note, console.warn, console.fail])
def test_every_line_of_the_command_line_is_harmless(capsys, say):
    say(f"missing column {HOSTILE}")
    said = "".join(capsys.readouterr())
    assert "missing column \\u001b[2J" in said
    assert OBEYED.isdisjoint(said)


def test_a_result_for_a_script_means_the_same(capsys):
    show(Result({"name": HOSTILE}), as_json=True)
    said = capsys.readouterr().out
    assert OBEYED.isdisjoint(said)
    assert json.loads(said) == {"name": HOSTILE}


def test_logs_are_harmless():
    line = JsonFormatter().format(logging.makeLogRecord({"msg": HOSTILE}))
    assert OBEYED.isdisjoint(line)
    assert json.loads(line)["message"] == HOSTILE


def test_the_owners_records_are_harmless(parley, place):
    """The records of another version, and a reason that the curator sent."""
    folder = place.folder / "north" / "state"
    folder.mkdir(exist_ok=True)
    database = Database(folder / "party.db")
    journal, digest = Journal(database, OsRandomSource()), bytes(32)
    journal.begin(digest, name=HOSTILE, data_digest="d", at="now")
    with journal.transaction():
        journal.add_outgoing(digest, b"x", kind="share", recipient=HOSTILE, at="now")
    charge = LedgerCharge(
        study=digest.hex(), study_name=HOSTILE, step=HOSTILE, mechanism="m", epsilon=Fraction(1, 9)
    )
    Ledger(database).charge(charge, Caps(per_study=Fraction(1), in_total=Fraction(1)), "now")
    journal.end(digest, JournalState.ABORTED, reason=f"no\nforged: approved{HOSTILE}", at="now")
    database.close()
    for words in (["ledger"], ["status", "--offline"], ["sent-log"]):
        done = parley("party", *words, *NORTH)
        assert done.code == 0, done.err
        assert "\\u001b[2J" in done.out
        assert OBEYED.isdisjoint(done.out + done.err)
        assert not any(line.startswith("forged") for line in done.out.splitlines())


def test_an_error_that_names_columns_is_harmless(parley, tmp_path):
    (tmp_path / "schema.toml").write_text('[[attribute]]\nname = "a"\nkind = "boolean"\n')
    (tmp_path / "table.csv").write_text("\x1b[2Jb\ntrue\n")
    done = parley("schema", "check", "schema.toml", "table.csv")
    assert done.code != 0
    assert "missing column" in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize("say", [console.note, console.warn, console.fail])
def test_a_fingerprint_is_printed_as_it_is(capsys, say):
    """`:CD:` and `:AB:` are codes of emoji, to some."""
    say("FE:31:CD:84:AB:BE")
    assert "FE:31:CD:84:AB:BE" in capsys.readouterr().err
