"""`parley curator serve --dashboard` and `parley party ui`, as processes of their own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from common.schema import Schema
from common.study.document import Study
from common.wire.pki.keyring import Keyring
from curator.operations import member_of
from parley.cli.main import main
from parley.simulation.population import demo_schema_toml, make_population
from tests.harness.consortium import enrolled
from tests.unit.service.web.conftest import Client

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "dashboard.md"


@pytest.fixture
def parley(tmp_path):
    """Starts commands; stops them as an operator would, and wants a clean end."""
    started = []
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PARLEY_")}

    def start(*words):
        process = subprocess.Popen(
            [sys.executable, "-m", "parley", *map(str, words)],
            cwd=tmp_path, env={**environment, "PYTHONPATH": str(ROOT)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        process.stdout.close()
        process.stderr.close()


def test_the_dashboard_is_served_beside_the_service(parley, tmp_path):
    assert main(["keys", "init", "curator", "hub", "--host", "localhost", "--folder",
                 str(tmp_path / "keys")]) == 0  # fmt: skip
    (tmp_path / "curator.toml").write_text(
        'folder = "state"\nkeys = "keys"\nreleases = "releases"\nlisten = "127.0.0.1:0"\n'
        'dashboard_listen = "127.0.0.1:0"\n'
    )
    process = parley("curator", "serve", "--config", "curator.toml", "--dashboard")
    for line in process.stderr:
        if found := re.search(r"dashboard on http://127\.0\.0\.1:(\d+)/ \(token in (\S+)\)", line):
            break
    token = tmp_path / found[2]
    assert token.stat().st_mode & 0o777 == 0o600
    client = Client(int(found[1]))
    assert client.log_in("wrong").status == 403
    assert client.log_in(token.read_text().strip()).status == 303
    assert b"Parley curator" in client.ask("GET", "/").body


def test_the_owners_page_is_at_the_printed_address(parley, tmp_path):
    curator = tmp_path / "hub"
    assert main(["keys", "init", "curator", "hub", "--host", "localhost", "--folder",
                 str(curator)]) == 0  # fmt: skip
    enrolled(Keyring.open(curator), tmp_path / "keys", "north")
    (tmp_path / "schema.toml").write_text(demo_schema_toml())
    make_population(60, seed=1).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "policy.toml").write_text(
        '[budget]\nepsilon_per_study = "1"\nepsilon_in_total = "4"\n[data]\nmin_rows = 10\n'
        "[study]\nmin_parties = 1\n"
    )
    (tmp_path / "party.toml").write_text(
        'folder = "state"\nkeys = "keys"\npolicy = "policy.toml"\ncurator = "localhost:1"\n'
        '[source]\nkind = "csv"\npath = "rows.csv"\n'
    )
    member = member_of(f"north:60:{tmp_path / 'keys' / 'identity.pub'}")
    terms = {"epsilon": "1", "name": "alone", "colluders": 0}
    study = Study.of(terms, schema=Schema.load(tmp_path / "schema.toml"), members=[member])
    (tmp_path / "study.toml").write_text(study.to_toml())
    digest = study.digest.hex()
    process = parley("party", "ui", "--config", "party.toml", "--study", "study.toml", "--offline")
    port, token = re.fullmatch(
        r"http://127\.0\.0\.1:(\d+)/login#token=(\S+)\n", process.stdout.readline()
    ).groups()
    client = Client(int(port))
    assert client.log_in(token).status == 303
    assert f"/studies/{digest}" in client.ask("GET", "/").body.decode()
    assert b"What leaves the building" in client.ask("GET", f"/studies/{digest}").body


def test_the_commands_of_the_page_exist_with_their_options(capsys):
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) >= 3
    for command in commands:
        words = command.removeprefix("parley ").split()
        names = [word for word in words[:3] if not word.startswith("-")][:2]
        assert main([*names, "--help"]) == 0
        known = capsys.readouterr().out
        assert all(word in known for word in words if word.startswith("--")), command
