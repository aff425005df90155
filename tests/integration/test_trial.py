"""The trial of deploy/compose.yaml, its services as processes where no container engine is."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SERVES = ("curator.key", "curator.pem", "authority.pem", "revoked.txt")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def commands(tmp_path):
    """Make a folder with `parley` and `python`, as the image has them on its path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, words in {"parley": "-P -m parley", "python": "-P"}.items():
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        command.chmod(0o755)
    return folder


@pytest.mark.slow
def test_the_composed_services_end_in_a_release(tmp_path, commands):
    trial = tmp_path / "trial"
    trial.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PARLEY_")}
    environment |= {"PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    setup = ["sh", str(DEPLOY / "trial-setup.sh"), str(trial)]
    subprocess.run(setup, env=environment, check=True, capture_output=True, timeout=120)
    again = subprocess.run(setup, env=environment, capture_output=True, text=True, timeout=60)
    assert again.returncode == 1
    assert "remove" in again.stderr
    _leave_the_authority_elsewhere(trial / "hub" / "keys", tmp_path / "vault")

    here = {
        "0.0.0.0:7443": f"127.0.0.1:{(port := free_port())}",
        "curator:7443": f"localhost:{port}",
        "127.0.0.1:9443": f"127.0.0.1:{free_port()}",
    }
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    with ExitStack() as running:
        for name in ("curator", "north", "east", "south"):
            folder = trial / Path(services[name]["volumes"][0].split(":")[0]).name
            words = [w.replace("/etc/parley", str(folder)) for w in services[name]["command"]]
            values = {k: here[v] for k, v in services[name]["environment"].items()}
            log = running.enter_context((folder / "log.jsonl").open("wb"))
            process = subprocess.Popen(
                ["parley", *words], cwd=folder, env=environment | values, stderr=log
            )
            running.callback(process.wait, 60)
            running.callback(process.terminate)
            if name == "curator":
                _until_healthy(services[name]["healthcheck"]["test"][1:], here, environment)
        _until(lambda: list(trial.glob("hub/releases/*/privacy.json")), trial)


def _leave_the_authority_elsewhere(keys, vault):
    """Do as the manifests of Kubernetes do: the server has only what it serves with."""
    shutil.move(keys, vault)
    keys.mkdir(mode=0o700)
    for name in SERVES:
        shutil.copy2(vault / name, keys / name)


def _until_healthy(check, here, environment):
    words = [word.replace("127.0.0.1:9443", here["127.0.0.1:9443"]) for word in check]
    _until(
        lambda: subprocess.run(words, env=environment, stderr=subprocess.DEVNULL).returncode == 0
    )


def _until(there, logs=None):
    for _ in range(600):
        if there():
            return
        time.sleep(0.5)
    raise AssertionError(
        "".join(p.read_text()[-2000:] for p in logs.glob("*/log.jsonl")) if logs else ""
    )
