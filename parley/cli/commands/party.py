"""`parley party`: what a data owner runs, beside the rows."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from common.errors import InputError, NotCountersignedError, ParleyError, PolicyError
from common.files import write_new
from common.privacy.spending import fraction_words
from common.release import folder as releases
from common.service.process import log_to, running_in, software, stopping_on_signals
from common.service.reloading import reloading
from common.study.document import Study
from common.study.ids import StudyId
from common.study.progress import StudyState, StudySummary
from common.wire.catalogue import WireError
from common.wording import one_line
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.party_decisions import approve, decline, review, withdraw
from parley.cli.commands.party_records import (
    audit,
    countersign,
    dialer_of,
    ledger,
    one_study,
    opened,
    owner_context,
    sent_log,
)
from parley.cli.options import (
    Config,
    KnownStudy,
    LogLevel,
    Metrics,
    Offline,
    StopWithStdin,
)
from parley.cli.result import Result, command, listed
from party import app as party_app
from party.client.connection import Connection
from party.client.context import PartyContext
from party.client.sessions import Ending
from party.collection import Collected
from party.journal import JournalState, StudyRecord
from party.owner import decisions
from party.settings import PartySettings, party_settings, source_settings
from party.sources.settings import OwnersTable

app = new_app("Run an owner's node beside the rows; review, approve and decline studies.")

for function in (review, approve, decline, withdraw, ledger, sent_log, countersign, audit):
    command(app)(function)
command(app, "transcript", hidden=True)(sent_log)  # its name in version 0.2

_MOST_GB = 1_000_000


@app.command()
def join(
    *,
    config: Config = None,
    curator: Annotated[str | None, typer.Option(help="Host and port of the curator.")] = None,
    metrics: Metrics = None,
    log_level: LogLevel = None,
    study: Annotated[
        Path | None, typer.Option(help="A study.toml: take part in this study only.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when the studies there are have ended.")
    ] = False,
    begin_anew: Annotated[
        bool,
        typer.Option(
            "--begin-anew",
            help="The ledger is lost, and so is every backup: begin another. What was spent "
            "earlier is forgotten here.",
        ),
    ] = False,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Take part in the studies that the owner approved, until SIGTERM or Ctrl-C.

    When a study is done, the node fetches its release, verifies it, and countersigns it if our own
    records confirm it (settings `fetch_releases`, `countersign`). With --once, exit code 8 if they
    do not. Only dials out. State survives a crash at any moment. One node runs on a folder at a
    time. Logs are JSON on stderr. SIGHUP reads the settings again.
    """
    flags = {"curator": curator, "metrics": metrics, "log_level": log_level}

    def read() -> tuple[PartySettings, OwnersTable]:
        settings = party_settings(config, os.environ, flags)
        return settings.values, source_settings(settings, config, os.environ)

    only = None if study is None else Study.load(study).digest
    endings: dict[StudyId, Ending] = {}
    refused: dict[StudyId, Collected] = {}
    with reloading(read, with_stdin=stop_with_stdin) as rounds:
        for (settings, source), stopping in rounds:
            log_to(level=settings.log_level)
            with (
                party_app.alone(settings, anew=begin_anew),
                opened(settings, source) as context,
                party_app.metrics(settings, context),
            ):
                endings = party_app.session_manager(
                    settings,
                    context,
                    environment=os.environ,
                    stopping=stopping,
                    software=software(),
                ).run(once=once, only=only)
                refused = _not_countersigned(context, settings)
            begin_anew = False
    if not once:
        return
    for digest, ending in endings.items():
        if isinstance(ending, ParleyError):
            raise ending
        if ending not in (JournalState.FINISHED, None):
            raise PolicyError(f"study {digest.hex()[:16]} ended without a release: {ending}")
        if digest in refused:
            words = refused[digest].text()
            raise NotCountersignedError(f"study {digest.hex()[:16]}: its release is {words}")


def _not_countersigned(context: PartyContext, settings: PartySettings) -> dict[StudyId, Collected]:
    """Return the releases that our node refused; not those that it was told not to sign."""
    return {
        study: release
        for study, release in context.collection.all().items()
        if release.place is None or (settings.countersign and not release.countersigned)
    }


