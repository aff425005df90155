"""Checks whether a party's node is ready for a study: one finding for everything that can stop one.

The checks change nothing, except that the curator learns that we called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import numpy as np

from common.crypto.key_files import AskPassphrase, load_identity, load_public_identity
from common.errors import InputError
from common.privacy.randomness import OsRandomSource
from common.schema import Schema
from common.schema.linked import LinkedCodes, breaking_events
from common.service import checks
from common.service.checks import CheckResult, Concern, certificate, found, running, state_folder
from common.service.process import Clock, software
from common.study.document import Study
from common.study.members import Member
from common.wire.catalogue import PROTOCOL
from common.wire.pki.certificates import Role, subject_of
from common.wire.pki.credentials import CredentialFiles
from common.wording import many
from party import app as party_app
from party.client.connection import Greeting
from party.client.context import require_no_rollback
from party.client.dialer import Dialer
from party.journal import Journal
from party.ledger import Ledger
from party.owner.policy import Policy
from party.settings import PartySettings, open_file
from party.sources.settings import OwnersTable
from party.state import is_there, reading, require_not_lost
from party.totals import spent_words

_CLOCKS_DIFFER = timedelta(minutes=5)
_CLOCKS_OFF_S = 60.0


def examine_party(
    settings: PartySettings,
    source: Callable[[], OwnersTable],
    coming: Study | Schema | None,
    *,
    environment: Mapping[str, str],
    clock: Clock,
    passphrase: AskPassphrase,
    monitored: bool = False,
) -> Iterator[CheckResult]:
    """Check everything that a node needs, also for the study or schema that is `coming`, if any."""
    files = CredentialFiles.in_folder(settings.keys, Role.PARTY)
    here = _Node(settings, source, files)
    key = settings.keys / "identity.key"
    yield found("version", lambda: f"{software()}, protocol {PROTOCOL}")
    yield found("clock", lambda: here.clock(clock()))
    yield found("certificate", lambda: certificate(files, Role.PARTY, clock()))
    yield found("identity", lambda: load_identity(key, passphrase=passphrase).public.fingerprint)
    yield found("policy", here.policy)
    yield found("disk", lambda: state_folder(settings.folder))
    yield found("ledger", here.ledger)
    yield found("data source", lambda: here.rows(coming))
    if isinstance(coming, Study):
        yield found("study", lambda: here.lists_us(coming))
    if monitored:
        yield found("running", lambda: running(settings.folder))
    # A curator that does not answer is one finding, and the last.
    met: list[_Meeting] = []
    yield found("curator", lambda: _reached(settings, environment, clock, met))
    for meeting in met:
        yield found("clocks", meeting.clocks)
        yield found("versions", meeting.versions)
        yield found("rollback", partial(here.rollback, meeting.greeting))
        for study in meeting.studies if coming is None else ():
            yield found("invitation", partial(here.fits, study))


@dataclass(frozen=True, slots=True)
class _Node:
    """What is on this machine: settings, keys, policy, state and rows."""

    settings: PartySettings
    source: Callable[[], OwnersTable]
    files: CredentialFiles

    @property
    def has_state(self) -> bool:
        return is_there(self.settings.folder)

    def clock(self, now: datetime) -> str:
        """Refuse a clock that is before what has happened; the curator's is compared later."""
        words = checks.clock(self.files, now)
        entries = []
        if self.has_state:
            with open_file(self.settings) as database:
                entries = Ledger(database).entries()
        newest = datetime.fromisoformat(entries[-1].charged_at) if entries else now
        if now + _CLOCKS_DIFFER < newest:
            raise InputError(
                f"it is {now:%Y-%m-%d %H:%M} here, before the newest entry of the ledger "
                f"({newest:%Y-%m-%d %H:%M}). Set the clock"
            )
        return words

    def policy(self) -> str:
        policy = Policy.load(self.settings.policy)
        policy.check_unit(source_of_people=self._names_people())
        delta = f", delta up to {float(policy.max_delta):g}" if policy.max_delta else ""
        return (
            f"epsilon {policy.epsilon_per_study} a study, {policy.epsilon_in_total} in total{delta}"
        )

    def _names_people(self) -> bool:
        """Say whether the source names people; what is wrong with it is a finding of its own."""
        try:
            return self.source().names_people
        except InputError:
            return False

    def ledger(self) -> str:
        require_not_lost(self.settings.folder, keys=self.settings.keys)
        if not self.has_state:
            return "none yet: it begins with the first decision, or with `parley party join`"
        with open_file(self.settings) as database:
            database.check()
            ledger = Ledger(database)
            ledger.verify()
            entries = many(len(ledger.entries()), "entry")
            return f"{spent_words(ledger.totals())} spent in {entries}, chain intact"

    def rows(self, coming: Study | Schema | None) -> str:
        table = self.source()
        table.check_readable()
        if coming is None:
            return f"{table.kind}; not read: give --study or --schema to check it against one"
        if isinstance(coming, Study):
            # What a rehearsal would be about is checked: nothing but a node simulates rows.
            coming = replace(coming, rehearsal=False, signature=None)
            schema, member = coming.schema, self._member(coming)
            opened = party_app.open_rows(table, coming, member.name, self.settings.folder)
            if opened.rows != member.rows:
                counted = many(opened.rows, schema.row)
                raise InputError(
                    f"the table has {counted}, and the study says {member.rows:,}. Ask for a new "
                    "study"
                )
            self._require_unchanged(coming, opened.snapshot.digest)
        else:
            schema, opened = coming, table.open(coming)
        broken = _broken(table, schema)
        note = f"; {opened.snapshot.note}" if schema.events is not None else ""
        return f"{table.kind}, {many(opened.rows, schema.row)}, all of the schema{broken}{note}"

    def _require_unchanged(self, study: Study, digest: str) -> None:
        """Refuse another table than the one that a running study began with."""
        if not self.has_state:
            return
        with open_file(self.settings) as database:
            pinned = Journal(database, OsRandomSource()).pinned_data(study.digest)
        if pinned not in (None, digest):
            raise InputError(
                f"study {study.name!r}: the data changed since the study began. Restore the data "
                "as it was, or give the study up with `parley party decline`"
            )

    def fits(self, study: Study) -> str:
        return f"{study.name!r}: {self.rows(study)}"

    def _member(self, study: Study) -> Member:
        name = subject_of(self.files.load().certificate).name
        return study.member(name)

    def lists_us(self, study: Study) -> str:
        ours = load_public_identity(self.settings.keys / "identity.pub")
        if self._member(study).identity.encoded != ours.encoded:
            raise InputError(
                f"study {study.name!r}: the study pins another identity than ours "
                f"({ours.fingerprint}). Send our identity.pub to the curator's operator, and ask "
                "for a new study"
            )
        signed = f"signed by {study.signer}" if study.signer else "not signed"
        return f"{study.name!r} lists us with our identity; {signed}"

    def rollback(self, greeting: Greeting) -> str:
        """Compare the journal here with what the curator has of us."""
        with reading(self.settings.folder, keys=self.settings.keys) as database:
            journal = Journal(database, OsRandomSource())
            require_no_rollback(journal, Policy.load(self.settings.policy), greeting.studies)
        return "none: our journal has every message of ours that the curator has"


def _broken(table: OwnersTable, schema: Schema) -> str:
    """Say how many rows break a rule, for the owner's terminal alone."""
    ruled = schema.possible_events.rules
    if not schema.rules and not ruled:
        return ""
    rows = events = 0
    for codes in table.open(schema.without_rules()).chunks():
        rows += codes.rows - int(schema.possible.holds(codes).sum())
        if ruled and isinstance(codes, LinkedCodes):
            events += int(np.logical_or.reduce(breaking_events(schema, codes)).sum())
    breaking = f"; {many(rows, 'row')} broke a rule, counted as the nearest possible row"
    of_events = f"; {many(events, 'event')} broke a rule, counted as the nearest possible event"
    return breaking * bool(schema.rules) + of_events * bool(ruled)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """A call at the curator: what it said, when by our clock, and the studies that are open."""

    greeting: Greeting
    at_s: float
    took_s: float
    studies: Sequence[Study]

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
            Study.from_toml(connection.fetch_study(study.study), where=f"study {study.name!r}")
            for study in greeting.studies
            if not study.state.over
        ]
    met.append(_Meeting(greeting, before + took / 2, took, studies))
    return f"{address.words}: reached; studies that list us: {len(greeting.studies)}"
