"""Settings: defaults, file, environment, flags; every value knows where it came from."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from common.errors import InputError
from common.settings import read_settings


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
        ("folder = \n", "not TOML"),
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
    with pytest.raises(InputError, match="folder is not set: name the settings file with --config"):
        read()
    file = tmp_path / "x.toml"
    file.write_text('name = "a"\n')
    with pytest.raises(InputError, match=r"write it into .*x\.toml, or set PARLEY_X_FOLDER"):
        read(file)
