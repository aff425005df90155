"""Reading commands where the state is missing, empty or another's: they say so and make nothing."""

import contextlib
import copy
import shutil

import pytest

from common.study.document import Study
from parley.cli.main import all_commands, load_command, main
from party import state as party_state
from party.ledger import Ledger
from party.state import MARK, begin_anew
from tests.harness.command_line import write_small
from tests.harness.deployed_folder import (
    BACKUP,
    HUB,
    NORTH,
    RESTORE,
    DeployedFolder,
    spend,
    state,
)

# What begins a state, or puts one there; all other commands with settings only read it.
BEGIN = {
    "party join", "party ui", "party approve", "party decline", "curator serve",
    "curator study add", "restore",
}  # fmt: skip
DONE, INPUT, PEER = 0, 3, 5
# The words of each reading command, its exit code where no state was begun, and of a party that
# where the ledger is lost.
OF_PARTY = {
    "party review": (["party", "review", "study.toml"], DONE, INPUT),
    "party withdraw": (["party", "withdraw", "study.toml", "--yes"], INPUT, INPUT),
    "party ledger": (["party", "ledger", "--verify"], INPUT, INPUT),
    "party sent-log": (["party", "sent-log"], INPUT, INPUT),
    "party countersign": (["party", "countersign", "release"], INPUT, INPUT),
    "party audit": (["party", "audit", "study.toml"], INPUT, INPUT),
    "party status": (["party", "status"], DONE, INPUT),
    "party fetch": (["party", "fetch", "regional", "--out", "fetched.toml"], PEER, INPUT),
    "doctor": (["doctor", "party", "--study", "study.toml"], INPUT, INPUT),
    "config show": (["config", "show", "party"], DONE, DONE),
    "backup": (["backup", "party", "--out", "the.backup"], INPUT, INPUT),
}
OF_CURATOR = {
    "curator study new": (["curator", "study", "new", "--prior", "regional"], INPUT),
    "curator study reform": (
        ["curator", "study", "reform", "regional", "--without", "east"],
        INPUT,
    ),
    "curator study rehearse": (
        ["curator", "study", "rehearse", "regional", "--out", "next.toml"],
        INPUT,
    ),
    "curator study renew": (["curator", "study", "renew", "regional", "--out", "next.toml"], INPUT),
    "curator study list": (["curator", "study", "list"], INPUT),
    "curator study status": (["curator", "study", "status", "regional"], INPUT),
    "curator study received": (["curator", "study", "received", "regional"], INPUT),
    "curator study abort": (["curator", "study", "abort", "regional", "--reason", "x"], INPUT),
    "curator study missing": (["curator", "study", "missing", "regional", "east"], INPUT),
    # Whoever listens on any port cannot say which one to dial.
    "consortium invite": (["consortium", "invite", "west"], INPUT),
    "consortium approve": (["consortium", "approve", "west.application.toml"], INPUT),
    "doctor": (["doctor", "curator"], INPUT),
    "config show": (["config", "show", "curator"], DONE),
    "backup": (["backup", "curator", "--out", "the.backup"], INPUT),
}


def leaves(command, name):
    below = getattr(command, "commands", None)
    if below is None:
        options = {option for each in command.params for option in each.opts}
        return [name] if "--config" in options and not command.hidden else []
    return [each for word, child in below.items() for each in leaves(child, f"{name} {word}")]


def test_every_command_with_settings_is_tried_here():
    names = {each for name in all_commands() for each in leaves(load_command(name), name)}
    assert {*OF_PARTY, *OF_CURATOR} | BEGIN == names


MISSING, EMPTY, FOREIGN, NO_BYTES, OTHERS_FILE = (
    "missing", "empty", "foreign", "no bytes", "another service's file",
)  # fmt: skip


