"""A party's node put together from its settings. Nothing is wired elsewhere.

with alone(settings), party_context(settings, source, clock=clock) as context:
    session_manager(settings, context, stopping=stopping, ...).run(once=False)
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.crypto.key_files import AskPassphrase, load_identity
from common.errors import InputError
from common.files import write_new
from common.privacy.randomness import OsRandomSource
from common.privacy.secret import Secret
from common.release.prior import Priors
from common.service.alerts import Hook, check_webhook
from common.service.database import Database, OtherTablesError
from common.service.metrics import Sample, certificate_gauge, gauge, serving_metrics
from common.service.process import Clock, alone_in, check_level
from common.service.settings import (
    Settings,
    asking,
    check_address,
    check_seconds,
    check_whole,
    read_settings,
)
from common.study.document import Study
from common.study.script import ScriptRun
from common.wire.pki.certificates import Role, expiry_warning, fingerprint, subject_of
from common.wire.pki.credentials import CredentialFiles
from common.wire.tls import proxy_from
from party.client.context import PartyContext
from party.client.dialer import Address, Backoff, Dialer
from party.client.sessions import DEFAULT_SEATS, SessionManager
from party.journal import Journal, Notes, StudyState
from party.ledger import Ledger
from party.owner.decisions import Approvals
from party.owner.dry_run import dry_run
from party.owner.policy_file import PolicyFile
from party.releases import Collection, Collector
from party.sources.people import PeopleLimit
from party.sources.settings import OwnersTable, owners_table
from party.sources.source import Source
from party.state import STATE, begin_anew, is_there, open_state, reading, require_not_lost
from party.totals import Unit

logger = logging.getLogger(__name__)
_PEOPLE_KEY = "people.key"
_SECRET_BYTES = 32

PREFIX = "PARLEY_PARTY_"
MOST_ATTEMPTS = 1_000_000_000
MOST_SEATS = 1_000  # each is a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class PartySettings:
    """How a party's node runs. Its name is the one in its certificate.

    Attributes:
        folder: where ledger, journal and decisions are kept.
        keys: the folder of its keys, as `parley keys init` makes it.
        policy: the owner's policy file.
        curator: host and port of the curator.
        passphrase_file: a file whose first line opens the identity, if that is under a passphrase;
            only the owner may be able to read it.
        attempts: how many failures in a row are borne before giving up; at least 1.
        first_wait_s: after the first failure; doubled from one to the next. Durations are from
            0.001 to 86,400 seconds.
        longest_wait_s: between two attempts.
        look_again_s: how often to look for invitations and for the owner's decisions.
        seats: how many studies are worked on at a time; the rows of at most twice as many are held
            in memory. Studies that wait for their owner or for other parties take no seat.
        releases: where the node puts the releases of the studies that it finished; by default
            `releases` in its folder.
        fetch_releases: whether the node fetches and verifies them by itself.
        countersign: whether it countersigns those that its own records confirm.
        webhook: an address that is sent a JSON object (POST) when a study waits for its owner,
            cannot go on here, or ends; empty for none.
        on_event: a program that is given the same object on its standard input.
        log_level: debug, info, warning or error.
        metrics: address and port of the metrics; empty for none.
    """

    folder: Path
    keys: Path
    policy: Path
    curator: str
    passphrase_file: Path | None = None
    attempts: int = 1000
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0
    look_again_s: float = 5.0
    seats: int = DEFAULT_SEATS
    releases: Path | None = None
    fetch_releases: bool = True
    countersign: bool = True
    webhook: str = ""
    on_event: Path | None = None
    log_level: str = "info"
    metrics: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot work before anything is opened."""
        check_address("curator", self.curator, least_port=1)
        if self.metrics:
            check_address("metrics", self.metrics)
        check_whole("attempts", self.attempts, most=MOST_ATTEMPTS)
        check_whole("seats", self.seats, most=MOST_SEATS)
        for key in ("first_wait_s", "longest_wait_s", "look_again_s"):
            check_seconds(key, getattr(self, key))
        check_webhook("webhook", self.webhook)
        check_level(self.log_level)


