"""Every family of errors has its exit code."""

import pytest

from common.errors import (
    InputError,
    LocalError,
    NotCountersignedError,
    ParleyError,
    PolicyError,
    RemoteProtocolError,
)
from parley.cli import main as cli
from parley.cli.exit_codes import ExitCode, exit_code_of


def test_help_names_every_command_and_the_exit_codes(parley):
    done = parley("--help")
    assert done.code == 0
    lines = cli.all_commands().items()
    assert all(name in done.out and line[:30] in done.out for name, line in lines)
    assert all(f"{code:<4} {code.words}" in done.out for code in ExitCode)
    assert all(f"  {example}\n" in done.out for example in cli.EXAMPLES)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError, 3),
        (LocalError, 3),
        (PolicyError, 4),
        (RemoteProtocolError, 5),
        (NotCountersignedError, 8),
    ],
)
def test_each_family_of_errors_has_its_exit_code(parley, monkeypatch, error, code):
    def refuse(*_, **__):
        raise error("the reason")

    monkeypatch.setattr("common.schema.Schema.load", refuse)
    done = parley("schema", "check", "schema.toml")
    assert done.code == code
    assert done.err == "error: the reason\n"


def test_every_family_of_errors_has_an_exit_code():
    for family in ParleyError.__subclasses__():
        assert exit_code_of(family("reason")) is not ExitCode.DEFECT


def test_an_interrupt_is_130(parley, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("common.schema.Schema.load", interrupt)
    done = parley("schema", "check", "schema.toml")
    assert done.code == 130
    assert "nothing was left half-written" in done.err


def test_a_defect_keeps_its_stack_trace(parley, monkeypatch):
    def break_down(*_, **__):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("common.schema.Schema.load", break_down)
    with pytest.raises(ZeroDivisionError):
        parley("schema", "check", "schema.toml")
