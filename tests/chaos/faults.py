"""Faults of a few seconds, one after the other, by a seed: the kind, its victims, its length."""

import signal
import time
from collections import Counter
from functools import partial

from tests.chaos import floods
from tests.harness.disks import fill

_TWO, _EVERYBODY = 0.19, 0.06  # of the faults of processes
_FLOODS = {
    "undecodable messages": floods.undecodable_messages,
    "polls": floods.polls,
    "silent calls": floods.silent_calls,
    "silent connections": floods.silent_connections,
}
# By kind: how often, and for how long at most.
KINDS = {
    "kill -9": (50, 2.0),
    "SIGTERM": (14, 2.0),
    "SIGSTOP": (12, 5.0),
    "full disk": (8, 4.0),
    "clock": (20, 4.0),
    "undecodable messages": (4, 2.0),
    "polls": (4, 2.0),
    "silent calls": (4, 3.0),
    "silent connections": (4, 3.0),
}
_HOUR, _DAY = 3600, 24 * 3600
_WRONG_BY_S = (-20 * _HOUR, -_HOUR // 2, 2 * _HOUR, _DAY, 31 * _DAY, 200 * _DAY)
AT_ONCE = ("two at once", "everybody at once")


class Faults:
    """Injects one fault after the other.

    Args:
        world: what to disturb.
        chance: a `random.Random`.
        kinds: which of `KINDS`.
    """

    def __init__(self, world, chance, kinds):
        self.world, self.chance = world, chance
        self.kinds = [kind for kind in kinds if kind != "full disk" or not world.no_disks]
        self.counts = Counter()
        self._do = {
            "kill -9": self._kill,
            "SIGTERM": self._terminate,
            "SIGSTOP": self._suspend,
            "full disk": self._fill,
            "clock": self._set_clocks,
        } | {kind: partial(_flood, kind) for kind in _FLOODS}

    @property
    def total(self):
        return sum(self.counts[kind] for kind in KINDS)

    def inject(self):
        """One fault, healed when this returns; whoever gave up meanwhile is started again."""
        (kind,) = self.chance.choices(self.kinds, [KINDS[each][0] for each in self.kinds])
        victims = self._victims(kind)
        seconds = self.chance.uniform(0.1, KINDS[kind][1])
        self.counts[kind] += 1
        self._do[kind](self.world, victims, seconds)
        self.world.revive()

    def _victims(self, kind):
        everybody, luck = self.world.everybody, self.chance.random()
        if kind == "clock":
            return [self.chance.choice(("curator", self.chance.choice(self.world.names)))]
        if kind == "full disk" or luck > _TWO + _EVERYBODY:
            return [self.chance.choice(everybody)]
        if luck > _EVERYBODY:
            self.counts[AT_ONCE[0]] += kind not in _FLOODS
            return self.chance.sample(everybody, 2)
        self.counts[AT_ONCE[1]] += kind not in _FLOODS
        return list(everybody)

    def _kill(self, world, victims, seconds):
        for who in victims:
            world.kill(who)
        time.sleep(seconds)
        for who in victims:
            world.start(who)

    def _terminate(self, world, victims, seconds):
        world.terminate(victims)
        time.sleep(seconds)
        for who in victims:
            world.start(who)

    def _suspend(self, world, victims, seconds):
        for who in victims:
            world.processes[who].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        for who in victims:
            world.processes[who].send_signal(signal.SIGCONT)

    def _fill(self, world, victims, seconds):
        (who,) = victims
        ballast = fill(world.folder / who)
        world.filled.add(who)
        time.sleep(seconds)
        ballast.unlink()

    def _set_clocks(self, world, victims, seconds):
        """Set clocks while a party is gone, and put them right again before it is back."""
        gone = self.chance.choice(world.names)
        world.kill(gone)
        for who in victims:
            world.set_clock(who, wrong_by=self.chance.choice(_WRONG_BY_S))
        time.sleep(seconds)
        for who in victims:
            world.set_clock(who, wrong_by=0)
        world.start(gone)


def _flood(kind, world, victims, seconds):
    _FLOODS[kind](world, seconds)
