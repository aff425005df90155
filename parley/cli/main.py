"""The `parley` command: thin subcommands, documented exit codes, no stack trace for a mistake.

A subcommand is one line of `COMMANDS` and one module with an `app`. Only the module of the command
that was asked for is imported, so `parley --help` is quick. docs/reference/cli.md is made from here
by `make docs`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from common.errors import ParleyError, naming_extras
from parley.cli import console, interrupts
from parley.cli.exit_codes import MEANINGS, ExitCode, exit_code_of

# Under their headings, in the order in which a newcomer meets them: a command and one line of help.
# It is in the `app` of the module of `parley.cli.commands` of its name, or of `_MODULES`.
COMMANDS: dict[str, dict[str, str]] = {
    "To see it work": {"demo": "Run a whole consortium on this machine, on simulated people."},
    "One owner": {
        "schema": "Propose a schema from a table, or check one.",
        "synthesize": "Publish a synthetic table of one owner's rows.",
        "evaluate": "Compare a synthetic table with the real one.",
        "attack": "See what a release gives away about your rows.",
    },
    "Several owners, on one machine": {
        "plan": "Forecast the accuracy, cost and duration of a study.",
        "simulate": "Run a study of several owners on one machine.",
        "methods": "List the methods of studies, and the settings of each.",
    },
    "Several owners, each on their own": {
        "consortium": "Invite owners to a consortium, or join one.",
        "keys": "Create keys and certificates of a consortium.",
        "curator": "Run a consortium's coordinator; offer studies.",
        "party": "Run an owner's node; review and approve studies.",
        "doctor": "Check whether a service is ready for a study.",
        "config": "Show a service's settings, and where each came from.",
        "backup": "Copy a service's state into one file, while it runs.",
        "restore": "Put a backup in place of a lost state.",
    },
    "A release": {
        "verify": "Check that a release is what its makers signed.",
        "describe": "Show what a release is, and what it may be used for.",
        "answers": "Answer what a study declared, with intervals.",
        "query": "Count the rows of a release that satisfy a condition.",
        "draw": "Draw more synthetic rows, under a condition or not.",
        "estimate": "Estimate means, shares and regressions, with intervals.",
        "replicate": "Write tables like the released one, for any software.",
        "bundle": "Pack a release folder into one .zip.",
    },
}

# Commands that share a module with others are elsewhere than in the module of their name.
_MODULES = dict.fromkeys(("doctor", "config", "backup", "restore"), "service") | {
    "answers": "estimate",
    "attack": "evaluate",
    "methods": "plan",
    "query": "estimate",
    "replicate": "draw",
    "bundle": "verify",
}

EXAMPLES = (
    "parley demo",
    "parley schema infer people.csv --out schema.toml",
    "parley synthesize people.csv --schema schema.toml --epsilon 1 --out release",
    "parley simulate north.csv east.csv --schema schema.toml --epsilon 1 --out study",
    "parley query release 'age in 20..39 and sex = Female'",
    "parley draw release --where 'age in 20..39' --rows 1000 --out rows.csv",
    "parley verify release.zip",
    "parley describe release.zip",
    "parley estimate release.zip --mean income --by sex",
    "parley party review study.toml --config party.toml",
)


def _epilog() -> str:
    """Lines as they are: the mark in front keeps them from being joined into a paragraph."""
    examples = ["Examples:", *(f"  {line}" for line in EXAMPLES)]
    codes = ["Exit codes:", *(f"  {code:<4} {words}" for code, words in MEANINGS.items())]
    return "\n\n".join("\b\n" + "\n".join(lines) for lines in (examples, codes))


class LazyGroup(TyperGroup):
    """The commands of `COMMANDS`: listed from the table, imported when run."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401  (typer's own settings)
        super().__init__(**settings)
        for name, line in all_commands().items():
            self.add_command(TyperCommand(name=name, short_help=line))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401  (typer has no public Context)
        """Heading by heading."""
        return list(all_commands())

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write a section for every heading."""
        widest = max(map(len, all_commands()))
        for heading, lines in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), line) for name, line in lines.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401
        """Load the command in place of its line of help; from here on it may have to clean up."""
        name, _, rest = super().resolve_command(ctx, args)
        command = None if name is None else load_command(name)
        interrupts.let_clean_up()
        return name, command, rest


def all_commands() -> dict[str, str]:
    """Return every command and its line of help, heading by heading."""
    return {name: line for lines in COMMANDS.values() for name, line in lines.items()}


def load_command(name: str) -> Any:  # noqa: ANN401  (typer's command class is not public)
    """Load the command (or group of commands) behind one line of the table."""
    module = import_module(f"parley.cli.commands.{_MODULES.get(name, name)}")
    group = get_command(module.app)
    command: Any = getattr(group, "commands", {}).get(name, group)
    command.name = name
    command.short_help = all_commands()[name]
    return command


app = typer.Typer(
    name="parley",
    cls=LazyGroup,
    epilog=_epilog(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:  # noqa: FBT001  (the shape typer calls)
    if requested:
        from importlib import metadata  # slow to load

        try:
            version = metadata.version("parley")
        except metadata.PackageNotFoundError:
            version = "(run from a checkout that is not installed)"
        console.result(f"parley {version}")
        raise typer.Exit


@app.callback()
def parley(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """K data owners publish ONE synthetic table under differential privacy, without showing rows.

    Results go to standard output, everything else to standard error; with --json the result is for
    scripts. A release is a folder; it is written whole or not at all. `parley COMMAND --help`
    explains a command.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    command = get_command(app)
    try:
        # In this mode typer prints usage errors itself and says by SystemExit how it went.
        with naming_extras("this command"):
            command.main(args=None if arguments is None else list(arguments), prog_name="parley")
    except SystemExit as leaving:
        code = _code(leaving)
        if code == ExitCode.INTERRUPTED:
            console.fail(interrupts.WORDS)
        return code
    except ParleyError as error:
        console.fail(str(error))
        return exit_code_of(error)
    except MemoryError:
        console.fail(
            "there is not enough memory. Use fewer rows or attributes, or a smaller epsilon"
        )
        return ExitCode.INPUT
    return ExitCode.DONE


def _code(leaving: SystemExit) -> int:
    """Return the exit code, telling apart what typer gives one number."""
    if isinstance(leaving.__context__, typer.Abort):  # Ctrl-C or the end of input at a question
        return ExitCode.INTERRUPTED
    if isinstance(leaving.__context__, BrokenPipeError):
        return ExitCode.OUTPUT_CLOSED
    return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)


def run() -> None:
    """Run the command of this process's arguments, and end the process with its exit code."""
    # gRPC has a log of its own, which would stand between the JSON lines of ours; errors reach us.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        code = main()
        interrupts.leave_at_once()
    except KeyboardInterrupt:  # while it said how it went
        interrupts.leave_at_once()
        console.fail(interrupts.WORDS)
        code = ExitCode.INTERRUPTED
    sys.exit(_delivered(code))


def _delivered(code: int) -> int:
    """Return the exit code, once the result has reached its reader or is known not to."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = ExitCode.OUTPUT_CLOSED
    except OSError as error:
        console.fail(f"the result cannot be written: {error.strerror}")
        code = ExitCode.INPUT
    else:
        return code
    # What is left in the buffer would be tried again, and complained about, as Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
