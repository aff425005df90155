"""The habits of the shell: exit codes, help, quick starts, no stack trace for a mistake."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from common.methods.registry import methods
from common.study.document import DEFAULT_METHOD
from parley.cli import main as cli
from parley.cli.exit_codes import ExitCode

ROOT = Path(__file__).resolve().parents[4]


def in_a_shell(*words, cwd=ROOT):
    program = "from parley.__main__ import run; run()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        capture_output=True, text=True, cwd=cwd, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.parametrize("name", cli.all_commands())
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
        pytest.param("parley eval", ["evaluate"], marks=pytest.mark.slow),
        ("parley curator study st", ["status"]),
        pytest.param("parley keys init --ho", ["--host"], marks=pytest.mark.slow),
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
    assert done.stderr == "error: the result cannot be written: No space left on device\n"


def test_the_end_of_input_at_a_question_is_an_interrupt(parley, monkeypatch):
    def asked(*_, **__):
        raise typer.Abort

    monkeypatch.setattr("common.schema.Schema.load", asked)
    assert parley("schema", "check", "schema.toml").code == ExitCode.INTERRUPTED


def test_a_mistake_in_a_real_shell_has_no_stack_trace(tmp_path):
    done = in_a_shell("schema", "check", tmp_path / "nowhere.toml")
    assert done.returncode == 3
    assert "nowhere.toml" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_what_a_command_does_not_need_is_not_loaded(shell):
    """Each of these costs a quarter of a second of every start."""
    slow = ("pandas", "scipy", "sklearn", "numba", "adbc_driver_manager", "pyspark")
    commands = ("curator", "party", "verify", "bundle", "keys")
    load = (
        f"import sys, parley.cli.main; [parley.cli.main.load_command(name) for name in {commands}]"
    )
    code = f"{load}; print([m for m in {slow} if m in sys.modules])"
    done = shell(shlex.join([sys.executable, "-c", code]))
    assert (done.stdout, done.stderr) == ("[]\n", "")
