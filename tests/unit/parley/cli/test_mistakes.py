"""Typical mistakes, at every command: an exit code of the table, words, and no stack trace."""

import os
import socket

import pytest

from parley.cli.exit_codes import ExitCode

TABLE = ["--schema", "schema.toml", "--epsilon", "1"]
WRITERS = {
    "synthesize": ["synthesize", "data.csv", *TABLE, "--out"],
    "simulate": ["simulate", "data.csv", *TABLE, "--aggregation", "masked", "--out"],
    "schema infer": ["schema", "infer", "data.csv", "--out"],
    "evaluate": ["evaluate", "data.csv", "data.csv", "--schema", "schema.toml", "--html"],
    "keys init": ["keys", "init", "party", "north", "--folder"],
    "demo": ["demo", "--rows", "30", "--tables"],
}
TABLE_READERS = {
    "synthesize": lambda table: ["synthesize", table, *TABLE, "--out", "r"],
    "simulate": lambda table: ["simulate", table, *TABLE, "--out", "r"],
    "evaluate": lambda table: ["evaluate", table, "data.csv", "--schema", "schema.toml"],
    "attack": lambda table: ["attack", table, "--rows", "data.csv", "--held-back", "data.csv"],
    "schema infer": lambda table: ["schema", "infer", table, "--out", "s.toml"],
    "schema check": lambda table: ["schema", "check", "schema.toml", table],
    "query": lambda table: ["query", table, "age = 3"],
    "draw": lambda table: ["draw", table, "--where", "age = 3"],
    "estimate": lambda table: ["estimate", table, "--mean", "age"],
    "describe": lambda table: ["describe", table],
    "replicate": lambda table: ["replicate", table, "--out", "tables"],
}
FILE_READERS = {
    "schema check": lambda file: ["schema", "check", file],
    "party review": lambda file: ["party", "review", file, "--config", file],
    "party ledger": lambda file: ["party", "ledger", "--config", file],
    "curator serve": lambda file: ["curator", "serve", "--config", file],
    "curator study add": lambda file: ["curator", "study", "add", file, "--config", file],
    "config show": lambda file: ["config", "show", "party", "--config", file],
    "doctor": lambda file: ["doctor", "curator", "--config", file],
    "keys show": lambda file: ["keys", "show", "--folder", file],
    "keys approve": lambda file: ["keys", "approve", file, "--folder", file],
    "keys accept": lambda file: ["keys", "accept", file, "--folder", file],
    "keys rotate": lambda file: ["keys", "rotate", "--folder", file],
}


@pytest.fixture
def place(small):
    folder = small()
    (folder / "a folder").mkdir()
    (folder / "empty").write_bytes(b"")
    (folder / "garbage").write_bytes(bytes(range(256)))
    (folder / "broken.parquet").write_bytes(b"PAR1" + bytes(60) + b"PAR1")
    (folder / "not.toml").write_text("= nonsense")
    return folder


def refused(done, *words, code=ExitCode.INPUT):
    assert done.code == code, done.err
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err
    assert done.out == ""
    for word in words:
        assert word in done.err


@pytest.mark.parametrize(
    "table", ["nowhere.csv", "a folder", "empty", "garbage", "broken.parquet", "data.csv/x"]
)
@pytest.mark.parametrize("command", TABLE_READERS.values(), ids=TABLE_READERS)
def test_a_table_that_cannot_be_read(parley, place, table, command):
    before = sorted(place.rglob("*"))
    refused(parley(*command(table)), table)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("file", ["nowhere", "a folder", "empty", "garbage", "not.toml"])
@pytest.mark.parametrize("command", FILE_READERS.values(), ids=FILE_READERS)
def test_a_file_that_cannot_be_used(parley, place, file, command):
    done = parley(*command(file))
    assert done.code == ExitCode.INPUT
    assert "Traceback" not in done.err


