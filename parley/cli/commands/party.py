"""`parley party`: what a data owner runs, beside the rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from common.errors import InputError, ParleyError, PolicyError
from common.files import write_new
from common.release import folder as releases
from common.service.process import log_to, software, stopping_on_signals, system_clock
from common.study.document import Study
from common.study.ids import StudyId
from common.wire.catalogue import WireError
from common.wording import one_line
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.party_records import countersign, ledger, transcript
from parley.cli.commands.party_refusals import decline, withdraw
from parley.cli.commands.party_ui import ui
from parley.cli.options import AllowOtherVersion, AsJson, Config, PriorFile, StopWithStdin
from parley.cli.passphrases import passphrase_in
from party import app as party_app
from party.app import PartySettings, party_settings, source_settings
from party.client.connection import DONE, Connection, Summary
from party.client.context import PartyContext
from party.client.dialer import Dialer
from party.journal import StudyRecord, StudyState
from party.owner import decisions
from party.owner.review import Review
from party.sources.settings import OwnersTable

app = new_app("Run an owner's node beside the rows; review, approve and decline studies.")

app.command()(countersign)
app.command()(decline)
app.command()(ledger)
app.command()(transcript)
app.command()(ui)
app.command()(withdraw)

_MOST_GB = 1_000_000
StudyFile = Annotated[Path, typer.Argument(help="The study.toml.")]


@app.command()
def join(
    *,
    config: Config = None,
    curator: Annotated[str | None, typer.Option(help="Host and port of the curator.")] = None,
    metrics: Annotated[str | None, typer.Option(help="Address and port of the metrics.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning, error.")] = None,
    study: Annotated[
        Path | None, typer.Option(help="A study.toml: take part in this study only.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when the studies there are have ended.")
    ] = False,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Take part in the studies that the owner approved, until SIGTERM or Ctrl-C.

    When a study is done, the node fetches its release, verifies it, and countersigns it if our own
    records confirm it (settings `fetch_releases`, `countersign`). Only dials out. State survives a
    crash at any moment. One node runs on a folder at a time. Logs are JSON on stderr.
    """
    flags = {"curator": curator, "metrics": metrics, "log_level": log_level}
    settings = party_settings(config, os.environ, flags)
    log_to(level=settings.values.log_level)
    source = source_settings(settings, config, os.environ)
    with (
        stopping_on_signals(with_stdin=stop_with_stdin) as stopping,
        party_app.alone(settings.values),
        _opened(settings.values, source) as house,
        party_app.metrics(settings.values, house),
    ):
        endings = party_app.session_manager(
            settings.values, house, environment=os.environ, stopping=stopping, software=software()
        ).run(once=once, only=None if study is None else Study.load(study).digest)
    if not once:
        return
    for digest, ending in endings.items():
        if isinstance(ending, ParleyError):
            raise ending
        if ending not in (StudyState.FINISHED, None):
            raise PolicyError(f"study {digest.hex()[:16]} ended without a release: {ending}")


@app.command()
def review(
    study: StudyFile, *, prior: PriorFile = None, config: Config = None, json: AsJson = False
) -> None:
    """Show what a study costs, what it asks, and what would leave. Decides nothing.

    The release that a study builds on comes from the curator, with the study: `party join` and
    `party fetch` take it. Hand it over with --prior where they did not.
    """
    with _house(config) as house:
        seen, _ = _seen(house, study, prior)
    console.show(seen.as_json(), seen.text().rstrip("\n"), as_json=json)


@app.command()
def approve(
    study: StudyFile,
    *,
    prior: PriorFile = None,
    config: Config = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: AsJson = False,
) -> None:
    """Approve a study, after a review; the node then signs it and takes part."""
    with _house(config) as house:
        seen, rows = _seen(house, study, prior)
        if not yes and not seen.reasons_against:
            console.note(seen.text())
            price = f"epsilon {seen.cost}{seen.at_delta}"
            if not typer.confirm(f"Spend {price} of every row of ours on it?", err=True):
                raise InputError("not confirmed; nothing was decided")
        decisions.approve(house.approvals, seen, at=house.now(), data_digest=rows)
    cost = {"epsilon": str(seen.cost), "delta": str(seen.delta)}
    told = {"study": seen.digest, "decision": "approved"} | cost
    console.show(told, f"approved {seen.digest}", as_json=json)


