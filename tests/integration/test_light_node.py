"""A party needs none of the packages that the extras bring; a curator says which it needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.errors import EXTRA_OF
from parley.cli.exit_codes import ExitCode
from parley.cli.main import main
from tests.harness.people import SMOKERS, smokers

SPARED = "serve"  # the curator, which writes the release
# Python runs a module of this name on its own path before anything else.
BLOCKER = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(EXTRA_OF)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

if "{SPARED}" not in sys.orig_argv:
    sys.meta_path.insert(0, Missing())
"""


@pytest.fixture
def light(tmp_path, monkeypatch):
    """Let every process that is started from here miss the extras, except for a curator."""
    folder = tmp_path / "blocker"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BLOCKER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(Path.cwd())]))
    return tmp_path


def parley(*words):
    command = [sys.executable, "-m", "parley", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("method", ["subn+", pytest.param("floor", marks=pytest.mark.slow)])
def test_a_study_runs_and_verifies_without_the_extras(light, method):
    (light / "schema.toml").write_text(SMOKERS.to_toml())
    smokers(600).to_csv(light / "table.csv", index=False)
    done = main(
        ["simulate", str(light / "table.csv"), "--schema", str(light / "schema.toml"),
         "--parties", "2", "--epsilon", "4", "--method", method, "--transport", "grpc",
         "--out", str(light / "release")]
    )  # fmt: skip
    assert done == 0
    verified = parley("verify", light / "release", "--unsigned")
    assert verified.returncode == 0, verified.stderr
    assert verified.stdout.startswith("verified")


@pytest.mark.parametrize(
    ("words", "extra"),
    [(["demo", "--out", "x"], "analysis"), (["draw", "release", "--out", "x.csv"], "analysis")],
)
def test_a_command_that_needs_more_names_the_extra(light, words, extra):
    refused = parley(*words)
    assert refused.returncode == ExitCode.INPUT
    assert f"pip install 'parley[{extra}]'" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_database_names_the_extra(light):
    code = (
        "from party.sources.kinds.databases import _connect\n"
        "from common.errors import InputError\n"
        "try: _connect('sqlite', 'x.db')\n"
        "except InputError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'parley[sql]'" in told.stdout, told.stderr
