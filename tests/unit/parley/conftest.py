"""A small table with its schema, and the `parley` command as a function."""

import json
from dataclasses import dataclass

import pytest

from parley.cli import main
from parley.population import demo_schema_toml, make_population


@dataclass(frozen=True)
class Outcome:
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def parley(capsys, monkeypatch, tmp_path):
    """Run `parley ...` in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def people():
    return make_population(600, seed=1)


@pytest.fixture(scope="session")
def study(tmp_path_factory, people):
    """A folder with data.csv and schema.toml."""
    folder = tmp_path_factory.mktemp("study")
    people.to_csv(folder / "data.csv", index=False)
    (folder / "schema.toml").write_text(demo_schema_toml())
    return folder


SMALL_SCHEMA = """\
[[attribute]]
name = "age"
kind = "integer"
min = 0
max = 99
bins = 10

[[attribute]]
name = "sex"
kind = "categorical"
values = ["Female", "Male"]
"""

SMALL_ROWS = "".join(f"{17 + 7 * i % 60},{'Female' if i % 3 else 'Male'}\n" for i in range(40))


@pytest.fixture
def small(tmp_path):
    """Writes data.csv and schema.toml of two attributes; either text can be replaced."""

    def write(data=f"age,sex\n{SMALL_ROWS}", schema=SMALL_SCHEMA):
        raw = data if isinstance(data, bytes) else data.encode()
        (tmp_path / "data.csv").write_bytes(raw)
        (tmp_path / "schema.toml").write_text(schema)
        return tmp_path

    return write
