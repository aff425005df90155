"""`--json`: every command has it, and prints one JSON value and nothing else."""

import contextlib
import io
import json
import os

import pytest

from parley.cli.main import all_commands, load_command, main
from tests.harness.command_line import SMALL_ROWS, SMALL_SCHEMA

RUN_UNTIL_STOPPED = {"curator serve", "party join", "party ui"}
KEYRING = {"role", "authority", "certificate", "request", "identity", "issued"}
STUDY = {"study", "name", "signer", "file"}
RECORD = {
    "study", "name", "state", "steps_done", "phase", "cause", "release", "abort_asked",
    "unreadable", "proposed_at",
}  # fmt: skip
RELEASE = {"out", "files", "rows", "epsilon_requested", "epsilon_delivered", "private"}
HUB = "--config hub/curator.toml"
NORTH = "--config north/party.toml"
NEW = (
    "curator study new --name n --schema schema.toml --party north:40:north/keys/identity.pub "
    f"--party east:40:east/keys/identity.pub {HUB}"
)
TABLE = "data.csv --schema schema.toml --epsilon 1"

# In this order, in one folder. What is in braces was said by the command of that name.
STORY = {
    "init": ("keys init curator hub --host 127.0.0.1 --folder hub/keys", KEYRING),
    "init party": ("keys init party north --folder north/keys", KEYRING),
    "init another": ("keys init party east --folder east/keys", KEYRING),
    "request": ("keys request --folder north/keys", KEYRING),
    "issue": (
        "keys approve north/keys/party.csr --folder hub/keys --fingerprint {request[request]}",
        {"certificate", "file"},
    ),
    "accept": (
        (
            "keys accept {issue[file]} --authority hub/keys/authority.pem --folder north/keys "
            "--fingerprint {init[authority][fingerprint]}"
        ),
        KEYRING,
    ),
    "rotate": ("keys rotate --folder hub/keys", KEYRING),
    "identity": ("keys identity --folder mine", {"identity"}),
    "passphrase": ("keys passphrase --remove --folder north/keys", {"files", "encrypted"}),
    "revoke": (
        "keys revoke {issue[certificate][fingerprint]} --folder hub/keys",
        {"revoked", "already"},
    ),
    "new": (f"{NEW} --epsilon 1 --out study.toml", STUDY),
    "new too": (f"{NEW} --epsilon 1/2 --out other.toml", STUDY),
    "add": (f"curator study add study.toml {HUB}", STUDY),
    "approve": (
        f"party approve study.toml --yes {NORTH}",
        {"study", "decision", "epsilon", "delta"},
    ),
    "decline": (f"party decline other.toml {NORTH}", {"study", "decision", "epsilon_charged"}),
    "withdraw": (
        f"party withdraw study.toml --yes {NORTH}",
        {"study", "decision", "epsilon_charged"},
    ),
    "renew": (f"curator study renew study.toml --out next.toml {HUB}", STUDY | {"changes"}),
    "backup": (
        f"backup party --out north.backup {NORTH}",
        {"file", "role", "state", "sha256", "taken_at", "software", "head", "format"},
    ),
    "abort": (f"curator study abort n --reason why {HUB}", RECORD),
    "synthesize": (f"synthesize {TABLE} --out mine/release", RELEASE),
    "simulate": (
        f"simulate {TABLE} --aggregation masked --out release",
        RELEASE
        | {"parties", "bytes", "seconds", "phases", "missing", "delta", "rho", "realised"}
        | {"criteria", "refusals"},
    ),
    "bundle": ("bundle release --out release.zip", {"out", "bytes"}),
    "demo": ("demo --tables play --rows 30", {"out", "rows"}),
}


def leaves(command, name):
    """The commands that do something, below a group or the command itself."""
    below = getattr(command, "commands", None)
    if below is None:
        return [(name, command)]
    return [each for word, child in below.items() for each in leaves(child, f"{name} {word}")]


EVERY_COMMAND = dict(each for name in all_commands() for each in leaves(load_command(name), name))


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_command_that_ends_has_it(name):
    options = {option for each in EVERY_COMMAND[name].params for option in each.opts}
    assert ("--json" in options) != (name in RUN_UNTIL_STOPPED)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What every command of the story printed."""
    folder = tmp_path_factory.mktemp("story")
    (folder / "data.csv").write_text(f"age,sex\n{SMALL_ROWS}")
    (folder / "schema.toml").write_text(SMALL_SCHEMA)
    for name in ("hub", "north"):
        (folder / name).mkdir()
    (folder / "hub" / "curator.toml").write_text(
        'folder = "state"\nkeys = "keys"\nreleases = "releases"\nlisten = "127.0.0.1:0"\n'
    )
    (folder / "north" / "party.toml").write_text(
        'folder = "state"\nkeys = "keys"\npolicy = "policy.toml"\ncurator = "127.0.0.1:1"\n'
        '[source]\nkind = "csv"\npath = "../data.csv"\n'
    )
    (folder / "north" / "policy.toml").write_text(
        '[budget]\nepsilon_per_study = "1"\nepsilon_in_total = "4"\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("PARLEY_")]:
            patch.delenv(name)
        yield run_story()


def run_story():
    said = {}
    for name, (line, _) in STORY.items():
        words = [*line.format_map(said).split(), "--json"]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(words) == 0, words
        said[name] = json.loads(out.getvalue())
    return said


@pytest.mark.parametrize("name", STORY)
def test_the_result_is_one_json_value(told, name):
    assert set(told[name]) == STORY[name][1]


def test_what_one_command_says_is_what_another_shows(told):
    study = told["new"]["study"]
    assert told["add"]["study"] == told["approve"]["study"] == told["abort"]["study"] == study
    assert told["decline"]["study"] == told["new too"]["study"] != study
    assert told["approve"]["epsilon"] == "1"
    assert told["new"]["signer"] == told["init"]["identity"]
    assert told["accept"]["certificate"] == told["issue"]["certificate"]
    assert not told["revoke"]["already"]
    assert not told["passphrase"]["encrypted"]
    assert told["abort"]["abort_asked"] == "why"
