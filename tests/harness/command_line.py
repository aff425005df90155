"""A small table with its schema, and the `parley` command as a function."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from common.study.document import Study
from parley.cli.main import main
from parley.simulation.population import demo_schema_toml, make_population
from tests.harness.deployed_folder import DeployedFolder


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


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def shell(tmp_path):
    """Run a script of bash in a folder of its own, with `parley` on the path."""
    (tmp_path / ".bin").mkdir()
    command = tmp_path / ".bin" / "parley"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m parley "$@"\n')
    command.chmod(0o755)
    environment = {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path), "LANG": "C.UTF-8",
    }  # fmt: skip

    def run(script):
        return subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=300,
        )  # fmt: skip

    return run


@pytest.fixture(scope="session")
def people():
    return make_population(600, seed=1)


@pytest.fixture(scope="session")
def study(tmp_path_factory, people):
    """Write a folder with data.csv and schema.toml."""
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


def write_small(folder, data=f"age,sex\n{SMALL_ROWS}", schema=SMALL_SCHEMA):
    """Write data.csv and schema.toml of two attributes; either text can be replaced."""
    raw = data if isinstance(data, bytes) else data.encode()
    (folder / "data.csv").write_bytes(raw)
    (folder / "schema.toml").write_text(schema)
    return folder


@pytest.fixture
def small(tmp_path):
    """Write small tables into the folder of a test."""
    return partial(write_small, tmp_path)


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch):
    """Settings come from the files of the test alone."""
    for name in os.environ:
        if name.startswith("PARLEY_"):
            monkeypatch.delenv(name)


@pytest.fixture
def place(small):
    """Make a curator's folder and those of two parties."""
    return DeployedFolder(small())


@pytest.fixture
def written(parley, place):
    """Write the study of the place by the command."""
    assert parley(*place.words()).code == 0
    return Study.load(place.folder / "study.toml")
