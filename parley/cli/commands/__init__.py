"""The subcommands of `parley`, one module each: they parse, call one function, and print.

Every module has an `app`, made by `new_app`. Options that several commands share are in `options`.
"""

from __future__ import annotations

import typer


def new_app(words: str | None = None) -> typer.Typer:
    """Make an app for a subcommand: plain help texts, and errors left to `parley.cli.main`."""
    return typer.Typer(
        help=words,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
