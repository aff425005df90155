"""`parley restore`: a backup back in its place, where there is no state that can be read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.service.backup import About, read_about
from common.service.process import stamp, system_clock
from curator import operations
from curator.app import curator_settings
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson, Config
from party import backup as party_backup
from party.app import party_settings

app = new_app()

_LEDGER = (
    "This ledger has forgotten what was charged since {at}. Studies that were running then are "
    "charged in full and end. Of studies that began later it knows nothing: the node asks the "
    "curator at its first call, and stops if there are any. `parley doctor party` asks now."
)
_CURATOR = (
    "This curator has forgotten what happened since {at}. Studies that were running then end when "
    "it is started; what they cost stays charged."
)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="The file that `parley backup` wrote.")],
    *,
    config: Config = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: AsJson = False,
) -> None:
    """Restore a service's state from a backup, where its state is lost or damaged.

    Refused while the service runs, and where there is a state that can be read: a ledger never goes
    backwards. A damaged state file is kept beside the restored one. To move a service to another
    machine, stop it and move its folder instead.
    """
    about = read_about(file)
    console.warn((_CURATOR if about.role == "curator" else _LEDGER).format(at=about.taken_at))
    if not yes and not typer.confirm("Restore it?", err=True):
        raise InputError("not confirmed; nothing was restored")
    ended = _restored(file, about, config)
    told = {"restored": about.taken_at, "head": about.head, "ended": ended}
    lines = [f"restored  the {about.role}'s state of {about.taken_at}"]
    lines += [f"ends      study {name!r}, which was running" for name in ended]
    console.show(told, *lines, as_json=json)


def _restored(file: Path, about: About, config: Path | None) -> Sequence[str]:
    at = stamp(system_clock())
    if about.role == "curator":
        settings = curator_settings(config, os.environ).values
        return [each.name for each in operations.restore(settings, file, about, at=at)]
    own = party_settings(config, os.environ).values
    return [each.name for each in party_backup.restore(own, file, about, at=at)]
