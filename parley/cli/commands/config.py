"""`parley config`: the settings of a service, and where each came from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from common.wire.pki.certificates import Role
from curator.app import curator_settings
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson, Config
from party.app import party_settings

app = new_app("The settings of a service: defaults, then a file, then the environment, then flags.")


@app.callback()
def config() -> None:
    """A callback keeps `show` a word of its own although it is the only command."""


@app.command()
def show(
    role: Annotated[Role, typer.Argument(help="Which service.")],
    *,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Show every setting, its value, and where it came from. Secrets are not settings."""
    found = (
        curator_settings(config, os.environ)
        if role is Role.CURATOR
        else party_settings(config, os.environ)
    )
    settings = {
        key: {"value": _plain(getattr(found.values, key)), "from": origin}
        for key, origin in found.origins.items()
    }
    console.show(settings, *found.lines(), as_json=json)


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value
