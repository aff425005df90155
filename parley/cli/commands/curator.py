"""`parley curator`: run a consortium's coordinator; see how studies are getting on, and end them.

`curator_proposal` has the commands that write a study and offer it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from common.files import replace
from common.release.folder import cautions_of
from common.service.process import log_to, software, stamp, system_clock
from common.service.reloading import reloading
from common.wording import moment
from curator import app as curator_app
from curator.operations import abort as ask_to_abort
from curator.operations import (
    declare_missing,
    declared,
    find_record,
    last_calls,
)
from curator.settings import CuratorSettings, curator_settings, open_store
from curator.store.records import Record
from curator.waiting import approvals_in_words, how_long, in_words, waited
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.curator_proposal import add, new, reform, rehearse, renew
from parley.cli.options import Config, KnownStudy, LogLevel, Metrics, OutputFormat, StopWithStdin
from parley.cli.result import Result, command, listed

app = new_app("Run the coordinator of a consortium, and put studies in front of its parties.")


@app.command()
def serve(
    *,
    config: Config = None,
    folder: Annotated[Path | None, typer.Option(help="Where the state is kept.")] = None,
    keys: Annotated[
        Path | None, typer.Option(help="The folder that `parley keys init` made.")
    ] = None,
    releases: Annotated[Path | None, typer.Option(help="Where finished releases go.")] = None,
    listen: Annotated[
        str | None, typer.Option(help="Address and port; port 0 takes a free one.")
    ] = None,
    metrics: Metrics = None,
    dashboard: Annotated[
        bool | None, typer.Option(help="Serve a page for the operator, too.")
    ] = None,
    dashboard_listen: Annotated[
        str | None,
        typer.Option(
            help="The dashboard's address and port; TLS unless it is loopback. [127.0.0.1:7444]"
        ),
    ] = None,
    log_level: LogLevel = None,
    format: OutputFormat = "csv",  # noqa: A002
    port_file: Annotated[
        Path | None, typer.Option(help="Write the port here when calls are taken.")
    ] = None,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the calls under way. Logs are JSON on stderr.

    State survives a crash at any moment: start it again and the studies go on. One curator runs on
    a folder at a time. SIGHUP reads the settings again.
    """
    flags = {
        "folder": folder, "keys": keys, "releases": releases, "listen": listen,
        "metrics": metrics, "log_level": log_level, "dashboard": dashboard,
        "dashboard_listen": dashboard_listen,
    }  # fmt: skip

    def started(port: int) -> None:
        if port_file is not None:
            replace(port_file, f"{port}\n".encode())

    def read() -> CuratorSettings:
        return curator_settings(config, os.environ, flags).values

    with reloading(read, with_stdin=stop_with_stdin) as rounds:
        for settings, stopping in rounds:
            log_to(level=settings.log_level)
            curator_app.serve_and_publish(
                settings,
                file_format=format,
                stopping=stopping,
                clock=system_clock,
                software=software(),
                started=started,
            )


_ABORT_S = 5.0  # how long a running curator may take to end a study

study_app = new_app("Write a study down, offer it, see how it is getting on, end it.")
app.add_typer(study_app, name="study")
for function in (new, add, reform, renew, rehearse):
    command(study_app)(function)


def _standing(record: Record, lines: Iterable[str] | None = None, **more: object) -> Result:
    """Return where a study stands, and what else is known about it."""
    form = {
        "study": record.study, "name": record.name, "state": record.state,
        "steps_done": record.step, "phase": record.phase, "cause": record.cause,
        "unreadable": record.unreadable, "release": record.place,
        "abort_asked": record.abort_asked, "proposed_at": record.proposed_at,
    }  # fmt: skip
    return Result(form | more, [f"state    {_words(record)}"] if lines is None else lines)


def _words(record: Record) -> str:
    if record.unreadable:
        return f"{record.state.value}, unreadable"
    return f"{record.state.value}, {record.phase}" if record.phase else record.state.value


@command(study_app, "list")
def list_studies(*, config: Config = None) -> Result:
    """List every study of this curator, oldest first, with its state."""
    with open_store(curator_settings(config, os.environ).values) as store:
        return listed(
            _standing(record, [f"{record.study.hex()[:16]}  {_words(record):<24} {record.name}"])
            for record in store.records()
        )


