"""Settings: defaults, file, environment, flags; every value knows where it came from."""

import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.errors import InputError
from common.service.settings import PASSPHRASE, asking, given_passphrase, read_settings
from curator.settings import CuratorSettings
from party.settings import PartySettings


@dataclass(frozen=True, kw_only=True)
class Example:
    folder: Path
    name: str = "nobody"
    tries: int = 3
    wait_s: float = 0.5
    loud: bool = False
    secret_file: Path | None = None


def read(file=None, environment=(), tables=(), **flags):
    return read_settings(
        Example,
        prefix="PARLEY_X_",
        file=file,
        environment=dict(environment),
        flags=flags,
        tables=tables,
    )


def test_later_places_win_and_are_remembered(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text('folder = "state"\nname = "file"\ntries = 4\nwait_s = 2\n')
    settings = read(file, {"PARLEY_X_NAME": "env", "PARLEY_X_TRIES": "5", "OTHER": "1"}, tries=6)
    assert settings.values == Example(folder=tmp_path / "state", name="env", tries=6, wait_s=2.0)
    assert settings.origins["folder"] == str(file)
    assert "PARLEY_X_" in settings.origins["name"]
    assert settings.origins["tries"] == "the command line"
    assert settings.origins["loud"] == "default"
    assert f"tries = 6  # {settings.origins['tries']}" in settings.lines()


def test_flags_that_were_not_given_change_nothing():
    assert read(folder=Path("a"), name=None).values.name == "nobody"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("TRIES", "7", 7),
        ("WAIT_S", "1.5", 1.5),
        ("LOUD", "yes", True),
        ("LOUD", "False", False),
        ("SECRET_FILE", "s", Path("s")),
    ],
)
def test_texts_of_the_environment_are_read_as_what_the_setting_is(key, text, value):
    settings = read(environment={f"PARLEY_X_{key}": text}, folder=Path())
    assert getattr(settings.values, key.lower()) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('folder = "a"\ntrise = 4\n', "unknown setting 'trise'"),
        ('folder = "a"\ntries = "4 times"\n', "expected int"),
        ('folder = "a"\ntries = true\n', "expected int"),
        ('folder = "a"\nloud = 1\n', "expected bool"),
        ("folder = 3\n", "expected a path"),
        ('folder = ""\n', "expected a path"),
        ('name = "a"\n', "folder is not set"),
        ("folder = \n", "not valid TOML"),
        ('folder = "a"\n[source]\nkind = "csv"\n', "unknown setting 'source'"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path, text, words):
    file = tmp_path / "x.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        read(file)


def test_a_misspelt_variable_is_an_error():
    with pytest.raises(InputError, match="unknown setting 'nmae'"):
        read(environment={"PARLEY_X_NMAE": "a"}, folder=Path())


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.toml")


def test_tables_of_others_are_handed_on(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text('folder = "a"\n[source]\nkind = "csv"\n')
    assert read(file, tables=("source",)).tables == {"source": {"kind": "csv"}}


def test_without_a_file_the_message_says_how_to_name_one(tmp_path):
    with pytest.raises(
        InputError, match=r"folder is not set\. Name the settings file with --config"
    ):
        read()
    file = tmp_path / "x.toml"
    file.write_text('name = "a"\n')
    with pytest.raises(InputError, match=r"Write it into .*x\.toml, or set PARLEY_X_FOLDER"):
        read(file)


CURATOR = {"folder": Path("state"), "keys": Path("keys"), "releases": Path("out")}
PARTY = {"folder": Path("s"), "keys": Path("k"), "policy": Path("p"), "curator": "hub:7443"}
NO_DURATIONS = (math.inf, -math.inf, math.nan, 0.0, -1.0, 1e308, 1e-9)


@pytest.mark.parametrize("value", NO_DURATIONS)
@pytest.mark.parametrize(
    ("kind", "needed", "key"),
    [
        (CuratorSettings, CURATOR, "grace_s"),
        (PartySettings, PARTY, "look_again_s"),
        (PartySettings, PARTY, "first_wait_s"),
        (PartySettings, PARTY, "longest_wait_s"),
    ],
)
def test_a_duration_is_finite_and_neither_too_short_nor_too_long(kind, needed, key, value):
    with pytest.raises(InputError, match=rf"^{key}: .* is not a usable duration\. Set 0\.001 to"):
        kind(**needed, **{key: value})


@pytest.mark.parametrize("value", [0, -1, 100_000_000, 10**400])
def test_a_number_of_threads_is_bounded(value):
    with pytest.raises(InputError, match=r"^most_streams: .* from 1 to 10000$"):
        CuratorSettings(**CURATOR, most_streams=value)


@pytest.mark.parametrize("value", [0, 10**30])
def test_a_number_of_attempts_is_bounded(value):
    with pytest.raises(InputError, match=r"^attempts: .* is out of range"):
        PartySettings(**PARTY, attempts=value)


@pytest.mark.parametrize(
    "address",
    ["x", "x:", ":1", "a:b:1", "127.0.0.1:65536", "h:-1", "h:٣", "[::1]", "a b:1", "h:1\n"],
)
@pytest.mark.parametrize("key", ["listen", "metrics", "dashboard_listen"])
def test_an_address_is_a_host_and_a_port(key, address):
    with pytest.raises(InputError, match=rf"^{key}: expected host:port, got .*\. Write an address"):
        CuratorSettings(**CURATOR, **{key: address})


def test_usable_numbers_and_addresses_are_taken():
    CuratorSettings(**CURATOR, listen="[::1]:0", metrics="", dashboard_listen="host.example:65535")
    CuratorSettings(**CURATOR, most_streams=10_000, grace_s=0.001)
    PartySettings(**PARTY, attempts=1, look_again_s=86_400)
    with pytest.raises(InputError, match="curator: expected host:port, got 'hub:0'"):
        PartySettings(**PARTY | {"curator": "hub:0"})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "passphrase"
    path.write_text("correct horse\nsecond line\n")
    path.chmod(0o600)
    return path


def test_a_file_that_is_named_wins_over_the_environment(file):
    environment = {PASSPHRASE: "of the environment"}
    assert given_passphrase(file, environment) == "correct horse"
    assert given_passphrase(None, environment) == "of the environment"
    assert given_passphrase(None, {}) is None


def test_an_empty_file_is_an_empty_passphrase_and_not_none(file):
    file.write_text("")
    assert given_passphrase(file, {PASSPHRASE: "x"}) == ""


def test_a_file_that_others_can_read_or_that_is_not_there_is_refused(file):
    file.chmod(0o644)
    with pytest.raises(InputError, match="passphrase"):
        given_passphrase(file, {})
    with pytest.raises(InputError, match="absent"):
        given_passphrase(file.parent / "absent", {})


def test_nothing_is_looked_for_before_a_key_asks(file):
    environment = {}
    ask = asking(None, environment)
    with pytest.raises(InputError, match=f"passphrase_file.*{PASSPHRASE}"):
        ask()
    environment[PASSPHRASE] = "later"
    assert ask() == "later"
    file.unlink()
    asking(file, {})  # a file that is not there is no matter until then
