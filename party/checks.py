"""Is a party's node ready for a study? One finding for every thing that can stop one.

Nothing changes by it, but that the curator learns that we called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from common.crypto.identities.files import AskPassphrase, load_identity, load_public_identity
from common.errors import InputError
from common.privacy.randomness import OsRandomSource
from common.schema import Schema
from common.service import checks
from common.service.checks import Concern, Finding, certificate, found, running, state_folder
from common.service.database import Database
from common.service.process import Clock, software
from common.study.document import Member, Study
from common.wire.pki.certificates import Role, subject_of
from common.wire.pki.credentials import CredentialFiles
from common.wording import many
from party import app as party_app
from party.app import STATE, PartySettings
from party.client.connection import OPEN, PROTOCOL, Greeting
from party.client.dialer import Dialer
from party.client.rollback import require_no_rollback
from party.journal import Journal
from party.ledger import Ledger
from party.owner.policy import Policy
from party.sources.settings import OwnersTable

_CLOCKS_DIFFER = timedelta(minutes=5)
_CLOCKS_OFF_S = 60.0


def examine_party(
    settings: PartySettings,
    source: Callable[[], OwnersTable],
    wanted: Study | Schema | None,
    *,
    environment: Mapping[str, str],
    clock: Clock,
    passphrase: AskPassphrase,
    monitored: bool = False,
) -> Iterator[Finding]:
    """Everything a party's node needs.

    `wanted` is the study to come, or its schema; None if there is none yet.
    """
    files = CredentialFiles.in_folder(settings.keys, Role.PARTY)
    books = settings.folder / STATE
    yield found("version", lambda: f"{software()}, protocol {PROTOCOL}")
    yield found("clock", lambda: _clock(files, books, clock()))
    yield found("certificate", lambda: certificate(files, Role.PARTY, clock()))
    yield found("identity", lambda: _identity(settings.keys / "identity.key", passphrase))
    yield found("policy", lambda: _policy(settings.policy))
    yield found("disk", lambda: state_folder(settings.folder))
    yield found("ledger", lambda: _ledger(books))
    yield found("data source", lambda: _rows(source, wanted, files, books))
    if isinstance(wanted, Study):
        yield found("study", lambda: _listed(wanted, files, settings.keys / "identity.pub"))
    if monitored:
        yield found("running", lambda: running(settings.folder))
    yield from _at_the_curator(settings, source, wanted, environment, clock)


def _clock(files: CredentialFiles, ledger: Path, now: datetime) -> str:
    """It cannot be before things that have happened; the curator's clock is looked at later."""
    words = checks.clock(files, now)
    newest = _newest_charge(ledger)
    if newest is not None and now + _CLOCKS_DIFFER < newest:
        raise InputError(
            f"it is {now:%Y-%m-%d %H:%M} here, before the newest entry of the ledger "
            f"({newest:%Y-%m-%d %H:%M}): set the clock"
        )
    return words


def _newest_charge(file: Path) -> datetime | None:
    if not file.exists():
        return None
    with Database(file) as database:
        entries = Ledger(database).entries()
    return datetime.fromisoformat(entries[-1].charged_at) if entries else None


def _identity(path: Path, passphrase: AskPassphrase) -> str:
    return load_identity(path, passphrase=passphrase).public.fingerprint


def _policy(path: Path) -> str:
    policy = Policy.load(path)
    delta = f", delta up to {float(policy.max_delta):g}" if policy.max_delta else ""
    return f"epsilon {policy.epsilon_per_study} a study, {policy.epsilon_in_total} in total{delta}"


def _ledger(file: Path) -> str:
    if not file.exists():
        return "empty"
    with Database(file) as database:
        database.check()
        ledger = Ledger(database)
        ledger.verify()
        entries = many(len(ledger.entries()), "entry")
        return f"{ledger.spending().words()} spent in {entries}, chain intact"


def _rows(
    source: Callable[[], OwnersTable],
    wanted: Study | Schema | None,
    files: CredentialFiles,
    books: Path,
) -> str:
    settings = source()
    settings.check_readable()
    if wanted is None:
        return f"{settings.kind}; not read: give --study or --schema to check it against one"
    if isinstance(wanted, Study):
        schema, member = wanted.schema, _member(wanted, files)
        opened = party_app.open_rows(settings, wanted, member.name, books.parent)
        if opened.rows != member.rows:
            found = many(opened.rows, "row")
            raise InputError(f"{found}; the study says {member.rows:,}: ask for a new study")
        if books.exists():
            _unchanged(wanted, opened.snapshot.digest, books)
    else:
        schema, opened = wanted, settings.open(wanted)
    broken = _broken(settings, schema)
    return f"{settings.kind}, {many(opened.rows, 'row')}, all of the schema{broken}"


