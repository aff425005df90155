"""Ctrl-C and SIGTERM end a command in one line and exit code 130, whenever they come."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from parley.cli.exit_codes import ExitCode
from tests.harness.deployed_folder import HUB, NORTH

ROOT = Path(__file__).resolve().parents[4]
LINE = "error: the command was interrupted, and nothing was left half-written\n"
# As in a terminal: a background job inherits a SIGINT that is ignored.
TERMINAL = "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
AT_AN_IMPORT = """
class Interrupting:
    module, number = sys.argv[1:3]
    def find_spec(self, name, path=None, target=None):
        if name == self.module:
            os.kill(os.getpid(), int(self.number))
sys.meta_path.insert(0, Interrupting())
"""
COMMAND = """
import runpy
sys.argv[1:3] = []
runpy.run_module("parley", run_name="__main__")
"""


def python(program, *words, folder=ROOT):
    return subprocess.run(
        [sys.executable, "-c", TERMINAL + program, *map(str, words)], cwd=folder, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "number", "command"),
    [
        ("typer", signal.SIGINT, ["--help"]),
        ("common.wording", signal.SIGTERM, ["--version"]),
        ("parley.cli.commands.party", signal.SIGINT, ["party", "status", *NORTH]),
        ("numpy", signal.SIGTERM, ["party", "join", *NORTH]),
        ("grpc", signal.SIGINT, ["doctor", "curator", *HUB]),
    ],
)
def test_a_signal_during_an_import_is_one_line(module, number, command, tmp_path):
    done = python(AT_AN_IMPORT + COMMAND, module, int(number), *command, folder=tmp_path)
    assert (done.returncode, done.stderr) == (ExitCode.INTERRUPTED, LINE)
    assert done.stdout == ""


def test_a_signal_after_the_end_changes_nothing():
    at_the_end = "import atexit; atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
    done = python(at_the_end + COMMAND, "", "", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("parley ")


def test_an_import_of_a_running_command_is_finished_first(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nwhole = True\n"
    )
    done = python(
        "from parley.cli import interrupts\n"
        "interrupts.take_over()\n"
        "interrupts.let_clean_up()\n"
        "try:\n"
        "    import slow\n"
        "    signal.pause()\n"
        "except KeyboardInterrupt:\n"
        "    print(slow.whole)\n",
        folder=tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_signal_that_a_destructor_swallows_comes_again():
    done = python(
        "from parley.cli import interrupts\n"
        "interrupts.take_over()\n"
        "interrupts.let_clean_up()\n"
        "class Swallowing:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "try:\n"
        "    Swallowing()\n"
        "    signal.pause()\n"
        "except KeyboardInterrupt:\n"
        "    print('cleaned up')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "cleaned up\n", "")


def test_a_signal_that_is_ignored_stays_ignored():
    done = python(
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from parley.cli import interrupts\n"
        "interrupts.take_over()\n"
        "interrupts.let_clean_up()\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "print('still here')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "still here\n", "")


def catches_sigterm(process):
    """Whether our first handler is there; until then the interpreter itself is starting."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", [["--help"], ["party", "status"], ["keys", "show"], ["doctor"]])
def test_a_signal_at_any_moment_is_one_line_or_too_late(command, number, tmp_path):
    moments = random.Random(f"{command} {number}")  # noqa: S311  # the same in every run
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, "-c", TERMINAL + COMMAND, "", "", *command], cwd=tmp_path, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        while not catches_sigterm(process) and process.poll() is None:
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 1.5))
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        assert "Traceback" not in said
        assert "Exception ignored" not in said
        if process.returncode == ExitCode.INTERRUPTED:
            assert said == LINE
        else:
            assert process.returncode in (ExitCode.DONE, ExitCode.USAGE, ExitCode.INPUT)
