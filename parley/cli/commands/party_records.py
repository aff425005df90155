"""`parley party ledger`, `sent-log`, `countersign` and `audit`: what an owner has on record.

`owner_context` opens the files of an owner, for all commands of `parley party`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from fractions import Fraction
from json import loads
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.privacy.randomness import OsRandomSource
from common.privacy.spending import Spending
from common.privacy.spending import fraction_words as shown
from common.release.contents import open_release
from common.release.folder import read_commitments, read_study
from common.release.verify import verify
from common.service.process import software, system_clock
from common.study.commitments import Commitments
from common.study.document import Study
from common.study.ids import StudyId
from common.study.transcript import Phases
from common.wording import many, moment
from parley.cli import console
from parley.cli.options import Config, Release, StudyFile, passphrase_in
from parley.cli.result import Result
from party.app import address_of, party_context
from party.client.context import PartyContext
from party.client.dialer import Dialer
from party.journal import Journal, SentMessage
from party.ledger import Entry, Ledger, LedgerCharge
from party.owner.policy import Policy
from party.settings import PartySettings, open_file, open_ledger, party_settings, source_settings
from party.sources.settings import OwnersTable
from party.totals import Totals, Unit, mixture


@contextmanager
def owner_context(config: Path | None, *, only_read: bool = False) -> Iterator[PartyContext]:
    """Open an owner's files and table, as its settings name them."""
    settings = party_settings(config, os.environ)
    source = source_settings(settings, config, os.environ)
    with opened(settings.values, source, only_read=only_read) as context:
        yield context


def opened(
    settings: PartySettings, source: OwnersTable, *, only_read: bool = False
) -> AbstractContextManager[PartyContext]:
    """Open an owner's files; on a terminal a person can be asked for the passphrase."""
    passphrase = passphrase_in(settings.passphrase_file)
    return party_context(
        settings, source, clock=system_clock, passphrase=passphrase, only_read=only_read
    )


def dialer_of(settings: PartySettings) -> Dialer:
    """Return the way to the curator that the settings name."""
    address = address_of(settings, environment=os.environ, software=software())
    return Dialer(address, system_clock)


def one_study(written: str, names: Mapping[StudyId, str]) -> StudyId:
    """Return the one study that is called so, or whose digest begins so."""
    studies = [
        study
        for study, name in names.items()
        if study.hex().startswith(written.lower()) or name == written
    ]
    if len(studies) != 1:
        many = "more than one study is" if studies else "no study of ours is"
        raise InputError(f"{many} {written!r}. `parley party status` lists digests")
    return studies[0]


def ledger(
    *,
    config: Config = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Recompute the chain; fails if it was changed.")
    ] = False,
) -> Result:
    """Show what was spent: on which study, for which release, when; and in total."""
    settings = party_settings(config, os.environ).values
    # An auditor may have a copy of the ledger alone.
    policy = Policy.load(settings.policy) if settings.policy.is_file() else None
    with open_ledger(settings, warn=console.warn) as file:
        book = Ledger(file)
        if verify:
            book.verify()
        cap = None if policy is None else policy.epsilon_in_total
        entries, totals, head = book.entries(), book.totals(), book.head()
    in_totals = {unit.value: _total(totals.paid_by(unit), cap) for unit in Unit}
    form = {
        "entries": [
            {"number": entry.number}
            | {key: str(value) for key, value in asdict(entry.charge).items()}
            | {"charged_at": entry.charged_at, "digest": entry.digest}
            for entry in entries
        ],
        **in_totals[Unit.ROW.value],  # over all studies; the keys of version 0.2.0
        "totals": in_totals,
        "head": head,
        "verified": verify,
    }
    seal = f"head   {head}{'  verified' if verify else ''}"
    return Result(form, [*_ledger_lines(entries, totals, cap), seal])


def _total(spending: Spending, cap: Fraction | None) -> dict[str, str | None]:
    """Return a total as plain values; fractions are exact, in text."""
    return {
        "spent": str(spending.epsilon), "spent_pure": str(spending.pure),
        "spent_rho": str(spending.rho), "delta": str(spending.delta),
        "left": None if cap is None else str(_left(spending, cap)),
    }  # fmt: skip


def _ledger_lines(entries: Sequence[Entry], totals: Totals, cap: Fraction | None) -> Iterator[str]:
    for entry in entries:
        charge = entry.charge
        yield (
            f"{entry.number:>5}  {moment(entry.charged_at)}  {_price(charge):<10} "
            f"{charge.study_name} ({charge.study[:16]}): {charge.step}{_of_people(charge)}"
        )
    of_people = sum(entry.charge.rows_per_person > 0 for entry in entries)
    for unit in totals.units:
        spending = totals.paid_by(unit)
        number = of_people if unit is Unit.PERSON else len(entries)
        words = f"{spending.words()} of a {unit} in {many(number, 'entry')}"
        if cap is not None:
            words += f"; {shown(_left(spending, cap))} is left by our policy"
        yield f"total  {words}"
    if note := mixture(totals):
        yield f"note   {note}"


