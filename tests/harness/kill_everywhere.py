"""Kills everybody of a study, one after the other, at every point where something is written.

`python -m tests.harness.kill_everywhere FOLDER STRIDE [without | delta | criteria | linked]` runs a
study of a curator and two parties, real processes over real gRPC, again and again: once for every
STRIDEth write to a disk and every call that hands in answers, of everybody. With `without`, a third
party vanishes for good in the second step, and the others finish. With `delta`, the steps are sums
under (epsilon, delta); with `criteria`, the last one compares rows with the fitted model; with
`linked`, they are of people and their events. The victim dies by kill -9 right there, comes back,
and the study must end in the release of the in-process run, with every step charged once and every
answer as it was drawn first. Prints how many points there were for everybody.

It is a process of its own because it forks, and gRPC bears that only before it was used.
"""

import itertools
import json
import os
import shutil
import signal
import sys
import time
import traceback
from fractions import Fraction
from functools import partial
from pathlib import Path

from common.methods.registry import run_of
from common.privacy.randomness import KEY_BYTES, SeededRandomSource
from common.service.database import Database
from common.study.criteria import read_criteria
from curator.store.records import StudyState
from curator.store.store import Store
from party.journal import Journal, JournalState
from party.ledger import Ledger
from party.owner.dry_run import PlannedStep, dry_run
from tests.harness import consortium as stage
from tests.harness.consortium import Wrapped, wrapping
from tests.harness.linked import SCHEMA as LINKED_SCHEMA
from tests.harness.linked import linked_codes
from tests.harness.linked_runs import dealt_out
from tests.harness.small_study import Sums

PARTIES = stage.NAMES[:2]
DELTA = Fraction(1, 10**6)
LOST = stage.NAMES[2]
LAST_OF_LOST = 6  # keys, words, signature and shares of the first step, keys of the second
WRITES = ("BEGIN", "INSERT", "UPDATE", "DELETE", "COMMIT", "PRAGMA wal_checkpoint")
SECONDS = 120  # for one study, on a machine that is busy with other things


class KeysInOrder:
    """Draws the key that comes after those on disk, however often its process was killed."""

    private = False

    def __init__(self, name, database, table):
        self._name, self._database = name, database
        self._query = f"SELECT COUNT(*) FROM {table}"  # noqa: S608  # ours

    def random_bytes(self, count):
        ((drawn,),) = self._database.rows(self._query)
        return SeededRandomSource(self._name).random_bytes(KEY_BYTES * drawn + count)[-count:]


class Fate:
    """Counts the points of a process, and ends it at one of them."""

    def __init__(self, kill_at):
        self._kill_at = kill_at
        self._points = itertools.count(1)

    def point(self):
        if next(self._points) == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(self, text):
        if text.lstrip().startswith(WRITES):
            self.point()

    def database(self, path, *, logged):
        made = Database(path, logged=logged)
        made._connection.set_trace_callback(self.statement)
        return made


def plain(run):
    """Return the results of every step, as JSON has them."""
    return [each.hex() for each in run.results]


def costs_of_sums(study, party):
    return [PlannedStep(phase="counting", cost=study.promise.budget)]


