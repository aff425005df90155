"""`parley doctor`: is a service ready for a study?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.schema import Schema
from common.service.checks import Finding
from common.service.process import system_clock
from common.study.document import Study
from common.wire.pki.certificates import Role
from curator.app import curator_settings
from curator.checks import examine_curator
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.exit_codes import ExitCode
from parley.cli.options import AsJson, Config
from parley.cli.passphrases import passphrase_in
from party.app import party_settings, source_settings
from party.checks import examine_party

app = new_app()


@app.command()
def doctor(
    role: Annotated[Role, typer.Argument(help="Which service.")],
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
            _print(finding)
    ready = all(finding.ok for finding in found)
    if json:
        checks = [
            {"check": f.check, "ok": f.ok, "warning": f.warning, "words": f.words} for f in found
        ]
        warnings = sum(finding.warning for finding in found)
        console.result_json({"ready": ready, "warnings": warnings, "checks": checks})
    if not ready:
        raise typer.Exit(ExitCode.INPUT)
    if monitor and any(finding.warning for finding in found):
        raise typer.Exit(ExitCode.WARNED)


def _print(finding: Finding) -> None:
    word = "warn" if finding.warning else "ok" if finding.ok else "FAIL"
    console.result(f"{word:<5} {finding.check:<12} {finding.words}")
    sys.stdout.flush()


def _wanted(study: Path | None, schema: Path | None) -> Study | Schema | None:
    if study is not None and schema is not None:
        raise InputError("give --study or --schema, not both")
    if study is not None:
        return Study.load(study)
    return None if schema is None else Schema.load(schema)
