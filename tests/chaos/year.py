"""A year of a consortium in minutes: `python -m tests.chaos.year --studies 50 --days 365 --seed 1`.

The curator and the nodes run in this process, over mutual TLS on loopback, on a wall clock and a
monotonic clock that are moved by hand; TLS itself looks at the machine's clock. Owners leave and
come back, clocks jump, certificates are rotated before they end, backups are restored, and the
tables are twice brought to a later version. In the end everything must be as chaos wants it.

Exit code 1 on any violation.
"""

import argparse
import contextlib
import datetime as dt
import itertools
import random
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest import mock

from common.crypto.sums.plan import Aggregation
from common.service import database
from common.service.alerts import Hook
from common.service.migrations import MIGRATIONS, Migration, StateOwner, newest
from common.service.process import system_clock
from common.study.messages import StudyFinished
from common.wire.catalogue import WireError
from common.wire.pki.keyring import Keyring
from curator.publisher import curator_signer, publish
from curator.server.service import CuratorServer
from curator.settings import open_store, priors
from curator.studies import Studies
from curator.upkeep import Alerting, Upkeep, look
from party import app as party_app
from party.client.dialer import Dialer
from party.settings import party_settings, source_settings
from tests.chaos import checks
from tests.chaos.reporting import kept_or_temporary, report
from tests.chaos.world import Offer, World
from tests.harness.consortium import Crash, dialing_by, dying_at

HOUR_S, DAY_S = 3600.0, 86400.0
CERTIFICATE_DAYS, RENEWED_DAYS = 60, 20
AWAY_DAYS = 33  # the queue of an owner that is away for so long is gone
_LOOK_S = 1.0
_STUCK_S = 90.0  # of the machine's time
_WRONG_BY_DAYS = (-40, -3, -1 / 24, 1 / 24, 3, 40, 400)
_TERMS = (
    {"method": "floor", "aggregation": Aggregation.MASKED},
    {"method": "floor", "aggregation": Aggregation.PAILLIER},
    {"method": "dp-subn", "aggregation": Aggregation.MASKED},
    {"method": "floor", "aggregation": Aggregation.MASKED, "may_miss": 1},
)


class Clocks:
    """The time that passed, and how wrong the wall clock of each service is."""

    def __init__(self):
        self.began, self.passed_s = system_clock(), 0.0
        self.wrong = Counter()  # days, by service

    def monotonic(self):
        return self.passed_s

    def wall(self, who):
        wrong = dt.timedelta(days=self.wrong[who])
        return self.began + dt.timedelta(seconds=self.passed_s) + wrong

    @property
    def day(self):
        return self.passed_s / DAY_S


class Curator:
    """A curator on the world's folder and on clocks that are moved by hand."""

    def __init__(self, world, clocks):
        self.settings, self.clocks, self.port = world.settings, clocks, 0
        self._open = contextlib.ExitStack()

    def start(self):
        settings, clock = self.settings, partial(self.clocks.wall, "curator")
        store = self._open.enter_context(open_store(settings, begin=True))
        background = self._open.enter_context(ThreadPoolExecutor(1))
        known, signer = priors(settings), curator_signer(settings.keys, lambda path: "")
        self.studies = Studies(
            store, begin=known.begin, clock=clock, monotonic=self.clocks.monotonic,
            publish=lambda outcome: publish(outcome, settings.releases, signer=signer),
            later=background.submit, prior_of=known.path,
        )  # fmt: skip
        self.studies.open()
        self.upkeep = Upkeep(self.studies, replace(settings, end_overdue=True).waiting_limits)
        self.alerting = Alerting(store, Hook(), background, monotonic=self.clocks.monotonic)
        server = CuratorServer(
            self.studies, files=Keyring.open(settings.keys).files,
            revoked=settings.keys / "revoked.txt", listen=f"127.0.0.1:{self.port}", clock=clock,
            software="year",
        )  # fmt: skip
        self.port = server.start()
        self._open.callback(server.stop, grace_s=0)

    def stop(self):
        self._open.close()

    def look(self):
        look(self.studies, self.upkeep, self.alerting)