class Everybody(stage.Consortium):
    """The consortium, whose members can be forked."""

    def __init__(self, folder, *, kind=""):
        without = kind == "without"
        if without:
            super().__init__(folder, stage.NAMES[:4], may_miss=1, commitments=True)
            self.curator.begin = Sums
            for party in self.parties.values():
                party.begin = Sums
        elif kind == "delta":
            super().__init__(folder, PARTIES, delta=DELTA, commitments=True)
            self.curator.begin = Sums
            for party in self.parties.values():
                party.begin, party.forecast = Sums, costs_of_sums
        elif kind == "criteria":  # a real method, and one sum more
            wanted = read_criteria([{"share": "a = true", "within": "20 %"}])
            part = Fraction(1, 4)
            super().__init__(
                folder, PARTIES, method="floor", criteria=wanted, criteria_epsilon=part
            )
            self._run_the_method()
        elif kind == "linked":
            tables = dict(zip(PARTIES, dealt_out(linked_codes(200)).values(), strict=True))
            super().__init__(
                folder, PARTIES, tables=tables, schema=LINKED_SCHEMA, method="subn+", delta=DELTA,
                encoding="own", commitments=True,
            )  # fmt: skip
            self._run_the_method()
        elif kind == "two-party":
            settings = (("divisions", 2), ("target", "a"))
            super().__init__(folder, PARTIES, method="distdiffgen", settings=settings)
            self._run_the_method()
        else:
            super().__init__(folder, PARTIES, commitments=True)
        self.folder, self.without = folder, without
        self.lost = folder / "lost"
        self.release = folder / "release.json"
        self.port_file = folder / "port"

    def _run_the_method(self):
        self.curator.begin = run_of
        for party in self.parties.values():
            party.begin, party.forecast = run_of, partial(dry_run, begin=run_of)

    def clear(self):
        for path in (*self.folder.glob("*.db*"), self.release, self.port_file, self.lost):
            path.unlink(missing_ok=True)
        self.curator.port = 0

    def run_curator(self, fate):
        curator = self.curator
        curator.keys_on = lambda database: KeysInOrder("curator", database, "step_key")

        def publish(outcome):
            fate.point()
            results = plain(outcome)
            self.release.with_suffix(".new").write_text(json.dumps(results))
            self.release.with_suffix(".new").replace(self.release)
            fate.point()
            return self.release

        curator.publish = publish
        curator.start()
        curator.studies.propose(self.study)
        self.port_file.with_suffix(".new").write_text(str(curator.port))
        self.port_file.with_suffix(".new").replace(self.port_file)
        while self.without:
            node = curator.studies.known(self.study.digest)
            if self.lost.exists() and node.declare_missing(LOST):
                break
            time.sleep(0.01)
        signal.pause()

    def run_party(self, name, fate):
        party, lost = self.parties[name], self.lost
        party.keys_on = lambda database: KeysInOrder(name, database, "step_key")

        class Watched(Wrapped):
            def enrol(self, *who, **which):
                listed = self.connection.enrol(*who, **which)
                # A curator may have died between storing the last message and saying so.
                if name == LOST and any(each.submitted >= LAST_OF_LOST for each in listed):
                    self.go_missing()
                return listed

            def submit(self, study, messages):
                fate.point()
                newest = self.connection.submit(study, messages)
                fate.point()
                if name == LOST and messages[-1].sequence == LAST_OF_LOST:
                    self.go_missing()
                return newest

            def go_missing(self):
                lost.touch()
                os._exit(0)

        party.dial = wrapping(party, Watched)
        if party.attend(self.study) is not JournalState.FINISHED:
            raise AssertionError(f"the study did not finish for {name}")

    def fork(self, who, kill_at=0):
        child = os.fork()
        if child:
            return child
        code = 1
        try:
            fate = Fate(kill_at)
            stage.Database = fate.database
            if who == "curator":
                self.run_curator(fate)
            else:
                self.run_party(who, fate)
            code = 0
        except BaseException:  # noqa: BLE001  # the end of a process
            traceback.print_exc()
        finally:
            os._exit(code)

    def play(self, victim, kill_at):
        """Run a study; return whether the victim came to the point where it is killed."""
        self.clear()
        living, killed = {}, False
        deadline = time.monotonic() + SECONDS
        try:
            living["curator"] = self.fork("curator", kill_at if victim == "curator" else 0)
            while not self.port_file.exists():
                if self._reap(living, deadline) == "curator":
                    living["curator"], killed = self.fork("curator"), True
            self.curator.port = int(self.port_file.read_text())
            for name in self.parties:
                living[name] = self.fork(name, kill_at if victim == name else 0)
            while set(living) != {"curator"}:
                if self._reap(living, deadline) is not None:
                    living[victim], killed = self.fork(victim), True
        finally:
            for child in living.values():
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        return killed

    def _reap(self, living, deadline):
        """Return which process was killed just now, if one was; forget those that are done."""
        if time.monotonic() > deadline:
            raise AssertionError(f"the study does not end; still there: {list(living)}")
        for who, child in list(living.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                del living[who]
                code = os.waitstatus_to_exitcode(status)
                if code == -signal.SIGKILL:
                    return who
                if code or who == "curator":
                    raise AssertionError(f"{who} ended by itself, with code {code}")
        time.sleep(0.005)
        return None

    def check(self, expected):
        """Expect the release of the in-process run, one charge per step, no second answer."""
        digest = self.study.digest
        assert json.loads(self.release.read_text()) == plain(expected)
        database = Database(self.folder / "curator.db")
        store = Store(database, SeededRandomSource(0))
        assert store.record(digest).state is StudyState.DONE
        arrived = {
            name: [each.hex() for each in store.inbox.digests(digest, name)]
            for name in self.parties
        }
        database.close()
        for name, party in self.parties.items():
            database = Database(party.path)
            ledger, journal = Ledger(database), Journal(database, SeededRandomSource(0))
            ledger.verify()
            charged = [entry.charge for entry in ledger.entries()]
            assert [(c.step, c.epsilon, c.rho, c.delta) for c in charged] == [
                (c.step, c.epsilon, c.rho, c.delta) for c in expected.charges[name]
            ]
            assert ledger.spending(digest.hex()).within(self.study.epsilon, self.study.delta)
            assert [each.digest for each in journal.sent_log()] == arrived[name]
            ended = JournalState.RUNNING if name == LOST else JournalState.FINISHED
            assert journal.state(digest) is ended
            database.close()


def kill_everybody(folder, stride, *, kind):
    """Kill every process at every point; return how many points each had."""
    everybody = Everybody(folder, kind=kind)
    expected = stage.in_process(everybody, None, drop={LOST: 1} if everybody.without else None)
    points = {}
    for victim in ("curator", *PARTIES):
        for kill_at in itertools.count(1, stride):
            try:
                killed = everybody.play(victim, kill_at)
                everybody.check(expected)
            except BaseException:
                print(f"{victim} was killed at point {kill_at}", file=sys.stderr)  # noqa: T201
                raise
            if not killed:
                break
            points[victim] = kill_at
    return points


if __name__ == "__main__":
    there = Path(sys.argv[1])
    there.mkdir()
    points = kill_everybody(there, int(sys.argv[2]), kind="".join(sys.argv[3:]))
    print(json.dumps(points))  # noqa: T201
    shutil.rmtree(there)
