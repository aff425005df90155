"""Is a service ready for a study? One finding for every thing that can stop one.

A check never raises: what it would raise is what it has to say. Nothing here needs a study to be
under way, and nothing changes but that the curator learns that we called.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from common.crypto.identities.files import AskPassphrase, load_identity, load_public_identity
from common.errors import InputError, ParleyError
from common.privacy.randomness import OsRandomSource
from common.schema import Schema
from common.service.database import Database
from common.service.process import most_open_files
from common.study.document import Member, Study
from common.wire.pki import peers
from common.wire.pki.certificates import Role, expiry_warning, subject_of
from common.wire.pki.credentials import CredentialFiles, Credentials, read
from common.wording import many
from curator.app import CuratorSettings, open_store
from curator.operations import records
from parley.cli.version import software
from party import app as party_app
from party.app import PartySettings
from party.client.connection import OPEN, PROTOCOL, Greeting
from party.client.dialer import Dialer
from party.client.rollback import require_no_rollback
from party.journal import Journal
from party.ledger import Ledger
from party.owner.policy import Policy
from party.sources.settings import SourceSettings

_LEAST_FREE_BYTES = 1 << 30
_FEW_OPEN_FILES = 4096
_CLOCKS_DIFFER = timedelta(minutes=5)
_CLOCKS_OFF_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found.

    Attributes:
        check: what was looked at.
        ok: whether a study can be run.
        words: what was found, and what to do about it.
        warning: whether somebody should look at it all the same.
    """

    check: str
    ok: bool
    words: str
    warning: bool = False


class _Concern(Exception):  # not an error: the check passed
    """Nothing that stops a study, and yet not as it should be."""


def examine_party(
    settings: PartySettings,
    source: Callable[[], SourceSettings],
    wanted: Study | Schema | None,
    *,
    environment: Mapping[str, str],
    clock: Callable[[], datetime],
    passphrase: AskPassphrase,
) -> Iterator[Finding]:
    """Everything a party's node needs.

    Args:
        settings: of the node.
        source: where the rows are; raises if the settings do not say.
        wanted: the study to come, or its schema; None if there is none yet.
        environment: the process's.
        clock: the time.
        passphrase: of the identity, if it is under one.
    """
    files = CredentialFiles.in_folder(settings.keys, Role.PARTY)
    books = settings.folder / "party.db"
    yield _found("version", _version)
    yield _found("clock", lambda: _clock(files, books, clock()))
    yield _found("certificate", lambda: _certificate(files, Role.PARTY, clock()))
    yield _found("identity", lambda: _identity(settings.keys / "identity.key", passphrase))
    yield _found("policy", lambda: _policy(settings.policy))
    yield _found("disk", lambda: _disk(settings.folder))
    yield _found("ledger", lambda: _ledger(books))
    yield _found("data source", lambda: _rows(source, wanted, files, books))
    if isinstance(wanted, Study):
        yield _found("study", lambda: _listed(wanted, files, settings.keys / "identity.pub"))
    yield from _at_the_curator(settings, source, wanted, environment, clock)


def examine_curator(
    settings: CuratorSettings, *, clock: Callable[[], datetime]
) -> Iterator[Finding]:
    """Everything a curator needs."""
    files = CredentialFiles.in_folder(settings.keys, Role.CURATOR)
    yield _found("version", _version)
    yield _found("clock", lambda: _clock(files, None, clock()))
    yield _found("certificate", lambda: _certificate(files, Role.CURATOR, clock()))
    yield _found("revocations", lambda: _revocations(settings.keys / "revoked.txt"))
    yield _found("disk", lambda: _disk(settings.folder))
    yield _found("releases", lambda: _disk(settings.releases))
    yield _found("state", lambda: _studies(settings))
    yield _found("parties", lambda: _parties(settings))
    yield _found("address", lambda: _address(settings.listen))
    yield _found("open files", _open_files)


