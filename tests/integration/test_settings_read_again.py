"""`parley curator serve` and `parley party join` read their settings again on SIGHUP."""

import contextlib
import json
import signal
import subprocess
import sys
import time

import pytest

from common.files import replace
from tests.harness.process_consortium import ROOT, ProcessConsortium


@pytest.fixture
def consortium(tmp_path):
    made = ProcessConsortium(tmp_path)
    made.propose()
    return made


@contextlib.contextmanager
def running(consortium, who, *words):
    log = consortium.folder / f"{who}.log"
    command = [sys.executable, "-m", "parley", *words]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, cwd=ROOT, stderr=stream, stdout=stream)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def lines(consortium, who):
    text = (consortium.folder / f"{who}.log").read_text()
    return [json.loads(line)["message"] for line in text.splitlines() if line.endswith("}")]


def wait_for_line(consortium, who, wanted, *, times=1):
    for _ in range(1200):
        if sum(wanted in line for line in lines(consortium, who)) >= times:
            return
        time.sleep(0.05)
    raise AssertionError(lines(consortium, who))


def change(consortium, who, old, new):
    file = consortium.folder / f"{who}.toml"
    replace(file, file.read_text().replace(old, new).encode())


def test_services_go_on_with_changed_settings_and_refuse_broken_ones(consortium):
    hub = ("curator", "serve", "--config", consortium.folder / "curator.toml")
    with running(consortium, "curator", *hub, "--listen", "127.0.0.1:0") as curator:
        wait_for_line(consortium, "curator", "listening")
        change(consortium, "curator", 'metrics = "127.0.0.1:0"', "metrics = []")
        curator.send_signal(signal.SIGHUP)
        wait_for_line(consortium, "curator", "the earlier ones hold")
        change(consortium, "curator", "metrics = []", 'metrics = ""\nstep_deadline_s = 120.0')
        curator.send_signal(signal.SIGHUP)
        wait_for_line(consortium, "curator", "listening", times=2)
        assert sum("metrics on port" in line for line in lines(consortium, "curator")) == 1
        curator.send_signal(signal.SIGTERM)
        assert curator.wait(timeout=60) == 0


def test_a_node_begins_anew_with_another_curator_and_keeps_its_folder(consortium):
    node = ("party", "join", "--config", consortium.folder / "north.toml")
    file = consortium.folder / "north.toml"
    nowhere = "127.0.0.1:9"
    replace(file, f'curator = "{nowhere}"\nattempts = 1000\n{file.read_text()}'.encode())
    with running(consortium, "north", *node) as process:
        wait_for_line(consortium, "north", nowhere)
        hub = ("curator", "serve", "--config", consortium.folder / "curator.toml")
        with running(consortium, "curator", *hub, "--listen", "127.0.0.1:0") as curator:
            wait_for_line(consortium, "curator", "listening")
            (listening,) = [x for x in lines(consortium, "curator") if "listening" in x]
            port = listening.rsplit(maxsplit=1)[-1].rsplit(":")[-1]
            change(consortium, "north", nowhere, f"127.0.0.1:{port}")
            process.send_signal(signal.SIGHUP)
            wait_for_line(consortium, "north", "begins anew")
            wait_for_line(consortium, "north", "the curator is reached")
            assert curator.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