class Node:
    """The node of an owner, in a thread, while the owner is there."""

    def __init__(self, world, name, clocks, curator):
        self.world, self.name, self.clocks, self.curator = world, name, clocks, curator
        self._thread = None

    def start(self, *, dialer=Dialer):
        self._stopping, opened = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(dialer, opened), daemon=True)
        self._thread.start()
        opened.wait(_STUCK_S)

    def _run(self, dialer, opened):
        file = self.world.folder / f"{self.name}.toml"
        environment = {"PARLEY_PARTY_CURATOR": f"127.0.0.1:{self.curator.port}"}
        settings = party_settings(file, environment)
        source = source_settings(settings, file, environment)
        clock = partial(self.clocks.wall, self.name)
        with (
            contextlib.suppress(Crash, WireError),  # it dies, or gives up for a date
            party_app.party_context(settings.values, source, clock=clock) as context,
        ):
            with dialing_by(dialer):
                manager = party_app.session_manager(
                    settings.values, context, environment={}, stopping=self._stopping,
                    software="year",
                )  # fmt: skip
            opened.set()
            manager.run(once=False)

    def stop(self):
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()

    @property
    def is_up(self):
        return self._thread is not None and self._thread.is_alive()


class Year:
    """One run: what was offered, what happened, and what is wrong."""

    def __init__(self, folder, *, studies, days, seed, parties=4):
        self.world, self.clocks = World(folder, parties), Clocks()
        self.chance = random.Random(seed)  # noqa: S311  # events, not secrets
        self.studies, self.days = studies, days
        self.curator = Curator(self.world, self.clocks)
        self.nodes = {
            name: Node(self.world, name, self.clocks, self.curator) for name in self.world.names
        }
        self.lost = {}  # owners that miss the end of a study -> the study
        self.away = {}  # those that are gone -> the day they are back
        self.offers, self.counts = [], Counter()
        self._numbers = itertools.count(newest(MIGRATIONS) + 1)
        self._patched = contextlib.ExitStack()

    def run(self, *, tell=lambda line: None):
        try:
            self._rotate(*self.world.names)
            self._start_all()
            for number in range(self.studies):
                self._live_through(number)
                tell(f"day {self.clocks.day:.0f}: study {number} is done; {dict(self.counts)}")
            self._wait_for_the_last()
            checks.settle(self.world, self.offers, seconds=_STUCK_S)
            self.counts["verified"] = checks.verify(self.world, self.offers)
            checks.check_ledgers(self.world)
        finally:
            self._stop_all()
            self._patched.close()
            self.world.close()
        return self.world.violations

    def _live_through(self, number):
        until = self.days * (number + 1) / self.studies
        self._renew()
        if number in (self.studies // 3, 2 * self.studies // 3):
            self._upgrade()
        if number % 4 == 1:
            self._restore(self.chance.choice(("curator", *self._present())))
        clock = self.chance.choice((None, "curator", *self._present()))
        self._study(number, leaves=number % 8 == 0 and not self.away, wrong_clock=clock)
        while self.clocks.day < until:
            self._pass(HOUR_S)
            self._come_back()
            if self.chance.random() < 1 / 200:
                self._jump("curator")

    def _study(self, number, *, leaves, wrong_clock):
        """Run a study of the owners that are there; one of them may go before it hears its end."""
        present = self._present()
        terms = dict(self.chance.choice(_TERMS))
        if len(present) < len(self.world.names):
            terms.pop("may_miss", None)
        if leaves:
            lost = self.chance.choice(present)
            self.nodes[lost].stop()
        study = self.world.new_study(
            f"study {number}", epsilon=Fraction(1, 2), **terms,
            members=[each for each in self.world.members if each.name in present],
        )  # fmt: skip
        if leaves:
            self.lost[lost] = study
            self.nodes[lost].start(dialer=dying_at(StudyFinished))
        self.curator.studies.propose(study)
        self.offers.append(Offer(study))
        self._until_done(study, wrong_clock)
        if leaves:
            self.nodes[lost].stop()
            self.away[lost] = self.clocks.day + AWAY_DAYS
            self.counts["left before the end"] += 1

    def _until_done(self, study, wrong_clock):
        until, jumped = time.monotonic() + _STUCK_S, False
        while not self._is_over(study) or any(
            self._is_running(name, study) for name in study.parties if self.nodes[name].is_up
        ):
            if time.monotonic() > until:
                self.world.violations.append(f"{study.name}: nothing moves any more")
                return
            self._pass(_LOOK_S)
            self._revive()
            if wrong_clock and not jumped and self.curator.studies.presence.online():
                self._jump(wrong_clock)
                jumped = True
            time.sleep(0.02)

    def _is_over(self, study):
        return self.curator.studies.known(study.digest).record.state.over

    def _is_running(self, name, study):
        file = checks.read_party(self.world.folder / name / "party.db")
        return file is None or file.states.get(study.digest.hex(), "running") == "running"

    def _pass(self, seconds):
        self.clocks.passed_s += seconds
        self.curator.look()

    def _jump(self, who):
        """Set a clock for a few looks, and put it right again."""
        self.clocks.wrong[who] = self.chance.choice(_WRONG_BY_DAYS)
        for _ in range(5):
            self._pass(_LOOK_S)
            time.sleep(0.02)
        self.clocks.wrong[who] = 0
        self._revive()
        self.counts["clock jumps"] += 1

    def _revive(self):
        """Start a node that gave up for the date in a certificate, as a supervisor does."""
        for name in self._present():
            study = self.lost.get(name)
            if not self.nodes[name].is_up and not (study and self._is_over(study)):
                self.nodes[name].start(dialer=dying_at(StudyFinished) if study else Dialer)
                self.counts["nodes that gave up and were started again"] += 1

    def _present(self):
        return [name for name in self.world.names if name not in self.away]

    def _come_back(self):
        for name in [name for name, day in self.away.items() if day <= self.clocks.day]:
            del self.away[name]
            file = checks.read_curator(self.world.folder / "curator" / "curator.db")
            if file is None or file.secrets:
                self.world.violations.append(f"{name}: the curator keeps its queue for too long")
            self._rotate(name)
            self.nodes[name].start()
            self._until_done(self.lost.pop(name), None)
            self.counts["back after the queue had gone"] += 1

    def _wait_for_the_last(self):
        while self.away:
            self._renew()
            self._pass(HOUR_S)
            self._come_back()
        self._revive()

    def _renew(self):
        for name in self._present():
            ends = Keyring.open(self.world.folder / f"{name} keys").certificate()
            left = ends.not_valid_after_utc - self.clocks.wall(name)
            if left < dt.timedelta(days=RENEWED_DAYS):
                self._rotate(name)

    def _rotate(self, *names):
        """Renew certificates, from the machine's day, by which TLS looks at them, on."""
        now = system_clock()
        days = round(self.clocks.day) + CERTIFICATE_DAYS
        for name in names:
            ring = Keyring.open(self.world.folder / f"{name} keys")
            ring.rotate(now=now)
            _, path = self.world.ring.approve(ring.read_request(), days=days, now=now)
            ring.accept(path.read_bytes(), where=path, now=now)
            self.counts["certificates rotated"] += 1

    def _restore(self, who):
        """Lose the state of a service, and restore it from a backup that was just made."""
        self._stop(who)
        role = "curator" if who == "curator" else "party"
        settings = ("--config", self.world.folder / f"{who}.toml")
        backup = self.world.folder / f"{who}-{len(self.offers)}.backup"
        self._expect_0("backup", role, "--out", backup, *settings)
        (self.world.folder / who / f"{role}.db").unlink()
        self._expect_0("restore", backup, "--yes", *settings)
        self._start(who)
        self.counts["restored from a backup"] += 1

    def _upgrade(self):
        """Stop everything, and go on as a version whose tables have a later number."""
        self._stop_all()
        number = next(self._numbers)
        added = tuple(
            Migration(number=number, service=service, table="study",
                      statements=("UPDATE study SET name = TRIM(name)",))
            for service in StateOwner
        )  # fmt: skip
        self._patched.enter_context(
            mock.patch.object(database, "MIGRATIONS", (*database.MIGRATIONS, *added))
        )
        self._start_all()
        self.counts["upgrades"] += 1

    def _expect_0(self, *words):
        code, _, said = self.world.parley(*words)
        if code:
            self.world.violations.append(f"`parley {' '.join(map(str, words))}`: {code}: {said}")

    def _start(self, who):
        (self.curator if who == "curator" else self.nodes[who]).start()

    def _stop(self, who):
        (self.curator if who == "curator" else self.nodes[who]).stop()

    def _start_all(self):
        for who in ("curator", *self._present()):
            self._start(who)
        self.world.port = self.curator.port

    def _stop_all(self):
        for who in (*self.world.names, "curator"):
            self._stop(who)


def main():
    """Read the command line, run, print the figures; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.year", description=__doc__)
    parser.add_argument("--studies", type=int, default=50)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    began = time.monotonic()
    with kept_or_temporary(None) as folder:
        year = Year(folder, studies=chosen.studies, days=chosen.days, seed=chosen.seed)
        violations = year.run(tell=partial(print, file=sys.stderr))
    rows = {"studies": len(year.offers), **year.counts, "violations": len(violations)}
    rows |= {"days": round(year.clocks.day), "seconds": round(time.monotonic() - began)}
    print("\n".join(f"| {what} | {value} |" for what, value in rows.items()))  # noqa: T201
    report(violations, chosen.seed)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