@app.command()
def status(
    *,
    config: Config = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask the curator.")] = False,
    json: AsJson = False,
) -> None:
    """List every study we know of: our decision, how it went, and new invitations."""
    settings = _settings(config)
    with _house(config) as house:
        own = {record.study: record for record in house.journal.studies()}
        invited = {} if offline else _invited(settings, house)
        notes = house.notes.all()
        collected = house.collection.all()
        lines: list[dict[str, Any]] = []
        for study in dict.fromkeys([*own, *invited, *notes]):
            decision = house.approvals.decision(study)
            phases = house.journal.traffic.phases(study)
            lines.append(
                {
                    "study": study.hex(),
                    "name": _name(own.get(study) or invited.get(study)),
                    "decision": decisions.in_words(decision),
                    "here": own[study].state.value if study in own else "not begun",
                    "at_the_curator": invited[study].state if study in invited else "not asked",
                    "reason": own[study].reason if study in own else "",
                    "node": notes.get(study, ""),
                    "rows": decisions.rows_in_words(house.approvals.rows_changed_at(study)),
                    "release": collected[study].text() if study in collected else "",
                    "epsilon_spent": str(house.ledger.spent(study.hex())),
                    "phases": {phase: traffic.as_json() for phase, traffic in phases.items()},
                }
            )
    if json:
        console.result_json(lines)
        return
    for line in lines:
        console.result(
            f"{line['study'][:16]}  {one_line(line['name'])}: {line['decision']}; "
            f"here {line['here']}; at the curator {line['at_the_curator']}; "
            f"epsilon {line['epsilon_spent']} spent"
        )
        for key, before in (("reason", ""), ("rows", ""), ("release", "release: "),
                            ("node", "our node: ")):  # fmt: skip
            if line[key]:
                console.result(f"{'':>18}{before}{one_line(line[key])}")
    if not lines:
        console.result("no studies")


@app.command()
def fetch(
    study: Annotated[str, typer.Argument(help="The first characters of its digest, or its name.")],
    *,
    out: Annotated[Path, typer.Option(help="The study.toml to write; a .zip with --release.")],
    release: Annotated[
        bool, typer.Option("--release", help="Fetch the release of a study that is done.")
    ] = False,
    most_gb: Annotated[float, typer.Option(help="The largest release to take.")] = 4.0,
    allow_other_version: AllowOtherVersion = False,
    config: Config = None,
    json: AsJson = False,
) -> None:
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
    settings = _settings(config)
    address = party_app.address_of(settings, environment=os.environ, software=software())
    with _house(config) as house, Dialer(address, system_clock).dial() as connection:
        invited = connection.enrol(house.name, house.identity.public.encoded)
        found = [
            each
            for each in invited
            if each.study.hex().startswith(study.lower()) or each.name == study
        ]
        if len(found) != 1:
            raise InputError(f"{study!r} is not one study; see `parley party status`")
        if release:
            _fetch_release(
                connection, found[0], out,
                most_gb=most_gb, allow_other_version=allow_other_version, as_json=json,
            )  # fmt: skip
            return
        document = connection.fetch_study(found[0].study)
        fetched = Study.from_toml(document, where="the study")
        if fetched.digest != found[0].study:
            raise InputError("the curator sent another study than the one asked for")
        house.take_prior(fetched, connection)
    write_new(out, document.encode())
    told = {"study": fetched.digest.hex(), "name": fetched.name, "signer": fetched.signer}
    digest = f"digest {fetched.digest.hex()}"
    console.show(told | {"file": str(out)}, digest, as_json=json)


def _fetch_release(
    connection: Connection,
    study: Summary,
    out: Path,
    *,
    most_gb: float,
    allow_other_version: bool,
    as_json: bool,
) -> None:
    from parley.cli.commands.verify import report  # slow to load: it derives a release again
    from party.fetching import keep_release

    if study.state != DONE:
        raise InputError(f"study {study.name!r} has no release: at the curator it is {study.state}")
    with console.progress("fetching and verifying") as tell:
        pieces = connection.fetch_release(study.study)
        kept = keep_release(
            pieces, study.study, out, most_bytes=int(most_gb * 1e9),
            allow_other_version=allow_other_version, tell=tell,
        )  # fmt: skip
    if as_json:
        console.result_json(kept.as_json())
    else:
        report(kept)


def _name(known: StudyRecord | Summary | None) -> str:
    return "(name not known here)" if known is None else known.name


def _invited(settings: PartySettings, house: PartyContext) -> dict[StudyId, Summary]:
    address = party_app.address_of(settings, environment=os.environ, software=software())
    try:
        with Dialer(address, system_clock).dial() as connection:
            summaries = connection.enrol(house.name, house.identity.public.encoded)
    except WireError as error:
        console.warn(f"the curator says nothing: {error}")
        return {}
    return {each.study: each for each in summaries}


def _seen(house: PartyContext, study: Path, prior: Path | None) -> tuple[Review, str]:
    """The review, and the digest of the rows that it is about."""
    proposed = Study.load(study)
    if prior is not None and house.priors is not None:
        house.priors.add(prior)
    source = house.open_source(proposed)
    return house.review(proposed, source), source.snapshot.digest


def _settings(config: Path | None) -> PartySettings:
    return party_settings(config, os.environ).values


@contextmanager
def _house(config: Path | None) -> Iterator[PartyContext]:
    settings = party_settings(config, os.environ)
    source = source_settings(settings, config, os.environ)
    with _opened(settings.values, source) as house:
        yield house


def _opened(settings: PartySettings, source: OwnersTable) -> AbstractContextManager[PartyContext]:
    passphrase = passphrase_in(settings.passphrase_file)
    return party_app.party_context(settings, source, clock=system_clock, passphrase=passphrase)
