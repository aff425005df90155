"""The `parley` command: thin subcommands, documented exit codes, no stack trace for a mistake.

Exit codes: 0 done; 1 a defect of ours (with a stack trace); 2 the command line was not understood;
3 the input cannot be used; 4 refused by a budget or a policy; 5 a peer broke the protocol;
130 interrupted.

A subcommand is one line of `COMMANDS` and one module with an `app`. Only the module of the command
that was asked for is imported, so `parley --help` and completion are quick.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from common.errors import LocalError, ParleyError, PolicyError, RemoteProtocolError
from parley import console

COMMANDS: dict[str, tuple[str, str]] = {  # name: (module with an `app`, one line of help)
    "schema": ("parley.commands.schema", "Propose a schema from a table, or check one."),
    "synthesize": ("parley.commands.synthesize", "Publish a synthetic table of one owner's rows."),
    "query": ("parley.commands.query", "Ask a release how many rows satisfy a condition."),
    "plan": ("parley.commands.plan", "What a study would measure, cost and take, forecast."),
    "simulate": ("parley.commands.simulate", "A study of several owners on one machine."),
    "evaluate": ("parley.commands.evaluate", "Compare a synthetic table with the real one."),
    "verify": ("parley.commands.verify", "Is a release what its makers signed?"),
    "bundle": ("parley.commands.bundle", "A release folder in one .zip."),
    "curator": ("parley.commands.curator", "Run a consortium's coordinator; offer studies."),
    "party": ("parley.commands.party", "Run an owner's node; review and approve studies."),
    "keys": ("parley.commands.keys", "Keys and certificates of a consortium."),
    "doctor": ("parley.commands.doctor", "Is a service ready for a study?"),
    "config": ("parley.commands.config", "The settings of a service, and where each came from."),
    "demo": ("parley.commands.demo", "A whole consortium on this machine, on made-up people."),
}

EXIT_CODES: tuple[tuple[type[ParleyError], int], ...] = (
    (PolicyError, 4),
    (RemoteProtocolError, 5),
    (LocalError, 3),
)
INTERRUPTED = 130


class LazyGroup(TyperGroup):
    """The commands of `COMMANDS`: listed from the table, imported when run."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401  (typer's own settings)
        super().__init__(**settings)
        for name, (_, line) in COMMANDS.items():
            self.add_command(TyperCommand(name=name, short_help=line))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401  (typer has no public Context)
        """In the order of the table: the order in which a newcomer meets them."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401
        """The command itself in place of its line of help."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_command(name), rest


def load_command(name: str) -> Any:  # noqa: ANN401  (typer's command class is not public)
    """The command (or group of commands) behind one line of the table."""
    module, line = COMMANDS[name]
    command = get_command(import_module(module).app)
    command.name = name
    command.short_help = line
    return command


app = typer.Typer(
    name="parley",
    cls=LazyGroup,
    epilog="Exit codes: 0 done, 1 a defect of parley, 2 command line not understood, 3 input that "
    "cannot be used, 4 refused by a budget or a policy, 5 a peer broke the protocol, "
    "130 interrupted. `parley COMMAND --help` explains a command.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001  (the shape typer calls)
    if wanted:
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
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    """K data owners publish ONE synthetic table under differential privacy, without showing rows.

    Results go to standard output, everything else to standard error. A release is a folder; it is
    written whole or not at all.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    command = get_command(app)
    try:
        # In this mode typer prints usage errors itself and says by SystemExit how it went.
        command.main(args=None if arguments is None else list(arguments), prog_name="parley")
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if code == INTERRUPTED:
            console.fail("interrupted; nothing was left half-written")
        return code
    except ParleyError as error:
        console.fail(str(error))
        return next(code for family, code in EXIT_CODES if isinstance(error, family))
    return 0


def run() -> None:
    """The console script's entry point; a polite kill cleans up as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
