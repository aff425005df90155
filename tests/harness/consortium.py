"""A curator and its parties on loopback, with real certificates, for tests."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np

from common.crypto.key_files import load_identity
from common.crypto.paillier.blinding import PowerBlinder
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.service.database import Database
from common.service.process import system_clock
from common.wire import codec
from common.wire.catalogue import ErrorCode, WireError
from common.wire.pki.keyring import init_curator, init_party
from curator.server.service import CuratorServer
from curator.store.records import StudyState
from curator.store.store import Store
from curator.studies import Studies
from parley.simulation.in_process import RowsInMemory
from party import app as party_app
from party.client.connection import HungUpError
from party.client.context import PartyContext
from party.client.dialer import Address, Backoff, Dialer
from party.client.session import Need, PartySession
from party.client.sessions import SessionManager
from party.client.turn import Turn
from party.collection import Collection
from party.journal import CURATOR, Journal, JournalState, Notes
from party.ledger import Ledger
from party.owner.decisions import Approvals
from party.owner.dry_run import PlannedStep
from party.owner.policy import Policy
from party.sources.source import Snapshot
from tests.harness.policies import GivenPolicy
from tests.harness.roles import replayed
from tests.harness.small_study import SIZES, EveryKindOfStep, make_study

LOOPBACK = ("127.0.0.1",)
NAMES = ("north", "east", "south", "west", "centre", "coast", "hills", "lake", "plain", "island")
POLICY = Policy(
    epsilon_per_study=Fraction(100),
    epsilon_in_total=Fraction(1000),
    max_delta=Fraction(1, 10**6),
    min_parties=1,
    profiles=("sound", "paper"),
    automatic=True,
)


def forecast(study, party):
    return [PlannedStep(phase="everything", cost=Fraction(50))]


class Rows(RowsInMemory):
    """Rows in memory as a source."""

    @property
    def snapshot(self):
        return Snapshot(rows=self.rows, digest="d", as_of=None)


def authority(folder, *, hosts=LOOPBACK, now=None):
    """Make the keys of a curator that certifies its parties itself."""
    return init_curator(folder, "hub", hosts, now=now or system_clock(), external=False)


def enrolled(ring, folder, name, *, days=30, now=None):
    """Make the keys of a party with a certificate of this authority."""
    now = now or system_clock()
    own = init_party(folder, name)
    _, path = ring.approve(own.read_request(), days=days, now=now)
    own.trust(ring.files.authority.read_bytes(), where=path)
    own.accept(path.read_bytes(), where=path, now=now)
    return own


class Curator:
    """A curator on files that outlive it."""

    def __init__(self, folder, ring):
        self.folder, self.ring = folder, ring
        self.keys = SeededRandomSource("curator")  # outlives, so that two runs draw the same keys
        self.outcomes = []
        self.begin = EveryKindOfStep
        self.prior_of = lambda study: None
        self.clock, self.monotonic = system_clock, time.monotonic
        self.port = 0
        self.frame_timeout_s = 60.0
        self.running = False
        self.identity = load_identity(ring.identity)

    def keys_on(self, database):
        """Return where the keys of steps are drawn from."""
        return self.keys

    def publish(self, outcome):
        self.outcomes.append(outcome)
        return Path("release")

    def start(self):
        self.database = Database(self.folder / "curator.db", logged=True)
        self.store = Store(self.database, self.keys_on(self.database))
        self.background = ThreadPoolExecutor(1)
        self.studies = Studies(
            self.store,
            begin=self.begin,
            publish=self.publish,
            clock=lambda: self.clock(),  # noqa: PLW0108  # a test may change both clocks
            monotonic=lambda: self.monotonic(),  # noqa: PLW0108
            later=self.background.submit,
            prior_of=self.prior_of,
        )
        self.studies.open()
        self.server = CuratorServer(
            self.studies,
            files=self.ring.files,
            revoked=self.ring.revoked,
            listen=f"127.0.0.1:{self.port}",
            clock=self.clock,
            software="test",
            identity=self.identity,
            most_streams=200,
            frame_timeout_s=self.frame_timeout_s,
        )
        self.port = self.server.start()
        self.running = True

    def stop(self):
        if self.running:
            self.running = False
            self.server.stop(grace_s=0)
            self.background.shutdown()
            self.database.close()

    def restart(self):
        self.stop()
        self.start()


class Party:
    """A party on files that outlive it."""

    def __init__(self, folder, name, ring, table, curator):
        self.folder, self.name, self.ring, self.table = folder, name, ring, table
        self.curator = curator
        self.identity = load_identity(ring.identity)
        self.keys = SeededRandomSource(name)
        self.policy = POLICY
        self.begin = EveryKindOfStep
        self.priors = None
        self.clock = system_clock
        self.forecast = forecast
        self.rows = Rows
        self.blinder_of = PowerBlinder
        self.stopping = threading.Event()
        self.path = folder / f"{name}.db"

    def keys_on(self, database):
        """Return where the keys of steps are drawn from."""
        return self.keys

    @contextlib.contextmanager
    def context(self):
        database = Database(self.path, logged=True)
        try:
            yield PartyContext(
                name=self.name,
                identity=self.identity,
                policies=GivenPolicy(self.policy),
                approvals=Approvals(database),
                journal=Journal(database, self.keys_on(database)),
                ledger=Ledger(database),
                notes=Notes(database),
                collection=Collection(database),
                check_source=self.check_source,
                open_source=lambda study: self.rows(self.table),
                begin=self.begin,
                forecast=self.forecast,
                clock=self.clock,
                blinder_of=self.blinder_of,
                priors=self.priors,
            )
        finally:
            database.close()

    def check_source(self):
        """Accept: rows in memory can always be read."""

    def dialer(self, *, port=None, proxy=None):
        target = f"127.0.0.1:{port or self.curator.port}"
        address = Address(target=target, proxy=proxy, files=self.ring.files, software="test")
        return Dialer(address, self.clock)

    def dial(self, **changes):
        return self.dialer(**changes).dial()

    def backoff(self, attempts=200):
        return Backoff(first_s=0.02, longest_s=0.1, attempts=attempts, source=SeededRandomSource(0))

    def manager(self, context, **changes):
        """Manage all studies of this party, as `parley party join` does."""
        chosen = {"dialer": self.dialer(), "look_again_s": 0.05, "seats": 16, **changes}
        return SessionManager(context, backoff=self.backoff, stopping=self.stopping, **chosen)

    def attend(self, study, *, dial=None):
        """Attend one study, turn by turn; return how it ended, None if told to stop before."""
        backoff = self.backoff()
        with self.context() as context:
            session = PartySession(study.digest, context)
            while True:
                wait, turn = 0.02, Turn()
                try:
                    with (dial or self.dial)() as connection:
                        ended = take_turn(session, turn, connection, context, study)
                    if ended is not None:
                        return ended
                except HungUpError:
                    return session.ended()
                except WireError as error:
                    if turn.messages:
                        backoff.progressed()
                    wait = backoff.after(error)
                if self.stopping.wait(wait):
                    return None


def take_turn(session, turn, connection, context, study):
    """Do what the manager does for a study when it looks; return how the study ended."""
    invited = connection.enrol(context.name, context.identity.public.encoded)
    summary = next((each for each in invited if each.study == study.digest), None)
    if summary is None:
        raise WireError(ErrorCode.STUDY_UNKNOWN)
    need = session.needs(summary)
    if need is Need.OVER:
        return session.ended() or JournalState.ABORTED
    return None if need is Need.NOTHING else session.take_turn(turn, connection, summary)


def random_tables(names):
    rng = np.random.default_rng(7)
    return {
        name: Codes.from_columns([rng.integers(0, s, 40 + 10 * i) for s in SIZES], SIZES)
        for i, name in enumerate(names)
    }


class Consortium:
    """Everybody, and the study they are about; `tables` by name, or small ones at random."""

    def __init__(self, folder, names, *, tables=None, **changes):
        ring = authority(folder / "curator")
        self.curator = Curator(folder, ring)
        tables = random_tables(names) if tables is None else tables
        self.parties = {}
        for name in names:
            own = enrolled(ring, folder / name, name)
            self.parties[name] = Party(folder, name, own, tables[name], self.curator)
        self.study = make_study(
            {name: party.identity for name, party in self.parties.items()},
            {name: party.table.rows for name, party in self.parties.items()},
            **changes,
        )

    def attend_all(self, parties=None):
        """Attend with every party in a thread; return how the study ended for each."""
        parties = self.parties if parties is None else parties
        with ThreadPoolExecutor(len(parties)) as threads:
            futures = {
                name: threads.submit(party.attend, self.study) for name, party in parties.items()
            }
            try:
                return {name: future.result(timeout=60) for name, future in futures.items()}
            finally:
                for party in parties.values():
                    party.stopping.set()


def in_process(consortium, key, *, drop=None):
    """Run the roles with the consortium's keys in one loop, without any network."""
    parties = consortium.parties.items()
    return replayed(
        consortium.study,
        consortium.curator.begin,
        {name: party.identity for name, party in parties},
        {name: party.table for name, party in parties},
        key=key,
        drop=drop,
    )


