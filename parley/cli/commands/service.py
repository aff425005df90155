"""`parley doctor`, `config`, `backup` and `restore`: what the operator of a service asks for."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.schema import Schema
from common.service.backup import read_about
from common.service.process import software, stamp, system_clock
from common.study.document import Study
from common.wire.pki.certificates import Role
from curator import operations
from curator.checks import examine_curator
from curator.settings import curator_settings
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.exit_codes import ExitCode
from parley.cli.options import AsJson, Config, Yes, passphrase_in
from party import backup as party_backup
from party.checks import examine_party
from party.settings import party_settings, source_settings

app = new_app()
config_app = new_app(
    "The settings of a service: defaults, then a file, then the environment, then flags."
)
app.add_typer(config_app, name="config")

Service = Annotated[Role, typer.Argument(help="Which service.")]
_FORGOTTEN = {
    Role.PARTY: "This ledger has forgotten what was charged since {at}. Studies that were running "
    "then are charged in full and end. Of studies that began later it knows nothing: the node asks "
    "the curator at its first call, and stops if there are any. `parley doctor party` asks now.",
    Role.CURATOR: "This curator has forgotten what happened since {at}. Studies that were running "
    "then end when it is started; what they cost stays charged.",
}


@app.command()
def doctor(
    role: Service,
    *,
    config: Config = None,
    study: Annotated[
        Path | None,
        typer.Option(help="A study.toml: does it list us, and are our rows of its schema?"),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="A schema.toml: are our rows of it?")] = None,
    monitor: Annotated[
        bool,
        typer.Option(
            "--monitor", help="For monitoring: the service must run, and a warning exits with 7."
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Check everything that can stop a study, before it does. A line per check.

    Works beside a running service. Exit code 0: ready, though lines with `warn` are worth a look.
    3: something is wrong, and its line says what to do. 7, with --monitor only: nothing is wrong,
    and something is worth a look.
    """
    wanted = _wanted(study, schema)
    if role is Role.CURATOR:
        findings = examine_curator(
            curator_settings(config, os.environ).values, clock=system_clock, monitored=monitor
        )
    else:
        settings = party_settings(config, os.environ)
        findings = examine_party(
            settings.values,
            lambda: source_settings(settings, config, os.environ),
            wanted,
            environment=os.environ,
            clock=system_clock,
            passphrase=passphrase_in(settings.values.passphrase_file),
            monitored=monitor,
        )
    found = []
    for finding in findings:  # a line at a time: the last ones may wait for a network
        found.append(finding)
        if not json:
            word = "warn" if finding.warning else "ok" if finding.ok else "FAIL"
            console.result(f"{word:<5} {finding.check:<12} {finding.words}")
            sys.stdout.flush()
    ready, warnings = all(each.ok for each in found), sum(each.warning for each in found)
    if json:
        checks = [
            {"check": f.check, "ok": f.ok, "warning": f.warning, "words": f.words} for f in found
        ]
        console.result_json({"ready": ready, "warnings": warnings, "checks": checks})
    if not ready:
        raise typer.Exit(ExitCode.INPUT)
    if monitor and warnings:
        raise typer.Exit(ExitCode.WARNED)


def _wanted(study: Path | None, schema: Path | None) -> Study | Schema | None:
    if study is not None and schema is not None:
        raise InputError("give --study or --schema, not both")
    if study is not None:
        return Study.load(study)
    return None if schema is None else Schema.load(schema)


@config_app.callback()
def keep_show_a_word_of_its_own() -> None:
    """Keep `show` a word of its own although it is the only command."""


@config_app.command()
def show(role: Service, *, config: Config = None, json: AsJson = False) -> None:
    """Show every setting, its value, and where it came from. Secrets are not settings."""
    read = curator_settings if role is Role.CURATOR else party_settings
    found = read(config, os.environ)
    settings = {}
    for key, origin in found.origins.items():
        value = getattr(found.values, key)
        settings[key] = {"value": str(value) if isinstance(value, Path) else value, "from": origin}
    console.show(settings, *found.lines(), as_json=json)


@app.command()
def backup(
    role: Service,
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


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="The file that `parley backup` wrote.")],
    *,
    config: Config = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Restore a service's state from a backup, where its state is lost or damaged.

    Refused while the service runs, and where there is a state that can be read: a ledger never goes
    backwards. A damaged state file is kept beside the restored one. To move a service to another
    machine, stop it and move its folder instead.
    """
    about = read_about(file)
    role, at = Role(about.role), stamp(system_clock())
    console.warn(_FORGOTTEN[role].format(at=about.taken_at))
    if not yes and not typer.confirm("Restore it?", err=True):
        raise InputError("you did not confirm, so nothing was restored")
    if role is Role.CURATOR:
        settings = curator_settings(config, os.environ).values
        ended = [each.name for each in operations.restore(settings, file, about, at=at)]
    else:
        own = party_settings(config, os.environ).values
        ended = [each.name for each in party_backup.restore(own, file, about, at=at)]
    told = {"restored": about.taken_at, "head": about.head, "ended": ended}
    lines = [f"restored  the {about.role}'s state of {about.taken_at}"]
    lines += [f"ends      study {name!r}, which was running" for name in ended]
    console.show(told, *lines, as_json=json)
