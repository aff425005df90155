"""`parley curator study`: see how studies are getting on, and end them.

`curator_proposal` has the commands that write a study and offer it.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.release.folder import cautions_of
from common.service.process import stamp, system_clock
from common.wording import moment
from curator.operations import abort as ask_to_abort
from curator.operations import (
    declare_missing,
    declared,
    find_record,
    last_calls,
)
from curator.settings import curator_settings, open_store
from curator.store.records import Record
from curator.waiting import approvals_in_words, how_long, in_words, waited
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.curator_proposal import add, new, reform, renew
from parley.cli.options import AsJson, Config, KnownStudy

_ABORT_S = 5.0  # how long a running curator may take to end a study

app = new_app("Write a study down, offer it, see how it is getting on, end it.")
for command in (new, add, reform, renew):
    app.command()(command)


@app.command(name="list")
def list_studies(*, config: Config = None, json: AsJson = False) -> None:
    """List every study of this curator, oldest first, with its state."""
    with open_store(curator_settings(config, os.environ).values) as store:
        known = store.records()
    lines = [f"{one.study.hex()[:16]}  {_standing(one):<24} {one.name}" for one in known]
    console.show([_as_json(record) for record in known], *lines, as_json=json)


@app.command()
def status(
    study: KnownStudy,
    *,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Show how a study is getting on, and whom it waits for."""
    settings = curator_settings(config, os.environ).values
    with open_store(settings) as store:
        record = find_record(store, study)
        waiting = store.not_approved_by(record)
        phases = store.traffic.phases(record.study)
        calls = last_calls(store, record)
        waits = store.awaited(record.study)
        gone = declared(store, record.study)
        until = store.study(record.study).expires if waiting else None
    late = any(waited(each.since, system_clock()) > settings.step_deadline for each in waits)
    if json:
        took = {phase: traffic.as_json() for phase, traffic in phases.items()}
        told = {
            "not_approved_by": list(waiting), "last_calls": calls, "phases": took,
            "waiting_for": [asdict(each) for each in waits], "overdue": late, "missing": gone,
            "approve_by": None if until is None else until.isoformat(),
        }  # fmt: skip
        console.result_json(_as_json(record) | told)
        return
    console.result(f"study    {record.name}")
    console.result(f"digest   {record.study.hex()}")
    console.result(f"state    {_standing(record)}")
    if waiting:
        words = approvals_in_words(waiting, since=record.proposed_at, until=until)
        console.result(
            f"waits for {words} ({how_long(waited(record.proposed_at, system_clock()))})"
        )
    for party, why in gone.items():
        console.result(f"missing  {party}: {why or 'declared missing'}")
    if waits:
        longest = max(waited(each.since, system_clock()) for each in waits)
        console.result(f"waits for {in_words(waits, step=record.step)} ({how_long(longest)})")
    if late:
        console.result(
            "overdue  ask the owners it waits for whether their nodes run; if one does not come "
            "back, `study abort`, then `study reform --without OWNER`"
        )
    for party, at in calls.items():  # a node that runs calls every few seconds
        console.result(f"party    {party}: {_called(at)}")
    if record.abort_asked and not record.state.over:
        console.result(f"to end   {record.abort_asked} (when the curator runs)")
    if record.cause:
        console.result(f"cause    {record.cause}")
    for phase, traffic in phases.items():
        console.result(f"phase    {phase}: {traffic.text()}")
    if record.place:
        console.result(f"release  {record.place}")
        for caution in cautions_of(Path(record.place)):
            console.result(f"caution  {caution}")


@app.command()
def abort(
    study: KnownStudy,
    *,
    reason: Annotated[str, typer.Option(help="Why; the parties read it.")],
    config: Config = None,
    json: AsJson = False,
) -> None:
    """End a study without a release. What it has cost the owners' rows so far stays charged.

    A running curator ends it as soon as it does not compute for it, and tells the parties; one that
    is not running does so when it is started.
    """
    with open_store(curator_settings(config, os.environ).values) as store:
        record, at = find_record(store, study), stamp(system_clock())
        record = ask_to_abort(store, record, reason, at=at, wait_s=_ABORT_S, sleep=time.sleep)
    if not record.state.over:
        console.warn("no curator runs on this state now, or it is busy: the study ends when it can")
    console.show(_as_json(record), f"state    {_standing(record)}", as_json=json)


@app.command()
def missing(
    study: KnownStudy,
    owner: Annotated[str, typer.Argument(help="The owner that does not come back.")],
    *,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Declare an owner missing for good, if the study allows that; the study goes on without it.

    A study that has lost more owners than it allows (`may_miss`) ends. One that needs all of its
    owners is ended and re-formed instead: `study abort`, then `study reform --without OWNER`.
    """
    with open_store(curator_settings(config, os.environ).values) as store:
        record, at = find_record(store, study), stamp(system_clock())
        done = declare_missing(store, record, owner, at=at, wait_s=_ABORT_S, sleep=time.sleep)
        record = store.record(record.study)
    if not done:
        console.warn("no curator runs on this state now, or it is busy: it goes on when it can")
    told = _as_json(record) | {"missing": owner, "done": done}
    console.show(told, f"missing  {owner}", f"state    {_standing(record)}", as_json=json)


@app.command()
def received(study: KnownStudy, *, config: Config = None, json: AsJson = False) -> None:
    """List the SHA-256 of every message that was received from each owner, in order.

    For an auditor, who compares it with what an owner's node says that it sent: `parley party
    audit --received FILE`. Digests stay when messages are wiped.
    """
    with open_store(curator_settings(config, os.environ).values) as store:
        record = find_record(store, study)
        digests = {
            party: [digest.hex() for digest in store.inbox.digests(record.study, party)]
            for party in store.members(record.study)
        }
    lines = [
        f"{party} {number:>4}  {digest}"
        for party, listed in digests.items()
        for number, digest in enumerate(listed, start=1)
    ]
    console.show({"study": record.study.hex(), "parties": digests}, *lines, as_json=json)


def _called(at: str | None) -> str:
    return f"last called {moment(at)}" if at else "has not called yet"


def _standing(record: Record) -> str:
    if record.unreadable:
        return f"{record.state.value}, unreadable"
    return f"{record.state.value}, {record.phase}" if record.phase else record.state.value


def _as_json(record: Record) -> dict[str, object]:
    return {
        "study": record.study.hex(),
        "name": record.name,
        "state": record.state.value,
        "steps_done": record.step,
        "phase": record.phase,
        "cause": record.cause,
        "unreadable": record.unreadable,
        "release": record.place,
        "abort_asked": record.abort_asked,
        "proposed_at": record.proposed_at,
    }