def check_release(consortium):
    """Expect one release, that of the in-process run, and one charge of every party."""
    record = consortium.curator.store.record(consortium.study.digest)
    assert (record.state, record.place, record.cause) == (StudyState.DONE, "release", "")
    outcome = consortium.curator.outcomes[-1]
    assert same_results(outcome.model.results, in_process(consortium, consortium.key).model.results)
    assert len({step.name for step in outcome.steps}) == len(outcome.steps) == record.step
    for name, party in consortium.parties.items():
        expected = sum(step.costs.get(name, 0) for step in outcome.steps)
        with party.context() as context:
            assert context.ledger.spent() == expected
            assert list(context.journal.outbox.due(consortium.study.digest, CURATOR)) == []


def wait_until_finished(context, study):
    """Give a party that attends in another thread its time."""
    for _ in range(1500):
        if context.journal.state(study.digest) is JournalState.FINISHED:
            return
        time.sleep(0.02)
    raise AssertionError(f"the study is {context.journal.state(study.digest)} after 30 seconds")


def finish(consortium):
    assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
    check_release(consortium)


def same_results(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a, b) for a, b in zip(first, second, strict=True)
    )


class Crash(BaseException):
    """A party dies here."""


class Wrapped:
    """A connection that something is wrong with."""

    def __init__(self, connection):
        self.connection = connection

    def __getattr__(self, name):
        return getattr(self.connection, name)


