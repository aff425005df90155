"""A party's node put together from its settings. Nothing is wired elsewhere."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from common.crypto.key_files import AskPassphrase, load_identity
from common.errors import InputError
from common.files import write_new
from common.privacy.randomness import OsRandomSource
from common.privacy.secret import Secret
from common.release.prior import Priors
from common.service.alerts import Hook
from common.service.metrics import Sample, certificate_gauge, gauge, serving_metrics
from common.service.process import Clock, alone_in
from common.service.settings import asking
from common.study.document import Study
from common.study.script import ScriptRun
from common.wire.pki.certificates import Role, expiry_warning, fingerprint, subject_of
from common.wire.pki.credentials import CredentialFiles
from common.wire.tls import proxy_from
from party.client.context import PartyContext
from party.client.dialer import Address, Backoff, Dialer
from party.client.sessions import SessionManager
from party.collection import Collection
from party.journal import Journal, JournalState, Notes
from party.ledger import Ledger
from party.owner.decisions import Approvals
from party.owner.dry_run import dry_run
from party.owner.policy_file import PolicyFile
from party.releases import Collector
from party.retention import Retention
from party.settings import PartySettings, open_file
from party.sources.people import PeopleLimit
from party.sources.settings import OwnersTable
from party.sources.simulated import SimulatedSource
from party.sources.source import Source
from party.state import begin_anew, is_there, reading, require_not_lost
from party.totals import Unit

logger = logging.getLogger(__name__)
_PEOPLE_KEY = "people.key"
_SECRET_BYTES = 32


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
    for state in JournalState:
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
        identity = load_identity(
            settings.keys / "identity.key",
            passphrase=passphrase or asking(settings.passphrase_file, {}),
        )
        retention = Retention(database, identity, lambda: policies.current.keep_for_audit)
        yield PartyContext(
            name=name,
            identity=identity,
            policies=policies,
            approvals=Approvals(database),
            journal=Journal(database, OsRandomSource(), retention),
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
            authorities=[fingerprint(certificate) for certificate in credentials.authorities],
        )


def open_rows(source: OwnersTable, study: Study, name: str, folder: Path) -> Source:
    """Open a party's rows as a study has them: those of people where it protects people.

    The secret by which rows and events of people are chosen is kept in the node's folder. In a
    rehearsal the owner's table is not opened: its rows are simulated.
    """
    if study.rehearsal:
        rows = study.member(name).rows
        return SimulatedSource(study.schema, rows, seed=f"{name} in {study.name}")
    if not study.person_rows:
        return source.open(study.schema)
    rows = study.member(name).rows
    secret = _people_secret(folder).reveal()
    key = hashlib.blake2b(study.digest, key=secret, digest_size=32).digest()
    if study.schema.events is not None:
        return source.open(study.schema, secret=key)
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
