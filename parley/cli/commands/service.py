"""`parley doctor`, `config`, `backup` and `restore`: what the operator of a service asks for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.schema import Schema
from common.service.backup import read_about, refuse_readable
from common.service.checks import CheckResult
from common.service.process import software, stamp, system_clock
from common.study.document import Study
from common.wire.pki.certificates import Role
from curator import operations
from curator.checks import examine_curator
from curator.settings import curator_settings
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.exit_codes import ExitCode
from parley.cli.options import Config, Yes, passphrase_in
from parley.cli.result import Result, command
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


@command(app)
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
) -> Result:
    """Check everything that can stop a study, before it does. A line per check.

    Works beside a running service. Exit code 0: ready, though lines with `warn` are worth a look.
    3: something is wrong, and its line says what to do. 7, with --monitor only: nothing is wrong,
    and something is worth a look.
    """
    coming = _wanted(study, schema)
    if role is Role.CURATOR:
        findings = examine_curator(
            curator_settings(config, os.environ).values, clock=system_clock, monitored=monitor
        )
    else:
        settings = party_settings(config, os.environ)
        findings = examine_party(
            settings.values,
            lambda: source_settings(settings, config, os.environ),
            coming,
            environment=os.environ,
            clock=system_clock,
            passphrase=passphrase_in(settings.values.passphrase_file),
            monitored=monitor,
        )
    return _found(iter(findings), monitored=monitor)


def _found(findings: Iterator[CheckResult], *, monitored: bool) -> Result:
    """Return what checks find, a line at a time: the last ones may wait for a network."""
    results: list[CheckResult] = []

    def lines() -> Iterator[str]:
        for finding in findings:
            results.append(finding)
            word = "warn" if finding.warning else "ok" if finding.ok else "FAIL"
            yield f"{word:<5} {finding.check:<12} {finding.words}"
            sys.stdout.flush()

    def form() -> object:
        results.extend(findings)
        ready, warnings = all(f.ok for f in results), sum(f.warning for f in results)
        return {"ready": ready, "warnings": warnings, "checks": results}

    def require() -> None:
        if not all(finding.ok for finding in results):
            raise typer.Exit(ExitCode.INPUT)
        if monitored and any(finding.warning for finding in results):
            raise typer.Exit(ExitCode.WARNED)

    return Result(form, lines(), require=require)


def _wanted(study: Path | None, schema: Path | None) -> Study | Schema | None:
    if study is not None and schema is not None:
        raise InputError("give --study or --schema, not both")
    if study is not None:
        return Study.load(study)
    return None if schema is None else Schema.load(schema)


@config_app.callback()
def keep_show_a_word_of_its_own() -> None:
    """Keep `show` a word of its own although it is the only command."""


@command(config_app)
def show(role: Service, *, config: Config = None) -> Result:
    """Show every setting, its value, and where it came from. Secrets are not settings."""
    read = curator_settings if role is Role.CURATOR else party_settings
    settings = read(config, os.environ)
    form = {
        key: {"value": getattr(settings.values, key), "from": origin}
        for key, origin in settings.origins.items()
    }
    return Result(form, settings.lines())


@command(app)
def backup(
    role: Service,
    *,
    out: Annotated[Path, typer.Option(help="The file to write; nothing is overwritten.")],
    config: Config = None,
) -> Result:
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
        of_party = party_settings(config, os.environ).values
        about = party_backup.back_up(of_party, out, at=at, software=software())
    lines = [f"backup  {out}, {out.stat().st_size:,} bytes, of {about.taken_at}"]
    lines += [f"head    {about.head}"] if about.head else []
    return Result({"file": out, **asdict(about)}, lines)


@command(app)
def restore(
    file: Annotated[Path, typer.Argument(help="The file that `parley backup` wrote.")],
    *,
    config: Config = None,
    yes: Yes = False,
) -> Result:
    """Restore a service's state from a backup, where its state is lost or damaged.

    Refused while the service runs, and where there is a state that can be read: a ledger never goes
    backwards. A damaged state file is kept beside the restored one. To move a service to another
    machine, stop it and move its folder instead.
    """
    about = read_about(file)
    role, at = Role(about.role), stamp(system_clock())
    read = curator_settings if role is Role.CURATOR else party_settings
    refuse_readable(read(config, os.environ).values.folder / about.state)  # before it is asked
    console.warn(_FORGOTTEN[role].format(at=about.taken_at))
    if not yes and not typer.confirm("Restore it?", err=True):
        raise InputError("you did not confirm, so nothing was restored")
    if role is Role.CURATOR:
        settings = curator_settings(config, os.environ).values
        ended = [study.name for study in operations.restore(settings, file, about, at=at)]
    else:
        of_party = party_settings(config, os.environ).values
        ended = [study.name for study in party_backup.restore(of_party, file, about, at=at)]
    return Result(
        {"restored": about.taken_at, "head": about.head, "ended": ended},
        [
            f"restored  the {about.role}'s state of {about.taken_at}",
            *(f"ends      study {name!r}, which was running" for name in ended),
        ],
    )