def _found(check: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(check=check, ok=True, words=look())
    except _Concern as concern:
        return Finding(check=check, ok=True, words=str(concern), warning=True)
    except ParleyError as error:
        return Finding(check=check, ok=False, words=" ".join(str(error).split()))


def _version() -> str:
    return f"{software()}, protocol {PROTOCOL}"


def _clock(files: CredentialFiles, ledger: Path | None, now: datetime) -> str:
    """It cannot be before things that have happened; the curator's clock is looked at later."""
    authority = files.load().authorities[0]
    if now < authority.not_valid_before_utc:
        raise InputError(
            f"it is {now:%Y-%m-%d %H:%M} here, before the consortium's authority was made "
            f"({authority.not_valid_before_utc:%Y-%m-%d %H:%M}): set the clock"
        )
    newest = _newest_charge(ledger)
    if newest is not None and now + _CLOCKS_DIFFER < newest:
        raise InputError(
            f"it is {now:%Y-%m-%d %H:%M} here, before the newest entry of the ledger "
            f"({newest:%Y-%m-%d %H:%M}): set the clock"
        )
    return f"{now:%Y-%m-%d %H:%M} UTC"


def _newest_charge(file: Path | None) -> datetime | None:
    if file is None or not file.exists():
        return None
    database = Database(file)
    try:
        entries = Ledger(database).entries()
    finally:
        database.close()
    return datetime.fromisoformat(entries[-1].charged_at) if entries else None


def _certificate(files: CredentialFiles, role: Role, now: datetime) -> str:
    credentials: Credentials = files.load()
    credentials.check(role=role, at=now)
    certificate = credentials.certificate
    warning = expiry_warning(certificate, at=now)
    if warning is not None:
        raise _Concern(warning)
    until = f"until {certificate.not_valid_after_utc:%Y-%m-%d}"
    return f"{subject_of(certificate).name!r}, {until}"


def _identity(path: Path, passphrase: AskPassphrase) -> str:
    return load_identity(path, passphrase=passphrase).public.fingerprint


def _policy(path: Path) -> str:
    policy = Policy.load(path)
    return f"epsilon {policy.epsilon_per_study} a study, {policy.epsilon_in_total} in total"


def _open_files() -> str:
    """Every connection needs one, those of strangers too; the curator raises its own soft limit."""
    most = most_open_files()
    if most < _FEW_OPEN_FILES:
        raise _Concern(
            f"at most {most:,} files and connections: so many callers without a certificate keep "
            "parties out. Set LimitNOFILE=65536 in the unit, or `ulimit -Hn 65536`"
        )
    return f"up to {most:,} files and connections"


def _disk(folder: Path) -> str:
    """Room, and that we may write; the folder is made if it is missing, as the service would."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".doctor"
        probe.write_bytes(b"\0")
        probe.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error
    if free < _LEAST_FREE_BYTES:
        raise InputError(f"{folder}: only {free / 1e9:.1f} GB free; make room for at least 1 GB")
    return f"{folder}: {free / 1e9:.0f} GB free"


def _ledger(file: Path) -> str:
    if not file.exists():
        return "empty"
    database = Database(file)
    try:
        database.check()
        ledger = Ledger(database)
        ledger.verify()
        entries = many(len(ledger.entries()), "entry")
        return f"epsilon {ledger.spent()} spent in {entries}, chain intact"
    finally:
        database.close()


def _rows(
    source: Callable[[], SourceSettings],
    wanted: Study | Schema | None,
    files: CredentialFiles,
    books: Path,
) -> str:
    settings = source()
    settings.check_readable()
    if wanted is None:
        return f"{settings.kind}; not read: give --study or --schema to check it against one"
    opened = settings.open(wanted.schema if isinstance(wanted, Study) else wanted)
    if isinstance(wanted, Study):
        agreed = _member(wanted, files).rows
        if opened.rows != agreed:
            found = many(opened.rows, "row")
            raise InputError(f"{found}; the study says {agreed:,}: ask for a new study")
        if books.exists():
            _unchanged(wanted, opened.snapshot.digest, books)
    return f"{settings.kind}, {many(opened.rows, 'row')}, all of the schema"


def _unchanged(study: Study, digest: str, books: Path) -> None:
    """A study that runs goes on with the table that it began with."""
    database = Database(books)
    try:
        pinned = Journal(database, OsRandomSource()).pinned_data(study.digest)
    finally:
        database.close()
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
    return f"{study.name!r} lists us with our identity; signed by {study.signer or 'nobody'}"


def _at_the_curator(
    settings: PartySettings,
    source: Callable[[], SourceSettings],
    wanted: Study | Schema | None,
    environment: Mapping[str, str],
    clock: Callable[[], datetime],
) -> Iterator[Finding]:
    """What only the curator can tell; nothing more is said of one that does not answer."""
    met: list[_Meeting] = []
    yield _found("curator", lambda: _reached(settings, environment, clock, met))
    for meeting in met:
        yield _found("clocks", meeting.clocks)
        yield _found("versions", meeting.versions)
        yield _found("memory", partial(_memory, settings, meeting.greeting))
        if wanted is None:
            for study in meeting.studies:
                books = settings.folder / "party.db"
                yield _found("invitation", partial(_fits, source, study, meeting.files, books))


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
            raise _Concern(f"{words}: set one of the two; certificates and records go by them")
        return words

    def versions(self) -> str:
        there = self.greeting.software
        if there != software():
            raise _Concern(f"{there} at the curator, {software()} here: use one version")
        return f"{there} on both sides"


def _reached(
    settings: PartySettings,
    environment: Mapping[str, str],
    clock: Callable[[], datetime],
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
    database = Database(settings.folder / "party.db")
    try:
        journal = Journal(database, OsRandomSource())
        require_no_rollback(journal, Policy.load(settings.policy), greeting.studies)
    finally:
        database.close()
    return "our journal knows of every message of ours that the curator has"


def _fits(
    source: Callable[[], SourceSettings], study: Study, files: CredentialFiles, books: Path
) -> str:
    return f"{study.name!r}: {_rows(source, study, files, books)}"


def _revocations(path: Path) -> str:
    listed = peers.parse_revocations(read(path).decode(errors="replace"), path)
    return f"{many(len(listed), 'certificate')} revoked"


def _studies(settings: CuratorSettings) -> str:
    database, _ = open_store(settings)
    try:
        database.check()
    finally:
        database.close()
    return many(len(records(settings)), "study")


def _parties(settings: CuratorSettings) -> str:
    """Who called, with which version: another than ours may speak another protocol."""
    database, store = open_store(settings)
    try:
        seen = store.parties()
    finally:
        database.close()
    other = [f"{name!r} runs {version}" for name, version in seen.items() if version != software()]
    if other:
        raise _Concern(f"{', '.join(other)}; we run {software()}: use one version")
    return f"{len(seen)} have called, all with {software()}" if seen else "nobody has called yet"


def _address(listen: str) -> str:
    """Whether the port can be had; one that is taken is most likely taken by the curator itself."""
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except (OSError, ValueError, OverflowError) as error:
            raise InputError(
                f"{listen}: cannot be listened on ({error}); is a curator running there already?"
            ) from error
    return f"{listen} is free"