def prepare(folder, what, *, foreign, own):
    """Make the state folder as it is in a test."""
    if what == MISSING:
        return
    folder.mkdir()
    if what == FOREIGN:
        shutil.copy(foreign, folder / foreign.name)
    elif what == NO_BYTES:
        (folder / own).touch()
    elif what == OTHERS_FILE:
        shutil.copy(foreign, folder / own)


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A curator and two parties with a study, and the states of both services moved away."""
    folder = tmp_path_factory.mktemp("original")
    write_small(folder)
    place = DeployedFolder(folder)
    with contextlib.chdir(folder):
        assert main(place.words()) == 0
        assert main(["curator", "study", "add", "study.toml", *HUB]) == 0
        assert main(["party", "decline", "study.toml", "--config", "east/party.toml"]) == 0
    (folder / "hub" / "state").rename(folder / "of a curator")
    (folder / "east" / "state").rename(folder / "of a party")
    return place


@pytest.fixture
def place(original, tmp_path):
    """Copy the original: what a test does to it is nothing to the next one."""
    shutil.copytree(original.folder, tmp_path, dirs_exist_ok=True)
    place = copy.copy(original)
    place.folder = tmp_path
    return place


@pytest.fixture
def written(place):
    """Read the study that the original was made with."""
    return Study.load(place.folder / "study.toml")


@pytest.fixture
def states(place):
    """A curator's state and a party's, from which foreign ones are copied."""
    return place.folder / "of a curator" / "curator.db", place.folder / "of a party" / "party.db"


@pytest.mark.parametrize("what", [MISSING, EMPTY, NO_BYTES, FOREIGN, OTHERS_FILE])
@pytest.mark.parametrize("name", OF_PARTY)
@pytest.mark.parametrize("lost", [False, True])
def test_a_reading_command_of_a_party_makes_no_ledger(
    parley, place, states, name, what, lost, caplog
):
    prepare(place.folder / "north" / "state", what, foreign=states[0], own="party.db")
    if lost:
        (place.folder / "north" / "keys" / MARK).write_text("state\n")
    before = contents(place.folder)
    words, fresh_code, lost_code = OF_PARTY[name]
    done = parley(*words, *NORTH)
    assert contents(place.folder) == before
    is_foreign = what in (FOREIGN, OTHERS_FILE)
    code = lost_code if lost or (is_foreign and name != "config show") else fresh_code
    assert done.code == code, done
    said = done.out + done.err + caplog.text  # a log is on stderr, too
    assert "verified" not in said
    if name in ("party ledger", "party status", "party review", "party sent-log", "doctor"):
        if is_foreign:
            assert "of a curator" in said
        elif lost:
            assert "is lost" in said
            assert "parley restore FILE" in said
            assert "--begin-anew" in said
        elif name != "doctor":
            assert "there is no ledger" in said


@pytest.mark.parametrize("what", [MISSING, EMPTY, NO_BYTES, FOREIGN, OTHERS_FILE])
@pytest.mark.parametrize("name", OF_CURATOR)
def test_a_reading_command_of_a_curator_makes_no_state(parley, place, states, name, what):
    prepare(place.folder / "hub" / "state", what, foreign=states[1], own="curator.db")
    before = contents(place.folder)
    words, code = OF_CURATOR[name]
    if name == "curator study new":
        words = [*place.words(out="next.toml"), *words[-2:]]
    if name == "curator study reform":
        words = [*words, "--out", "next.toml"]
    done = parley(*words, *HUB)
    assert contents(place.folder) == before
    ready = name == "doctor" and what not in (FOREIGN, OTHERS_FILE)
    assert done.code == (DONE if ready else code), done
    if name in ("curator study list", "curator study status"):
        assert ("there are no studies" if what in (MISSING, EMPTY, NO_BYTES) else "of a party") in (
            done.err
        )


def test_a_first_start_needs_no_word_and_leaves_a_mark(parley, place, written):
    assert not (place.folder / "north" / "keys" / MARK).exists()
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    assert (
        str(place.folder / "north" / "state")
        in (place.folder / "north" / "keys" / MARK).read_text()
    )
    assert parley("party", "ledger", "--verify", *NORTH).code == 0


def test_a_state_of_an_earlier_version_is_marked_when_it_is_used(parley, place, written):
    spend(place.folder)  # without a mark
    assert parley("party", "ledger", *NORTH).code == 0
    assert not (place.folder / "north" / "keys" / MARK).exists()
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    assert (place.folder / "north" / "keys" / MARK).exists()


@pytest.mark.parametrize("words", [["approve", "study.toml", "--yes"], ["decline", "study.toml"],
                                   ["join", "--once"], ["ui"]])  # fmt: skip
def test_a_lost_ledger_is_not_begun_again_unasked(parley, place, written, words):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    shutil.rmtree(place.folder / "north" / "state")
    done = parley("party", *words, *NORTH)
    assert done.code == INPUT
    assert "the ledger of these keys is lost" in done.err
    assert not (place.folder / "north" / "state").exists()


def test_a_lost_ledger_is_looked_at_and_then_restored(parley, place, written):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    spend(place.folder)
    assert parley(*BACKUP).code == 0
    shutil.rmtree(place.folder / "north" / "state")
    assert parley("party", "ledger", "--verify", *NORTH).code == INPUT
    assert parley("doctor", "party", *NORTH).code == INPUT
    assert parley(*RESTORE).code == 0
    assert "epsilon 0.5" in parley("party", "ledger", "--verify", *NORTH).out


def test_a_blank_ledger_that_an_earlier_version_made_does_not_block_a_restore(parley, place):
    spend(place.folder)
    assert parley(*BACKUP).code == 0
    state(place).unlink()
    with party_state.open_state(
        state(place).parent, keys=place.folder / "north" / "keys", begin=True
    ) as blank:
        Ledger(blank)
    assert parley(*RESTORE).code == 0
    assert "epsilon 0.5" in parley("party", "ledger", "--verify", *NORTH).out


def test_beginning_anew_is_for_a_lost_ledger_alone(parley, place, written):
    join = ["party", "join", "--begin-anew", "--once", *NORTH]
    assert "no ledger is lost" in parley(*join).err
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    assert "no ledger is lost" in parley(*join).err
    shutil.rmtree(place.folder / "north" / "state")
    begin_anew(place.folder / "north" / "state", keys=place.folder / "north" / "keys")
    assert parley("party", "ledger", "--verify", *NORTH).code == 0
    assert len((place.folder / "north" / "keys" / MARK).read_text().splitlines()) == 4
