"""docs/running-a-study.md does what it says, command by command."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from parley.population import demo_schema_toml, make_population

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "running-a-study.md"
ROWS = {"north": 400, "east": 300, "south": 500}


def commands(port):
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return "\n".join(["set -eu", "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT", *blocks]).replace(
        "7443", str(port)
    )


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def folder(tmp_path):
    here = tmp_path / "a study"
    (here / "bin").mkdir(parents=True)
    command = here / "bin" / "parley"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m parley "$@"\n')
    command.chmod(0o755)
    (here / "schema.toml").write_text(demo_schema_toml())
    for seed, (owner, rows) in enumerate(ROWS.items()):
        (here / owner).mkdir()
        make_population(rows, seed).to_csv(here / owner / "rows.csv", index=False)
    return here


@pytest.mark.slow
def test_the_commands_of_the_page_end_in_a_release(folder):
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PARLEY_")},
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["bash", "-c", commands(free_port())], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    logs = "".join(path.read_text() for path in folder.glob("*/log.jsonl"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert done.stdout.count("Our policy allows it") == 3
    assert "approved by the owner" in done.stdout
    assert "What leaves the building" in done.stdout
    assert "FAIL" not in done.stdout
    assert {"synthetic.csv", "privacy.json", "report.html", "study.toml"} <= set(
        done.stdout.split()
    )
    assert "verified" in done.stdout
    (synthetic,) = folder.glob("hub/releases/*/synthetic.csv")
    assert len(synthetic.read_text().splitlines()) == sum(ROWS.values()) + 1