@pytest.mark.parametrize("target", ["data.csv/r", "/proc/nowhere/r", "/dev/full"])
@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_a_place_that_cannot_be_written(parley, place, target, command):
    before = sorted(place.rglob("*"))
    done = parley(*command, target)
    assert done.code == ExitCode.INPUT
    assert "Traceback" not in done.err
    assert sorted(place.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_a_folder_that_is_read_only(parley, place, command):
    (place / "a folder").chmod(0o500)
    refused(parley(*command, "a folder/r"), "a folder/r")


@pytest.mark.parametrize(
    "epsilon", ["0", "-1", "nan", "inf", "1/0", "much", "", "1e400", "1e-400", "1/3/4"]
)
@pytest.mark.parametrize("command", ["synthesize", "simulate"])
def test_an_epsilon_that_is_none(parley, place, epsilon, command):
    words = [command, "data.csv", "--schema", "schema.toml", "--epsilon", epsilon, "--out", "r"]
    refused(parley(*words), "epsilon")
    assert not (place / "r").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--method", "magic"], ["--parties", "0"], ["--parties", "99999"], ["--rows", "-1"],
        ["--partition-by", "nope"], ["--key-bits", "7"], ["--colluders", "9"], ["--noise", "x"],
        ["--colluders", "-1"], ["--cohorts", "0"], ["--profile", "x"], ["--aggregation", "x"],
        ["--encoding", "binary"], ["--delimiter", "xx"], ["--seed", "1", "--transport", "grpc"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_study_that_cannot_be(parley, place, words):
    refused(parley("simulate", "data.csv", *TABLE, "--out", "r", *words))
    assert not (place / "r").exists()


def test_a_port_in_use_and_an_address_that_is_none(parley, place):
    assert parley("keys", "init", "curator", "hub", "--host", "127.0.0.1").code == 0
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        for listen, words in (
            (taken, f"cannot listen on {taken}"),
            ("256.0.0.1:1", "cannot listen on 256.0.0.1:1"),
            ("nonsense", "listen: expected host:port, got 'nonsense'"),
        ):
            done = parley("curator", "serve", "--folder", "s", "--keys", "keys", "--releases", "r",
                          "--listen", listen)  # fmt: skip
            assert done.code == ExitCode.INPUT
            assert words in done.err


def test_a_state_that_is_no_database(parley, place):
    (place / "state").mkdir()
    (place / "state" / "curator.db").write_bytes(bytes(range(256)) * 40)
    (place / "c.toml").write_text('folder = "state"\nkeys = "k"\nreleases = "r"\n')
    refused(parley("curator", "study", "list", "--config", "c.toml"), "curator.db")


def test_memory_that_does_not_suffice_is_said(parley, place, monkeypatch):
    def grow(*_, **__):
        raise MemoryError

    monkeypatch.setattr("common.schema.Schema.load", grow)
    refused(parley("schema", "check", "schema.toml"), "not enough memory")


def test_too_few_simulated_people_are_a_usage_error(parley, place):
    assert parley("demo", "--rows", "-5").code == ExitCode.USAGE


def test_keys_are_shown_to_scripts(parley, place):
    assert parley("keys", "init", "curator", "hub", "--host", "127.0.0.1").code == 0
    assert parley("keys", "init", "party", "north", "--folder", "n").code == 0
    hub, north = (parley("keys", "show", "--folder", f, "--json").json for f in ("keys", "n"))
    assert hub["role"] == "curator"
    assert hub["certificate"]["name"] == "hub"
    assert hub["certificate"]["fingerprint"] == hub["issued"][0]["fingerprint"]
    assert north["certificate"] is None
    assert north["request"] in parley("keys", "request", "--folder", "n").out
    assert f"identity     {north['identity']}\n" in parley("keys", "show", "--folder", "n").out


class Interrupting:
    """os.fsync, with a Ctrl-C at the call of a certain number."""

    def __init__(self, at):
        self.left = at
        self.sync = os.fsync

    def __call__(self, descriptor):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        self.sync(descriptor)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_an_interrupt_while_writing_leaves_nothing(parley, place, monkeypatch, command, at):
    before = sorted(place.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Interrupting(at))
        done = parley(*command, "target")
    if done.code == ExitCode.DONE:  # it writes fewer files
        assert at > 0
        return
    assert done.code == ExitCode.INTERRUPTED
    assert "nothing was left half-written" in done.err
    assert sorted(place.rglob("*")) == before
    assert parley(*command, "target").code == ExitCode.DONE