@app.command()
def ui(
    *,
    config: Config = None,
    study: Annotated[
        list[Path] | None, typer.Option(help="A study.toml to decide about; may be given again.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    offline: Offline = False,
) -> None:
    """Review and decide in a browser; see the ledger and what left. On this machine only.

    Prints the address to open, which is the key to the page. Runs until Ctrl-C.
    """
    from party.ui.inbox import OwnerInbox  # slow to load: a web server
    from party.ui.site import serving_ui

    settings = party_settings(config, os.environ)
    source = source_settings(settings, config, os.environ)
    studies = [Study.load(path) for path in study or ()]
    log_to(level=settings.values.log_level)
    with (
        stopping_on_signals() as stopping,
        opened(settings.values, source) as context,
    ):
        dialer = dialer_of(settings.values)
        node = functools.partial(running_in, settings.values.folder)
        inbox = OwnerInbox(context, studies, dial=None if offline else dialer.dial, node=node)
        with serving_ui(inbox, port=port) as printed:
            asking = threading.Thread(target=inbox.ask, name="ask", daemon=True)
            asking.start()
            console.result(printed)
            sys.stdout.flush()  # it may be read by a script that waits for it
            stopping.wait()
        dialer.hang_up()
        asking.join()


@command(app)
def status(*, config: Config = None, offline: Offline = False) -> Result:
    """List every study we know of: our decision, how it went, and new invitations."""
    settings = party_settings(config, os.environ).values
    with owner_context(config, only_read=True) as context:
        records = {record.study: record for record in context.journal.studies()}
        invited = {} if offline else _invited(settings, context)
        notes = context.notes.all()
        studies = dict.fromkeys([*records, *invited, *notes])
        known = (_known(context, study, records, invited, notes) for study in studies)
        return listed(known, empty="no studies")


def _known(
    context: PartyContext,
    study: StudyId,
    records: Mapping[StudyId, StudyRecord],
    invited: Mapping[StudyId, StudySummary],
    notes: Mapping[StudyId, str],
) -> Result:
    known = records.get(study) or invited.get(study)
    collected = context.collection.all()
    form: dict[str, Any] = {
        "study": study,
        "name": known.name if known else "(name not known here)",
        "decision": decisions.in_words(context.approvals.decision(study)),
        "here": records[study].state.value if study in records else "not begun",
        "at_the_curator": invited[study].state if study in invited else "not asked",
        "reason": records[study].reason if study in records else "",
        "node": notes.get(study, ""),
        "rows": decisions.rows_in_words(context.approvals.rows_changed_at(study)),
        "release": collected[study].text() if study in collected else "",
        "epsilon_spent": context.ledger.spent(study.hex()),
        "phases": context.journal.traffic.phases(study),
    }
    headline = (
        f"{study.hex()[:16]}  {one_line(form['name'])}: {form['decision']}; here {form['here']}; "
        f"at the curator {form['at_the_curator']}; epsilon {fraction_words(form['epsilon_spent'])} "
        "spent"
    )
    release = form["release"] and f"release: {form['release']}"
    node = form["node"] and f"our node: {form['node']}"
    details = filter(None, (form["reason"], form["rows"], release, node))
    return Result(form, [headline, *(f"{'':>18}{one_line(words)}" for words in details)])


@command(app)
def fetch(
    study: KnownStudy,
    *,
    out: Annotated[Path, typer.Option(help="The study.toml to write; a .zip with --release.")],
    release: Annotated[
        bool, typer.Option("--release", help="Fetch the release of a study that is done.")
    ] = False,
    most_gb: Annotated[float, typer.Option(help="The largest release to take.")] = 4.0,
    config: Config = None,
) -> Result:
    """Ask the curator for a study that we are invited to, to review it; or for its release.

    A release is verified as `parley verify` does, and kept only if it is to be relied on; vouch for
    it with `parley party countersign`. `parley party join` does both by itself.
    """
    if not 0 < most_gb <= _MOST_GB:  # which no NaN is
        raise InputError(
            f"--most-gb: {most_gb} is out of range. Give more than 0, at most {_MOST_GB}"
        )
    if release:
        releases.check_new(out)
    dialer = dialer_of(party_settings(config, os.environ).values)
    with owner_context(config, only_read=True) as context, dialer.dial() as connection:
        invited = {
            summary.study: summary
            for summary in connection.enrol(context.name, context.identity.public.encoded)
        }
        wanted_id = one_study(study, {digest: summary.name for digest, summary in invited.items()})
        if release:
            return _fetch_release(
                connection, invited[wanted_id], out,
                most_gb=most_gb,
            )  # fmt: skip
        document = connection.fetch_study(wanted_id)
        fetched = Study.from_toml(document, where="the study")
        if fetched.digest != wanted_id:
            raise InputError("the curator sent another study than the one asked for")
        context.take_prior(fetched, connection)
    write_new(out, document.encode())
    digest = fetched.digest
    form = {"study": digest, "name": fetched.name, "signer": fetched.signer, "file": out}
    return Result(form, [f"digest {digest.hex()}"])


def _fetch_release(
    connection: Connection,
    study: StudySummary,
    out: Path,
    *,
    most_gb: float,
) -> Result:
    from parley.cli.commands.verify import checked_release  # slow to load: it derives a release
    from party.releases import keep_release

    if study.state is not StudyState.DONE:
        raise InputError(f"study {study.name!r} has no release: at the curator it is {study.state}")
    with console.progress("fetching and verifying") as tell:
        pieces = connection.fetch_release(study.study)
        verified = keep_release(
            pieces, study.study, out, most_bytes=int(most_gb * 1e9),
            tell=tell,
        )  # fmt: skip
    return checked_release(verified)


def _invited(settings: PartySettings, context: PartyContext) -> dict[StudyId, StudySummary]:
    try:
        with dialer_of(settings).dial() as connection:
            summaries = connection.enrol(context.name, context.identity.public.encoded)
    except WireError as error:
        console.warn(f"the curator says nothing: {error}")
        return {}
    return {summary.study: summary for summary in summaries}
