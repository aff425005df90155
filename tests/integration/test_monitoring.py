"""`parley doctor` beside a running curator, as a monitoring runs it."""

import re
import socket
import sqlite3

import pytest

from curator.settings import curator_settings
from tests.harness.deployed_folder import HUB, serving


@pytest.fixture
def settings(place):
    """Make settings of a curator with a port of its own."""
    path = place.folder / "hub" / "curator.toml"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path.write_text(re.sub(r"127.0.0.1:0", f"127.0.0.1:{port}", path.read_text()))
    return curator_settings(path, {}).values


def findings(done):
    return {check["check"]: check for check in done.json["checks"]}


def test_the_doctor_passes_beside_a_running_curator(parley, settings):
    with serving(settings):
        done = parley("doctor", "curator", "--monitor", "--json", *HUB)
    assert (done.code, done.json["warnings"]) == (0, 0), done.out
    assert "our curator (process " in findings(done)["address"]["words"]
    assert findings(done)["running"]["words"].startswith("process ")


def test_a_curator_that_does_not_run_is_an_alarm_for_monitoring_only(parley, settings):
    assert parley("doctor", "curator", *HUB).code == 0
    done = parley("doctor", "curator", "--monitor", "--json", *HUB)
    assert done.code == 3
    assert [name for name, each in findings(done).items() if not each["ok"]] == ["running"]


def test_something_else_on_the_port_of_a_running_curator_is_found(parley, settings):
    host, _, port = settings.listen.rpartition(":")
    with socket.create_server((host, int(port))) as other:
        other.settimeout(0.0)
        with serving(settings, listen="127.0.0.1:0"):
            done = parley("doctor", "curator", "--json", *HUB)
    assert done.code == 3
    assert "is not the curator of" in findings(done)["address"]["words"]


def test_an_overdue_study_warns_the_monitoring(parley, settings, written):
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    with sqlite3.connect(settings.folder / "curator.db") as file:
        file.execute("UPDATE study SET state = 'running'")
        file.execute(
            "INSERT INTO awaited VALUES (?, 'east', 'answer', '2026-01-02T03:04:05+00:00')",
            (written.digest,),
        )
    file.close()
    done = parley("doctor", "curator", "--json", *HUB)
    assert (done.code, done.json["warnings"]) == (0, 1)
    assert "'regional' waits for the answer of east" in findings(done)["waiting"]["words"]
    with serving(settings):
        assert parley("doctor", "curator", "--monitor", *HUB).code == 7