class Doubling(Wrapped):
    """Delivers everything twice, in both directions."""

    def submit(self, study, messages):
        messages = list(messages)
        for one in messages:
            self.connection.submit(study, [one])
        return self.connection.submit(study, messages)

    def approve(self, study, signature):
        self.connection.approve(study, signature)
        self.connection.approve(study, signature)

    def work(self, study, *, received):
        for whole in self.connection.work(study, received=received):
            yield whole
            yield whole


class Mortal(Wrapped):
    """Dies after every message, before the answer leaves on even days."""

    deaths = 0

    def work(self, study, *, received):
        for whole in self.connection.work(study, received=received):
            yield whole
            Mortal.deaths += 1
            raise Crash

    def submit(self, study, messages):
        Mortal.deaths += 1
        if Mortal.deaths % 2:
            raise Crash
        return self.connection.submit(study, messages)


def wrapping(party, kind):
    """Return a party's `dial` whose connections are of that kind."""

    @contextlib.contextmanager
    def dial_wrapped():
        with Party.dial(party) as connection:
            yield kind(connection)

    return dial_wrapped


_patching = threading.Lock()


@contextlib.contextmanager
def dialing_by(dialer):
    """Put nodes together with another dialer; only one thread at a time may swap it."""
    with _patching, mock.patch.object(party_app, "Dialer", dialer):
        yield


def dying_at(*kinds):
    """Make a dialer whose party dies when a message of such a kind comes, before it is on disk."""

    class Dying(Wrapped):
        def work(self, study, *, received):
            for whole in self.connection.work(study, received=received):
                if isinstance(codec.TO_PARTY.decode(whole.body), kinds):
                    raise Crash
                yield whole

    class DyingDialer(Dialer):
        @contextlib.contextmanager
        def dial(self):
            with super().dial() as connection:
                yield Dying(connection)

    return DyingDialer