def party_settings(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> Settings[PartySettings]:
    """Read defaults, then the settings file, then `PARLEY_PARTY_*`, then flags."""
    return read_settings(
        PartySettings, prefix=PREFIX, file=file, environment=environment, flags=flags or {},
        tables=("source",),
    )  # fmt: skip


def source_settings(
    settings: Settings[PartySettings], file: Path | None, environment: Mapping[str, str]
) -> OwnersTable:
    """Read the `[source]` of the settings file; paths are relative to that file."""
    if "source" not in settings.tables:
        raise InputError("settings: there is no [source]. Add one that says where the rows are")
    folder = Path() if file is None else file.parent
    return owners_table(settings.tables["source"], folder=folder, environment=environment)


def metrics(settings: PartySettings, context: PartyContext) -> AbstractContextManager[None]:
    """Serve the node's metrics for the length of a block, if the settings ask for them."""
    files = CredentialFiles.in_folder(settings.keys, Role.PARTY)
    return serving_metrics(
        settings.metrics, lambda: party_samples(context.journal, context.ledger, files)
    )


def party_samples(journal: Journal, ledger: Ledger, files: CredentialFiles) -> Iterator[Sample]:
    """Yield what an owner watches: budget, studies by state, bytes that left, the certificate."""
    totals = ledger.totals()
    states = Counter(record.state for record in journal.studies())
    for state in StudyState:
        yield gauge(
            "parley_party_studies",
            states[state],
            "Studies that this party took part in, by state.",
            {"state": state.value},
        )
    for unit in Unit:
        spending = totals.paid_by(unit)
        yield gauge(
            "parley_party_epsilon_spent",
            float(spending.epsilon),
            "Epsilon that a row paid for all studies, or a person for the studies of people.",
            {"unit": unit.value},
        )
        yield gauge(
            "parley_party_rho_spent",
            float(spending.rho),
            "Rho that a row paid for all studies with a delta, or a person for those of people.",
            {"unit": unit.value},
        )
    yield gauge(
        "parley_party_released_bytes",
        sum(departure.size for departure in journal.sent_log()),
        "Bytes of all messages that left, over all studies.",
    )
    yield certificate_gauge(files)


def open_file(settings: PartySettings, *, begin: bool = False) -> Database:
    """Open ledger, journal and decisions; with `begin`, make them if there never were any."""
    return open_state(settings.folder, keys=settings.keys, begin=begin)


def open_ledger(settings: PartySettings, *, warn: Callable[[str], None]) -> Database:
    """Open the file of the ledger; only for reading if its tables are of an unknown version."""
    try:
        return open_file(settings)
    except OtherTablesError as error:
        warn(f"{error}. The ledger is only read")
        return Database(settings.folder / STATE, read_only=True, any_version=True)


@contextmanager
def alone(settings: PartySettings, *, anew: bool = False) -> Iterator[None]:
    """Be the only node of this party, on a sound file, for the length of a block.

    With `anew`, a ledger is begun in place of a lost one.

    Raises:
        InputError: another node runs on the same folder, or the ledger is lost.
        LocalError: the file is damaged.
    """
    if anew:
        begin_anew(settings.folder, keys=settings.keys)
    require_not_lost(settings.folder, keys=settings.keys)  # before the lock makes the folder
    with alone_in(settings.folder, service="node of this party"):
        with open_file(settings, begin=True) as database:
            database.check_at_start()
        yield


@contextmanager
def party_context(
    settings: PartySettings,
    source: OwnersTable,
    *,
    clock: Clock,
    passphrase: AskPassphrase | None = None,
    begin: Callable[[Study], ScriptRun] | None = None,
    only_read: bool = False,
) -> Iterator[PartyContext]:
    """Load what this party is and has, which is enough to review studies without a network.

    By default the settings name the passphrase, and the study its script. With `only_read`, no
    ledger is begun.
    """
    priors = Priors(settings.folder / "priors")
    begin = begin or priors.begin
    credentials = CredentialFiles.in_folder(settings.keys, Role.PARTY).load()
    certificate = credentials.certificate
    warning = expiry_warning(certificate, at=clock())
    if warning is not None:
        logger.warning("%s", warning)
    policies = PolicyFile(
        settings.policy,
        clock,
        check=lambda policy: policy.check_unit(source_of_people=source.names_people),
    )
    with (
        reading(settings.folder, keys=settings.keys)
        if only_read
        else open_file(settings, begin=True)
    ) as database:
        ledger = Ledger(database)
        ledger.verify()  # before anything is decided or charged on the strength of it
        name = subject_of(certificate).name
        yield PartyContext(
            name=name,
            identity=load_identity(
                settings.keys / "identity.key",
                passphrase=passphrase or asking(settings.passphrase_file, {}),
            ),
            policies=policies,
            approvals=Approvals(database),
            journal=Journal(database, OsRandomSource()),
            ledger=ledger,
            notes=Notes(database),
            collection=Collection(database),
            check_source=source.check_readable,
            open_source=lambda study: open_rows(source, study, name, settings.folder),
            begin=begin,
            forecast=partial(dry_run, begin=begin),
            clock=clock,
            hook=Hook(webhook=settings.webhook, command=settings.on_event),
            priors=priors,
            source_of_people=source.names_people,
            authorities=[fingerprint(each) for each in credentials.authorities],
        )


def open_rows(source: OwnersTable, study: Study, name: str, folder: Path) -> Source:
    """Open a party's rows as a study has them: those of people where it protects people.

    The secret by which rows of people are chosen is kept in the node's folder.
    """
    if not study.rows_per_person:
        return source.open(study.schema)
    rows = study.member(name).rows
    secret = _people_secret(folder).reveal()
    key = hashlib.blake2b(study.digest, key=secret, digest_size=32).digest()
    limit = PeopleLimit(rows=rows, per_person=study.rows_per_person, key=key, filler=study.digest)
    return source.open(study.schema, people=limit)


def _people_secret(folder: Path) -> Secret[bytes]:
    """Draw the secret once, before the first study reads a row; a restart reads it again.

    Where no state was begun, the secret is for a look at the rows, and is not kept.
    """
    file = folder / _PEOPLE_KEY
    if not file.exists():
        drawn = OsRandomSource().random_bytes(_SECRET_BYTES)
        if not is_there(folder):
            return Secret(drawn)
        write_new(file, drawn, mode=0o600)
    secret = file.read_bytes()
    if len(secret) != _SECRET_BYTES:
        raise InputError(f"{file}: the secret by which rows are chosen is damaged. Restore it")
    return Secret(secret)


def session_manager(
    settings: PartySettings,
    context: PartyContext,
    *,
    environment: Mapping[str, str],
    stopping: threading.Event,
    software: str,
) -> SessionManager:
    """Return the manager of every study that this party is invited to, now and later."""
    address = address_of(settings, environment=environment, software=software)
    dialer = Dialer(address, context.clock)
    collector = Collector(
        context=context,
        folder=settings.releases or settings.folder / "releases",
        countersigns=settings.countersign,
        dial=dialer.dial,
    )
    return SessionManager(
        context,
        dialer=dialer,
        collector=collector if settings.fetch_releases else None,
        backoff=lambda: Backoff(
            first_s=settings.first_wait_s,
            longest_s=settings.longest_wait_s,
            attempts=settings.attempts,
            source=OsRandomSource(),
        ),
        stopping=stopping,
        look_again_s=settings.look_again_s,
        seats=settings.seats,
    )


def address_of(
    settings: PartySettings, *, environment: Mapping[str, str], software: str
) -> Address:
    """Return the way to the curator, with the proxy that the environment names."""
    return Address(
        target=settings.curator,
        proxy=proxy_from(environment, host=settings.curator.rpartition(":")[0]),
        files=CredentialFiles.in_folder(settings.keys, Role.PARTY),
        software=software,
    )
