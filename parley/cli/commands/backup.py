"""`parley backup`: the state of a service in one file, taken while it runs."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.service.process import software, stamp, system_clock
from common.wire.pki.certificates import Role
from curator import operations
from curator.app import curator_settings
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson, Config
from party import backup as party_backup
from party.app import party_settings

app = new_app()


@app.command()
def backup(
    role: Annotated[Role, typer.Argument(help="Which service.")],
    *,
    out: Annotated[Path, typer.Option(help="The file to write; nothing is overwritten.")],
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Copy a service's state into one file, consistently, while the service runs.

    The copy is checked for damage; a party's ledger is verified. It holds keys of running studies:
    the file is readable by you only; keep it encrypted. The keys folder is not in it, nor are
    releases.
    """
    at = stamp(system_clock())
    if role is Role.CURATOR:
        settings = curator_settings(config, os.environ).values
        about = operations.back_up(settings, out, at=at, software=software())
    else:
        own = party_settings(config, os.environ).values
        about = party_backup.back_up(own, out, at=at, software=software())
    lines = [f"backup  {out}, {out.stat().st_size:,} bytes, of {about.taken_at}"]
    lines += [f"head    {about.head}"] if about.head else []
    console.show({"file": str(out)} | asdict(about), *lines, as_json=json)
