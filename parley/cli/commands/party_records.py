"""`parley party ledger`, `transcript`, `countersign` and `audit`: what an owner has on record.

`owner_context` opens the files of an owner, for all commands of `parley party`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
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
from common.service.process import software, system_clock
from common.study.document import Study
from common.study.ids import StudyId
from common.wording import many, moment
from parley.cli import console
from parley.cli.options import AsJson, Config, Release, StudyFile, passphrase_in
from party.app import address_of, party_context
from party.client.context import PartyContext
from party.client.dialer import Dialer
from party.journal import Journal
from party.ledger import Charge, Ledger
from party.owner.policy import Policy
from party.settings import PartySettings, open_file, open_ledger, party_settings, source_settings
from party.sources.settings import OwnersTable
from party.totals import Unit, mixture


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
    found = [
        study
        for study, name in names.items()
        if study.hex().startswith(written.lower()) or name == written
    ]
    if len(found) != 1:
        many = "more than one study is" if found else "no study of ours is"
        raise InputError(f"{many} {written!r}. `parley party status` lists digests")
    return found[0]


def ledger(
    *,
    config: Config = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Recompute the chain; fails if it was changed.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show what was spent: on which study, for which release, when; and in total."""
    settings = party_settings(config, os.environ).values
    # An auditor may have a copy of the ledger alone.
    policy = Policy.load(settings.policy) if settings.policy.is_file() else None
    with open_ledger(settings, warn=console.warn) as file:
        book = Ledger(file)
        if verify:
            book.verify()
        entries, head, totals = book.entries(), book.head(), book.totals()
    cap = None if policy is None else policy.epsilon_in_total
    if json:
        listed = [
            {"number": entry.number}
            | {key: str(value) for key, value in asdict(entry.charge).items()}
            | {"charged_at": entry.charged_at, "digest": entry.digest}
            for entry in entries
        ]
        told = {unit.value: _told(totals.paid_by(unit), cap) for unit in Unit}
        of_a_row = told[Unit.ROW.value]  # over all studies; the keys of version 0.2.0
        console.result_json(
            {"entries": listed, **of_a_row, "totals": told, "head": head, "verified": verify}
        )
        return
    for entry in entries:
        charge = entry.charge
        console.result(
            f"{entry.number:>5}  {moment(entry.charged_at)}  {_price(charge):<10} "
            f"{charge.study_name} ({charge.study[:16]}): {charge.step}{_of_people(charge)}"
        )
    for unit in totals.units:
        spending = totals.paid_by(unit)
        of_people = sum(entry.charge.rows_per_person > 0 for entry in entries)
        number = of_people if unit is Unit.PERSON else len(entries)
        left = "" if cap is None else f"; {shown(_left(spending, cap))} is left by our policy"
        console.result(f"total  {spending.words()} of a {unit} in {many(number, 'entry')}{left}")
    if note := mixture(totals):
        console.result(f"note   {note}")
    console.result(f"head   {head}{'  verified' if verify else ''}")


def _told(spending: Spending, cap: Fraction | None) -> dict[str, str | None]:
    """Return a total as plain values; fractions are exact, in text."""
    return {
        "spent": str(spending.epsilon), "spent_pure": str(spending.pure),
        "spent_rho": str(spending.rho), "delta": str(spending.delta),
        "left": None if cap is None else str(_left(spending, cap)),
    }  # fmt: skip


def _left(spending: Spending, cap: Fraction) -> Fraction:
    return max(Fraction(0), cap - spending.epsilon)


def _of_people(charge: Charge) -> str:
    """Say whom a step's study protects, if that is not a row."""
    if not charge.rows_per_person:
        return ""
    return (
        f" (of a person, up to {many(charge.rows_per_person, 'row')} at "
        f"{many(charge.owners_per_person, 'owner')})"
    )


def _price(charge: Charge) -> str:
    return f"rho {float(charge.rho):.4g}" if charge.delta else f"{float(charge.epsilon):.4g}"


def transcript(*, config: Config = None, json: AsJson = False) -> None:
    """List every message that left the building, or may have: when, to whom, how large."""
    with open_file(party_settings(config, os.environ).values) as file:
        journal = Journal(file, OsRandomSource())
        departures = journal.sent_log()
        names = {each.study: each.study_name for each in departures}
        took = {study: journal.traffic.phases(study) for study in names}
    if json:
        listed = [
            {
                "study": each.study.hex(),
                "study_name": each.study_name,
                "number": each.sequence,
                "kind": each.kind,
                "recipient": each.recipient,
                "bytes": each.size,
                "sha256": each.digest,
                "released_at": each.released_at,
                "acknowledged_at": each.acknowledged_at,
            }
            for each in departures
        ]
        console.result_json(listed)
        return
    for each in departures:
        console.result(
            f"{moment(each.released_at)}  {each.study_name} {each.sequence:>4}  "
            f"{each.size:>10,} bytes  {each.kind} for {each.recipient}  {each.digest[:16]}"
        )
    for study, phases in took.items():
        for phase, traffic in phases.items():
            console.result(f"{names[study]}, {phase}: {traffic.text()}")
    total = sum(each.size for each in departures)
    console.result(f"total  {many(total, 'byte')} in {many(len(departures), 'message')}")


def countersign(
    release: Release,
    *,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Vouch for a release: the study we approved, the results we saw, the epsilon we paid.

    The release is verified first. Our signature is added to it; nothing else in it changes.
    """
    from party import countersigning

    settings = party_settings(config, os.environ).values
    with console.progress("verifying") as tell:
        signature = countersigning.countersign(
            release, settings, passphrase=passphrase_in(settings.passphrase_file), tell=tell
        )
    told = {"release": str(release)} | signature.as_json()
    console.show(told, f"{release} is {signature}", as_json=json)


def audit(
    study: StudyFile,
    *,
    received: Annotated[
        Path | None,
        typer.Option(help="What `parley curator study received --json` wrote at the curator."),
    ] = None,
    wipe: Annotated[
        bool, typer.Option("--wipe", help="Wipe what is kept of the study, and audit nothing.")
    ] = False,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Replay an ended study: do our answers follow from our rows?

    For an auditor who is trusted with our rows. Needs `keep_for_audit` in the policy when the study
    ended, the table as it was, and the study.toml, which is in the release. Exit code 3 if an
    answer does not follow.
    """
    from party import auditing

    document = Study.load(study)
    with owner_context(config) as context:
        if wipe:
            context.journal.wipe_kept(document.digest)
            told = {"study": document.digest.hex(), "wiped": True}
            console.show(told, f"wiped what was kept of {document.name}", as_json=json)
            return
        digests = None if received is None else _received_by(received, document, context.name)
        found = auditing.audit(document, context, received=digests)
    console.show(found.as_json(), *found.sentences(), as_json=json)
    if not found.passed:
        raise InputError(f"study {document.name!r}: the audit failed. The lines above say where")


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
