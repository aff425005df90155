"""Owners that come back when their study is done and the curator's queue for them is gone."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from common.privacy.randomness import OsRandomSource
from common.release.verify import verify
from common.service.database import Database
from common.service.process import system_clock
from common.study.messages import ResultPublished, StudyFinished
from common.wire import codec
from common.wire.catalogue import ErrorCode, WireError
from curator.app import propose
from curator.settings import curator_settings, open_store
from curator.store.records import StudyState
from curator.store.store import KEEP_QUEUES_H
from party import app as party_app
from party.client.dialer import Dialer
from party.journal import Journal, JournalState
from party.owner import decisions
from party.settings import party_settings, source_settings
from tests.harness.consortium import Crash, Wrapped, dialing_by, dying_at
from tests.harness.deployed_folder import serving

OWNERS = ("north", "east")


@contextlib.contextmanager
def manager_of(place, name, port, *, dialer=Dialer):
    """Open an owner's folder as `parley party join` does; yield its context and its manager."""
    path = place.folder / name / "party.toml"
    settings = party_settings(path, {})
    quick = {"look_again_s": 0.2, "first_wait_s": 0.1, "curator": f"127.0.0.1:{port}"}
    values = replace(settings.values, **quick)
    source = source_settings(settings, path, {})
    stopping = threading.Event()
    with party_app.party_context(values, source, clock=system_clock) as context:
        with dialing_by(dialer):
            manager = party_app.session_manager(
                values, context, environment={}, stopping=stopping, software="parley"
            )
        manager.stopping = stopping
        yield context, manager


def join(place, name, port, study, *, dialer=Dialer):
    with manager_of(place, name, port, dialer=dialer) as (context, manager):
        seen = context.review(study, context.open_source(study))
        decisions.approve(context.approvals, seen, at=context.now())
        return manager.run(once=True)


def run_without_the_end(place, written, *kinds):
    """Run a study whose end north misses; return the settings of the curator, where it is done."""
    hub = curator_settings(place.folder / "hub" / "curator.toml", {}).values
    propose(hub, written, clock=system_clock)
    with serving(hub) as port, ThreadPoolExecutor(2) as threads:
        east = threads.submit(join, place, "east", port, written)
        with pytest.raises(Crash):
            join(place, "north", port, written, dialer=dying_at(*kinds))
        assert east.result(timeout=120) == {written.digest: JournalState.FINISHED}
    with open_store(hub) as store:
        assert store.record(written.digest).state is StudyState.DONE
    return hub


def drop_queues(hub, study):
    with open_store(hub) as store:
        store.age_queues(hours=KEEP_QUEUES_H)
        assert store.outbox.next(study.digest, "north", after=0) is None


def secrets_of(place, name):
    """Count the step keys and message bodies in an owner's file."""
    with Database(place.folder / name / "state" / "party.db") as database:
        return [
            database.rows(f"SELECT COUNT(*) FROM {what}")[0][0]  # noqa: S608  # ours
            for what in ("step_key", "received WHERE body IS NOT NULL", "content")
        ]


def record_of(place, name, study):
    with Database(place.folder / name / "state" / "party.db") as database:
        return Journal(database, OsRandomSource()).record(study.digest)


def signers(hub):
    (released,) = hub.releases.iterdir()
    return {signature.name for signature in verify(released).checked.signatures}


@pytest.mark.parametrize("missed", [(StudyFinished,), (ResultPublished, StudyFinished)])
def test_an_owner_that_is_back_after_the_queue_has_gone_finishes_and_countersigns(
    place, written, missed
):
    hub = run_without_the_end(place, written, *missed)
    assert secrets_of(place, "north") != [0, 0, 0]
    drop_queues(hub, written)
    table = place.folder / "data.csv"
    table.write_text(table.read_text() + table.read_text().splitlines()[-1] + "\n")
    with serving(hub) as port, manager_of(place, "north", port) as (_, manager):
        assert manager.run(once=True) == {written.digest: JournalState.FINISHED}
    assert secrets_of(place, "north") == [0, 0, 0]
    assert "its last messages are gone" in record_of(place, "north", written).reason
    assert signers(hub) == {"hub", *OWNERS}


def cut_off_from_the_end(mended):
    """Make a dialer that never gets the last message through until it is mended."""

    class CutOff(Wrapped):
        def work(self, study, *, received):
            for whole in self.connection.work(study, received=received):
                is_last = isinstance(codec.TO_PARTY.decode(whole.body), StudyFinished)
                if is_last and not mended.is_set():
                    raise WireError(ErrorCode.UNAVAILABLE, "a firewall is in between")
                yield whole

    class CutOffDialer(Dialer):
        @contextlib.contextmanager
        def dial(self):
            with super().dial() as connection:
                yield CutOff(connection)

    return CutOffDialer


def test_a_node_that_runs_when_its_queue_goes_hears_of_it(place, written):
    hub = run_without_the_end(place, written, StudyFinished)
    mended = threading.Event()
    dialer = cut_off_from_the_end(mended)
    with (
        serving(hub) as port,
        manager_of(place, "north", port, dialer=dialer) as (_, manager),
        ThreadPoolExecutor(1) as threads,
    ):
        threads.submit(manager.run, once=False)
        try:
            time.sleep(1)
            assert record_of(place, "north", written).state is JournalState.RUNNING
            drop_queues(hub, written)
            # The curator lists studies anew; a poll names only those that are not settled.
            another = replace(written, name="another", signature=None)
            propose(hub, another, clock=system_clock)
            time.sleep(2)
            mended.set()
            for _ in range(100):
                if record_of(place, "north", written).state is not JournalState.RUNNING:
                    break
                time.sleep(0.1)
        finally:
            manager.stopping.set()
    assert record_of(place, "north", written).state is JournalState.FINISHED


def test_results_that_contradict_those_we_saw_are_not_countersigned(place, written):
    """Also when the curator lost the rest, as one that told each owner another result would."""
    hub = run_without_the_end(place, written, StudyFinished)
    drop_queues(hub, written)
    file = place.folder / "north" / "state" / "party.db"
    with Database(file) as database, database.transaction():
        database.write("UPDATE received SET digest = x'00' WHERE number > 1")
    with serving(hub) as port, manager_of(place, "north", port) as (context, manager):
        assert manager.run(once=True) == {written.digest: JournalState.FINISHED}
        (found,) = context.collection.all().values()
    assert not found.countersigned
    assert "not those that were published to us" in found.problem
    assert signers(hub) == {"hub", "east"}


def test_an_owner_whose_last_answer_never_arrived_did_not_finish(place, written):
    hub = run_without_the_end(place, written, StudyFinished)
    drop_queues(hub, written)
    with Database(place.folder / "north" / "state" / "party.db") as database:
        journal = Journal(database, OsRandomSource())
        with journal.transaction():
            journal.add_outgoing(written.digest, b"late", kind="x", recipient="curator", at="now")
    with serving(hub) as port, manager_of(place, "north", port) as (_, manager):
        assert manager.run(once=True) == {written.digest: JournalState.ABORTED}
    assert secrets_of(place, "north") == [0, 0, 0]
