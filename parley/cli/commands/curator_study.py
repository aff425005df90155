"""`parley curator study`: write a study down, offer it, see how it is getting on, end it."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.files import write_new
from common.methods.registry import run_of
from common.release.folder import cautions_of
from common.release.prior import read_prior
from common.service.process import stamp, system_clock
from common.study.document import Study
from common.wording import moment
from curator import app as curator_app
from curator.app import curator_settings, open_store
from curator.operations import abort as ask_to_abort
from curator.operations import (
    declare_missing,
    declared,
    find_record,
    last_calls,
    member_of,
)
from curator.store.records import Record
from curator.waiting import approvals_in_words, how_long, in_words, waited
from parley.cli import console, options
from parley.cli.commands import new_app
from parley.cli.commands.curator_revision import reform, renew
from parley.cli.commands.study_signing import SignerFile, Unsigned, signed, tell_offered

_ABORT_S = 5.0  # how long a running curator may take to end a study

app = new_app("Write a study down, offer it, see how it is getting on, end it.")
app.command()(reform)
app.command()(renew)


@app.command()
@options.taking_terms
def new(
    *,
    name: Annotated[str, typer.Option(help="What people call the study.")],
    schema: options.SchemaFile,
    party: Annotated[
        list[str],
        typer.Option(help="NAME:ROWS:IDENTITY.PUB, one per owner, in the order of the ring."),
    ],
    out: Annotated[Path, typer.Option(help="The study.toml to write.")],
    terms: options.Terms,
    prior: options.PriorFile = None,
    purpose: Annotated[str, typer.Option(help="What the table is for; owners read it first.")] = "",
    recipient: Annotated[str, typer.Option(help="Who gets the table.")] = "",
    contact: Annotated[str, typer.Option(help="Whom owners can ask.")] = "",
    ethics: Annotated[
        str, typer.Option(help="The ethics vote, contract or law that it rests on.")
    ] = "",
    expires: Annotated[
        datetime | None,
        typer.Option(
            "--expires",
            "--approve-by",
            formats=["%Y-%m-%d"],
            help="The last day (UTC) to approve it: without all approvals it ends then, free.",
        ),
    ] = None,
    config: options.Config = None,
    signer: SignerFile = None,
    unsigned: Unsigned = False,
    json: options.AsJson = False,
) -> None:
    """Write a study down: schema, budget, and who takes part with which identity and how many rows.

    It is signed with the curator's identity (the settings say where its keys are) or with --signer,
    so that owners know who proposes it. Send the file to every owner; they review it with `parley
    party review`.
    """
    about = {
        "name": name, "purpose": purpose, "recipient": recipient, "contact": contact,
        "ethics": ethics, "expires": None if expires is None else expires.date(),
    }  # fmt: skip
    members = [member_of(written) for written in party]
    earlier = None if prior is None else read_prior(prior)
    about["prior"] = None if earlier is None else earlier.digest
    study = Study.of(terms.chosen() | about, schema=options.load_schema(schema), members=members)
    _require_time_left(study)
    (earlier.begin if earlier else run_of)(study)  # refuses a study that could never be run
    if earlier is not None:
        console.note(f"offer it with its prior: `study add {out} --prior {prior}`")
    options.tell_decisions(study)
    if not purpose:
        console.warn("the study says no --purpose: owners are asked to pay for a name")
    if not unsigned:
        study = signed(study, config, signer)
    write_new(out, study.to_toml().encode())
    console.note(f"{out} is written; every owner reviews it, and you offer it: `study add`")
    tell_offered(study, out, as_json=json)


@app.command()
def add(
    study: Annotated[Path, typer.Argument(help="The study.toml.")],
    *,
    prior: options.PriorFile = None,
    config: options.Config = None,
    signer: SignerFile = None,
    unsigned: Unsigned = False,
    json: options.AsJson = False,
) -> None:
    """Offer a study to its parties; a running curator takes it up by itself.

    An unsigned study is signed on the way, as in `study new`.
    """
    settings = curator_settings(config, os.environ).values
    proposed = Study.load(study)
    _require_time_left(proposed)
    if prior is not None:
        curator_app.priors(settings).add(prior)
    if proposed.signature is None and not unsigned:
        proposed = signed(proposed, config, signer)
        console.note(f"{study} itself is not signed; owners who fetch the study see the signature")
    curator_app.propose(settings, proposed, clock=system_clock)
    tell_offered(proposed, study, as_json=json)


@app.command(name="list")
def list_studies(*, config: options.Config = None, json: options.AsJson = False) -> None:
    """List every study of this curator, oldest first, with its state."""
    with open_store(curator_settings(config, os.environ).values) as store:
        known = store.records()
    lines = [f"{one.study.hex()[:16]}  {_standing(one):<24} {one.name}" for one in known]
    console.show([_as_json(record) for record in known], *lines, as_json=json)


@app.command()
def status(
    study: Annotated[str, typer.Argument(help="The first characters of its digest, or its name.")],
    *,
    config: options.Config = None,
    json: options.AsJson = False,
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
        console.result(
            f"missing  {party}: {why or 'declared missing'}; the study goes on without it"
        )
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
    study: Annotated[str, typer.Argument(help="The first characters of its digest, or its name.")],
    *,
    reason: Annotated[str, typer.Option(help="Why; the parties read it.")],
    config: options.Config = None,
    json: options.AsJson = False,
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
    study: Annotated[str, typer.Argument(help="The first characters of its digest, or its name.")],
    owner: Annotated[str, typer.Argument(help="The owner that does not come back.")],
    *,
    config: options.Config = None,
    json: options.AsJson = False,
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


def _require_time_left(study: Study) -> None:
    if study.expired(system_clock().date()):
        raise InputError(f"study {study.name!r}: it expired on {study.expires}. Choose a later day")


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
