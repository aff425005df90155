"""The habits of the shell: exit codes, help, quick starts, no stack trace for a mistake."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from common.errors import InputError, LocalError, ParleyError, PolicyError, RemoteProtocolError
from common.methods.registry import methods
from common.study.document import DEFAULT_METHOD
from parley.cli import main as cli
from parley.cli.exit_codes import MEANINGS, ExitCode, exit_code_of

ROOT = Path(__file__).resolve().parents[4]


def in_a_shell(*words, cwd=ROOT):
    program = "from parley.__main__ import run; run()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        capture_output=True, text=True, cwd=cwd, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_help_names_every_command_and_the_exit_codes(parley):
    done = parley("--help")
    assert done.code == 0
    assert all(name in done.out and line[:30] in done.out for name, (_, line) in
               cli.COMMANDS.items())  # fmt: skip
    assert all(f"{code:<4} {words}" in done.out for code, words in MEANINGS.items())
    assert all(f"  {example}\n" in done.out for example in cli.EXAMPLES)


def test_every_heading_names_commands_that_exist():
    assert {name for names in cli.HEADINGS.values() for name in names} <= set(cli.COMMANDS)
    listed = [name for names in cli.by_heading().values() for name in names]
    assert sorted(listed) == sorted(cli.COMMANDS)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(parley, name):
    done = parley(name, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: parley {name}")


@pytest.mark.parametrize("command", [("simulate",), ("curator", "study", "new"), ("demo",)])
def test_help_says_in_a_line_what_each_method_is(parley, command):
    lines = [line.replace("--method <str>", "").strip() for line in
             parley(*command, "--help").out.splitlines()]  # fmt: skip
    for name, words in ((m.name, m.summary) for m in methods().values()):
        marked = f"{name} (default)" if name == DEFAULT_METHOD else name
        assert f"{marked}: {words}" in lines


def test_help_loads_none_of_the_heavy_libraries():
    program = (
        "import sys; from parley.cli.main import main; main(['--help']);"
        "sys.exit(bool({'pandas', 'numpy', 'pyarrow', 'numba', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT)
    assert done.returncode == 0


def test_an_unknown_command_is_a_usage_error_with_a_suggestion(parley):
    done = parley("evalate")
    assert done.code == 2
    assert "evaluate" in done.err
    assert done.out == ""


def test_a_missing_option_is_a_usage_error(parley):
    assert parley("evaluate", "a.csv", "b.csv").code == 2


def test_version_is_printed(parley):
    assert parley("--version").out.startswith("parley ")


COMPLETE = """
eval "$(parley --show-completion bash)"
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_parley_completion parley
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("parley eval", ["evaluate"]),
        ("parley curator study st", ["status"]),
        ("parley keys init --ho", ["--host"]),
        ("parley synthesize --method priv", ["privbayes", "privelet"]),
    ],
)
def test_bash_completes_commands_options_and_values(typed, offered, shell):
    done = shell(COMPLETE.format(words=typed))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == offered


def test_a_reader_that_goes_away_is_no_defect(shell, small):
    small()
    done = shell("parley schema check schema.toml | true; echo ${PIPESTATUS[0]}")
    assert done.stderr == ""
    assert done.stdout.split() in (["0"], ["141"])  # by who is quicker


def test_a_result_that_does_not_fit_on_the_disk_is_an_error(shell, small):
    small()
    done = shell("parley schema check schema.toml > /dev/full")
    assert done.returncode == ExitCode.INPUT
    assert done.stderr == "error: cannot write the result: No space left on device\n"


def test_the_end_of_input_at_a_question_is_an_interrupt(parley, monkeypatch):
    def asked(*_, **__):
        raise typer.Abort

    monkeypatch.setattr("common.schema.Schema.load", asked)
    assert parley("schema", "check", "schema.toml").code == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError, 3), (LocalError, 3), (PolicyError, 4), (RemoteProtocolError, 5)],
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
    assert set(MEANINGS) == set(ExitCode)


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


def test_a_mistake_in_a_real_shell_has_no_stack_trace(tmp_path):
    done = in_a_shell("schema", "check", tmp_path / "nowhere.toml")
    assert done.returncode == 3
    assert "nowhere.toml" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_what_a_command_does_not_need_is_not_loaded(shell):
    """Each of these costs a quarter of a second of every start."""
    slow = ("pandas", "sklearn", "numba", "adbc_driver_manager", "pyspark")
    commands = ("curator", "party", "verify", "bundle", "keys")
    load = (
        f"import sys, parley.cli.main; [parley.cli.main.load_command(name) for name in {commands}]"
    )
    code = f"{load}; print([m for m in {slow} if m in sys.modules])"
    done = shell(shlex.join([sys.executable, "-c", code]))
    assert (done.stdout, done.stderr) == ("[]\n", "")