def _broken(settings: OwnersTable, schema: Schema) -> str:
    """How many rows break a rule, for the owner's terminal alone."""
    if not schema.rules:
        return ""
    breaking = sum(
        codes.rows - int(schema.possible.holds(codes).sum())
        for codes in settings.open(schema.without_rules()).chunks()
    )
    return f"; {many(breaking, 'row')} broke a rule, counted as the nearest possible row"


def _unchanged(study: Study, digest: str, books: Path) -> None:
    """A study that runs goes on with the table that it began with."""
    with Database(books) as database:
        pinned = Journal(database, OsRandomSource()).pinned_data(study.digest)
    if pinned not in (None, digest):
        raise InputError(
            f"the data changed since study {study.name!r} began: restore it as it was, or give "
            "the study up with `parley party decline`"
        )


def _member(study: Study, files: CredentialFiles) -> Member:
    name = subject_of(files.load().certificate).name
    for member in study.members:
        if member.name == name:
            return member
    raise InputError(f"study {study.name!r} does not list {name!r}")


def _listed(study: Study, files: CredentialFiles, identity: Path) -> str:
    ours = load_public_identity(identity)
    if _member(study, files).identity.encoded != ours.encoded:
        raise InputError(
            f"study {study.name!r} pins another identity than ours ({ours.fingerprint}): send "
            "our identity.pub to the curator's operator and ask for a new study"
        )
    signed = f"signed by {study.signer}" if study.signer else "not signed"
    return f"{study.name!r} lists us with our identity; {signed}"


def _at_the_curator(
    settings: PartySettings,
    source: Callable[[], OwnersTable],
    wanted: Study | Schema | None,
    environment: Mapping[str, str],
    clock: Clock,
) -> Iterator[Finding]:
    """What only the curator can tell; nothing more is said of one that does not answer."""
    met: list[_Meeting] = []
    yield found("curator", lambda: _reached(settings, environment, clock, met))
    for meeting in met:
        yield found("clocks", meeting.clocks)
        yield found("versions", meeting.versions)
        yield found("memory", partial(_memory, settings, meeting.greeting))
        if wanted is None:
            for study in meeting.studies:
                books = settings.folder / STATE
                yield found("invitation", partial(_fits, source, study, meeting.files, books))


@dataclass(frozen=True, slots=True)
class _Meeting:
    """A call at the curator: what it said, when by our clock, and the studies that are open."""

    greeting: Greeting
    at_s: float
    took_s: float
    studies: Sequence[Study]
    files: CredentialFiles

    def clocks(self) -> str:
        offset = self.greeting.time_s - self.at_s
        words = f"the curator's is {abs(offset):.1f} s {'ahead' if offset > 0 else 'behind'}"
        words += f", within {self.took_s / 2:.1f} s"
        if abs(offset) > _CLOCKS_OFF_S + self.took_s / 2:
            raise Concern(f"{words}: set one of the two; certificates and records go by them")
        return words

    def versions(self) -> str:
        there = self.greeting.software
        if there != software():
            raise Concern(f"{there} at the curator, {software()} here: use one version")
        return f"{there} on both sides"


def _reached(
    settings: PartySettings,
    environment: Mapping[str, str],
    clock: Clock,
    met: list[_Meeting],
) -> str:
    address = party_app.address_of(settings, environment=environment, software=software())
    name = subject_of(address.files.load().certificate).name
    identity = load_public_identity(settings.keys / "identity.pub").encoded
    with Dialer(address, clock).dial() as connection:
        connection.enrol(name, identity)  # the handshake's time is not the clock's
        before = clock().timestamp()
        greeting = connection.greet(name, identity)
        took = clock().timestamp() - before
        studies = [
            Study.from_toml(connection.fetch_study(each.study), where=f"study {each.name!r}")
            for each in greeting.studies
            if each.state in OPEN
        ]
    met.append(_Meeting(greeting, before + took / 2, took, studies, address.files))
    return f"{address.words}: reached; studies that list us: {len(greeting.studies)}"


def _memory(settings: PartySettings, greeting: Greeting) -> str:
    """Whether the books here are the newest there are of what left."""
    with Database(settings.folder / STATE) as database:
        journal = Journal(database, OsRandomSource())
        require_no_rollback(journal, Policy.load(settings.policy), greeting.studies)
    return "our journal knows of every message of ours that the curator has"


def _fits(
    source: Callable[[], OwnersTable], study: Study, files: CredentialFiles, books: Path
) -> str:
    return f"{study.name!r}: {_rows(source, study, files, books)}"