def _left(spending: Spending, cap: Fraction) -> Fraction:
    return max(Fraction(0), cap - spending.epsilon)


def _of_people(charge: LedgerCharge) -> str:
    """Say whom a step's study protects, if that is not a row."""
    if not charge.rows_per_person:
        return ""
    rows = f"up to {many(charge.rows_per_person, 'row')} " if charge.rows_per_person > 1 else ""
    return f" (of a person, {rows}at {many(charge.owners_per_person, 'owner')})"


def _price(charge: LedgerCharge) -> str:
    return f"rho {float(charge.rho):.4g}" if charge.delta else f"{float(charge.epsilon):.4g}"


def sent_log(*, config: Config = None) -> Result:
    """List every message that left the building, or may have: when, to whom, how large."""
    with open_file(party_settings(config, os.environ).values) as file:
        journal = Journal(file, OsRandomSource())
        departures = journal.sent_log()
        names = {message.study: message.study_name for message in departures}
        phases = {name: journal.traffic.phases(study) for study, name in names.items()}
    form = [
        {
            "study": message.study, "study_name": message.study_name, "number": message.sequence,
            "kind": message.kind, "recipient": message.recipient, "bytes": message.size,
            "sha256": message.digest, "released_at": message.released_at,
            "acknowledged_at": message.acknowledged_at,
        }
        for message in departures
    ]  # fmt: skip
    return Result(form, _sent_lines(departures, phases))


def _sent_lines(messages: Sequence[SentMessage], phases: Mapping[str, Phases]) -> Iterator[str]:
    for message in messages:
        yield (
            f"{moment(message.released_at)}  {message.study_name} {message.sequence:>4}  "
            f"{message.size:>10,} bytes  {message.words}, for {message.recipient}  "
            f"{message.digest[:16]}"
        )
    for name, in_study in phases.items():
        for phase, traffic in in_study.items():
            yield f"{name}, {phase}: {traffic.text()}"
    total = sum(message.size for message in messages)
    yield f"total  {many(total, 'byte')} in {many(len(messages), 'message')}"


def countersign(release: Release, *, config: Config = None) -> Result:
    """Vouch for a release: the study we approved, the results we saw, the epsilon we paid.

    The release is verified first. Our signature is added to it; nothing else in it changes.
    """
    from party import countersigning

    settings = party_settings(config, os.environ).values
    with console.progress("verifying") as tell:
        signature = countersigning.countersign(
            release, settings, passphrase=passphrase_in(settings.passphrase_file), tell=tell
        )
    form = {"release": str(release)} | signature.as_json()
    return Result(form, [f"{release} is {signature}"])


def audit(
    study: StudyFile,
    *,
    received: Annotated[
        Path | None,
        typer.Option(help="What `parley curator study received --json` wrote at the curator."),
    ] = None,
    release: Annotated[
        Path | None,
        typer.Option(help="The release: its commitments are compared, which all owners signed."),
    ] = None,
    wipe: Annotated[
        bool, typer.Option("--wipe", help="Wipe what is kept of the study, and audit nothing.")
    ] = False,
    config: Config = None,
) -> Result:
    """Replay an ended study: do our answers follow from our rows?

    For an auditor who is trusted with our rows. Needs `keep_for_audit` in the policy when the study
    ended, the table as it was, and the study.toml, which is in the release. Exit code 3 if an
    answer does not follow.
    """
    from party import auditing

    document = Study.load(study)
    with owner_context(config, only_read=not wipe) as context:
        if wipe:
            context.journal.wipe_kept(document.digest)
            form = {"study": document.digest, "wiped": True}
            return Result(form, [f"wiped what was kept of {document.name}"])
        digests = None if received is None else _received_by(received, document, context.name)
        released = None if release is None else _commitments_in(release, document)
        report = auditing.audit(document, context, received=digests, released=released)

        def require() -> None:
            if not report.passed:
                raise InputError(
                    f"study {document.name!r}: the audit failed. The lines above say where"
                )

        return Result(report, report.sentences(), require=require)


def _commitments_in(release: Path, study: Study) -> Commitments:
    """Read the commitments of a study from its release, whose signatures are checked."""
    verify(release, bytes_only=True, rehearsal=True).require()
    with open_release(release) as contents:
        commitments = read_commitments(contents, read_study(contents))
        if commitments is None or read_study(contents).digest != study.digest:
            raise InputError(f"{release}: it has no commitments of study {study.name!r}")
    return commitments


def _received_by(path: Path, study: Study, party: str) -> list[str]:
    """Read the digests of a party's messages from the curator's record."""
    try:
        record = loads(path.read_text("utf-8"))
        listed = record["parties"][party] if record["study"] == study.digest.hex() else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not the curator's record of {party!r}: {error}") from None
    if listed is None:
        raise InputError(f"{path}: the record is of another study")
    return [str(digest) for digest in listed]
