"""Progress is silent for short jobs, a line per stage in a log, and a bar on a terminal."""

import io

import pytest
from rich.console import Console

from parley.cli import console


def test_a_short_job_says_nothing(capsys):
    with console.progress("work") as tell:
        tell(0.5, "half")
    assert capsys.readouterr() == ("", "")


def test_a_long_job_says_each_stage_once_in_a_log(capsys, monkeypatch):
    monkeypatch.setattr(console, "_QUIET_S", -1.0)
    with console.progress("work") as tell:
        tell(0.1, "edges: 1 of 2")
        tell(0.2, "edges: 2 of 2")
        tell(0.9, "tables")
    assert capsys.readouterr().err == "work: edges: 1 of 2\nwork: tables\n"


@pytest.fixture
def terminal(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=80)
    monkeypatch.setattr(console, "_messages", lambda: terminal)
    return screen


def test_a_long_job_has_a_bar_on_a_terminal(terminal, monkeypatch):
    monkeypatch.setattr(console, "_QUIET_S", 0.0)
    with console.progress("work") as tell:
        tell(0.5, "half")
        while "work" not in terminal.getvalue():  # drawn by a thread of its own
            pass
    assert "half" in terminal.getvalue()


def test_a_short_job_has_no_bar_on_a_terminal(terminal, monkeypatch):
    monkeypatch.setattr(console, "_QUIET_S", 3600.0)
    with console.progress("work") as tell:
        tell(0.5, "half")
    assert "half" not in terminal.getvalue()


def test_a_bar_goes_away_when_the_job_fails(terminal, monkeypatch):
    monkeypatch.setattr(console, "_QUIET_S", 0.0)
    with pytest.raises(KeyError), console.progress("work"):
        raise KeyError


def test_options_are_called_as_the_command_line_calls_them(capsys):
    console.fail("r: it exists. Add overwrite=True, or leave key_bits=... out; a=b stays")
    assert capsys.readouterr().err == (
        "error: r: it exists. Add --overwrite, or leave --key-bits out; a=b stays\n"
    )
