"""Settings are read again on SIGHUP, and a service goes on with the ones that are right."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from common.errors import InputError
from common.files import replace
from common.service.reloading import Rounds, reloading

ROOT = Path(__file__).resolve().parents[3]


class OnDisk:
    """Settings that a test changes."""

    def __init__(self, *values):
        self.values = list(values)

    def read(self):
        value = self.values.pop(0)
        if isinstance(value, Exception):
            raise value
        return value


def test_a_round_that_ends_by_itself_is_the_last():
    assert [settings for settings, _ in Rounds(OnDisk("a").read)] == ["a"]


def test_other_settings_end_the_round_and_begin_the_next():
    rounds, seen = Rounds(OnDisk("a", "b", "b", "c").read), []
    for settings, over in rounds:
        assert not over.is_set()
        seen.append(settings)
        if settings != "c":
            while not over.is_set():
                rounds.read_again()
    assert seen == ["a", "b", "c"]


def test_settings_as_they_were_and_broken_settings_change_nothing(caplog):
    rounds = Rounds(OnDisk("a", "a", InputError("party.toml: no such key")).read)
    ((_, over),) = [next(iter(rounds))]
    rounds.read_again()
    rounds.read_again()
    assert not over.is_set()
    assert "party.toml: no such key" in caplog.text


def test_no_round_begins_after_the_stop():
    rounds = Rounds(OnDisk("a", "b").read)
    for _, over in rounds:
        rounds.stop()
        rounds.read_again()
        assert over.is_set()


def test_settings_that_cannot_be_read_at_the_start_are_an_error():
    with pytest.raises(InputError, match="broken"), reloading(OnDisk(InputError("broken")).read):
        pass


PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from common.service.reloading import reloading
with reloading(lambda: json.loads(Path(sys.argv[1]).read_text())) as rounds:
    for settings, stopping in rounds:
        print(settings, flush=True)
        assert stopping.wait(30)
print("over", flush=True)
"""


def test_a_hang_up_reads_the_settings_again_and_a_termination_ends_the_service(tmp_path):
    file = tmp_path / "settings.json"
    file.write_text("1")
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, file], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout.readline() == "1\n"
        child.send_signal(signal.SIGHUP)
        replace(file, b"2")  # whole: the first signal may be reading
        child.send_signal(signal.SIGHUP)
        assert child.stdout.readline() == "2\n"
        child.send_signal(signal.SIGTERM)
        assert child.stdout.readline() == "over\n"
        assert child.wait(timeout=30) == 0


def test_the_threads_end_with_the_block():
    before = threading.active_count()
    with reloading(OnDisk("a").read) as rounds:
        for _ in rounds:
            os.kill(os.getpid(), signal.SIGTERM)
    assert threading.active_count() == before