@command(study_app)
def status(study: KnownStudy, *, config: Config = None) -> Result:
    """Show how a study is getting on, and whom it waits for."""
    settings = curator_settings(config, os.environ).values
    now = system_clock()
    with open_store(settings) as store:
        record = find_record(store, study)
        waiting, waits = store.not_approved_by(record), store.awaited(record.study)
        progress: dict[str, Any] = {
            "not_approved_by": waiting,
            "last_calls": last_calls(store, record),
            "phases": store.traffic.phases(record.study),
            "waiting_for": waits,
            "overdue": any(waited(wait.since, now) > settings.step_deadline for wait in waits),
            "missing": declared(store, record.study),
            "approve_by": store.study(record.study).expires if waiting else None,
        }
    return _standing(record, _progress_lines(record, progress), **progress)


def _progress_lines(record: Record, progress: Mapping[str, Any]) -> Iterator[str]:
    now = system_clock()
    yield f"study    {record.name}"
    yield f"digest   {record.study.hex()}"
    yield f"state    {_words(record)}"
    if waiting := progress["not_approved_by"]:
        since = record.proposed_at
        words = approvals_in_words(waiting, since=since, until=progress["approve_by"])
        yield f"waits for {words} ({how_long(waited(since, now))})"
    for party, why in progress["missing"].items():
        yield f"missing  {party}: {why or 'declared missing'}"
    if waits := progress["waiting_for"]:
        longest = max(waited(wait.since, now) for wait in waits)
        yield f"waits for {in_words(waits, step=record.step)} ({how_long(longest)})"
    if progress["overdue"]:
        yield (
            "overdue  ask the owners it waits for whether their nodes run; if one does not "
            "come back, `study abort`, then `study reform --without OWNER`"
        )
    for party, at in progress["last_calls"].items():  # a node that runs calls every few seconds
        yield f"party    {party}: {f'last called {moment(at)}' if at else 'has not called yet'}"
    if record.abort_asked and not record.state.over:
        yield f"to end   {record.abort_asked} (when the curator runs)"
    if record.cause:
        yield f"cause    {record.cause}"
    for phase, traffic in progress["phases"].items():
        yield f"phase    {phase}: {traffic.text()}"
    if record.place:
        yield f"release  {record.place}"
        for caution in cautions_of(Path(record.place)):
            yield f"caution  {caution}"


@command(study_app)
def abort(
    study: KnownStudy,
    *,
    reason: Annotated[str, typer.Option(help="Why; the parties read it.")],
    config: Config = None,
) -> Result:
    """End a study without a release. What it has cost the owners' rows so far stays charged.

    A running curator ends it as soon as it does not compute for it, and tells the parties; one that
    is not running does so when it is started.
    """
    with open_store(curator_settings(config, os.environ).values) as store:
        record, at = find_record(store, study), stamp(system_clock())
        record = ask_to_abort(store, record, reason, at=at, wait_s=_ABORT_S, sleep=time.sleep)
    if not record.state.over:
        console.warn("no curator runs on this state now, or it is busy: the study ends when it can")
    return _standing(record)


@command(study_app)
def missing(
    study: KnownStudy,
    owner: Annotated[str, typer.Argument(help="The owner that does not come back.")],
    *,
    config: Config = None,
) -> Result:
    """Declare an owner missing for good, if the study allows that; the study goes on without it.

    A study that has lost more owners than it allows (`may_miss`) ends. One that needs all of its
    owners is ended and re-formed instead: `study abort`, then `study reform --without OWNER`.
    """
    with open_store(curator_settings(config, os.environ).values) as store:
        record, at = find_record(store, study), stamp(system_clock())
        agreed = declare_missing(store, record, owner, at=at, wait_s=_ABORT_S, sleep=time.sleep)
        record = store.record(record.study)
    if not agreed:
        console.warn("no curator runs on this state now, or it is busy: it goes on when it can")
    lines = [f"missing  {owner}", f"state    {_words(record)}"]
    return _standing(record, lines, missing=owner, done=agreed)


@command(study_app)
def received(study: KnownStudy, *, config: Config = None) -> Result:
    """List the SHA-256 of every message that was received from each owner, in order.

    For an auditor, who compares it with what an owner's node says that it sent: `parley party
    audit --received FILE`. Digests stay when messages are wiped.
    """
    with open_store(curator_settings(config, os.environ).values) as store:
        record = find_record(store, study)
        members = store.members(record.study)
        digests = {party: store.inbox.digests(record.study, party) for party in members}
    lines = [
        f"{party} {number:>4}  {digest.hex()}"
        for party, messages in digests.items()
        for number, digest in enumerate(messages, start=1)
    ]
    return Result({"study": record.study, "parties": digests}, lines)
