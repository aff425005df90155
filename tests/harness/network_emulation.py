"""Network namespaces joined by links whose weather a test decides.

A link is a pair of TUN devices, one in each namespace, and a thread that carries packets between
them: late, not at all, twice, or in another order. Where the kernel has netem, `tc` does the same
on a veth pair, and the tests run over both.
"""

import contextlib
import dataclasses
import fcntl
import heapq
import itertools
import os
import select
import struct
import subprocess
import threading
import time

import numpy as np
import pytest

_TUN = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_MOST_QUEUED = 200  # packets that wait for a slow link, in each direction; more are lost


@dataclasses.dataclass(frozen=True)
class Weather:
    """How a link treats packets: chances, seconds, and bytes in a second (0: as fast as it goes).

    A reordered packet does not wait, so that it overtakes those before it.
    """

    delay_s: float = 0.0
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    rate: int = 0

    def as_netem(self):
        """Return the weather in the words of tc."""
        words = ["delay", f"{self.delay_s * 1000:g}ms"]
        for name in ("loss", "duplicate", "reorder"):
            if getattr(self, name):
                words += [name, f"{getattr(self, name) * 100:g}%"]
        return words + (["rate", f"{8 * self.rate}bit"] if self.rate else [])


FAIR = Weather()
CUT = Weather(loss=1.0)


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Forwarded:
    """A link of two TUN devices; a thread is the wire."""

    def __init__(self, name, ends):
        self._files = [
            self._device(f"{name}{side}", end) for side, end in zip("ab", ends, strict=True)
        ]
        self._waking, self._wake = os.pipe()
        self._chances = np.random.default_rng(5)
        self._numbers = itertools.count()
        self._queue = []
        self._free_at = [0.0, 0.0]
        self.weather = FAIR
        self.seen = dict.fromkeys(("carried", "lost", "doubled", "reordered"), 0)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _device(self, name, end):
        file = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
        request = struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI)
        fcntl.ioctl(file, _TUNSETIFF, request)
        ip("link", "set", name, "netns", end.namespace)
        end.configure(name)
        return file

    def _run(self):
        while True:
            wait = max(0.0, self._queue[0][0] - time.monotonic()) if self._queue else None
            ready, _, _ = select.select([*self._files, self._waking], [], [], wait)
            if self._waking in ready:
                return
            for side, file in enumerate(self._files):
                if file in ready:
                    with contextlib.suppress(BlockingIOError):
                        self._admit(side, os.read(file, 65536))
            while self._queue and self._queue[0][0] <= time.monotonic():
                _, _, side, packet = heapq.heappop(self._queue)
                self.seen["carried"] += 1
                with contextlib.suppress(OSError):  # the other end may be gone
                    os.write(self._files[1 - side], packet)

    def _admit(self, side, packet):
        weather, now = self.weather, time.monotonic()
        lost, doubled, reordered = self._chances.random(3) < (
            weather.loss, weather.duplicate, weather.reorder,
        )  # fmt: skip
        if lost or len(self._queue) > _MOST_QUEUED:
            self.seen["lost"] += 1
            return
        due = now
        if weather.rate:
            due = max(now, self._free_at[side]) + len(packet) / weather.rate
            self._free_at[side] = due
        if not reordered:
            due += weather.delay_s
        self.seen["reordered"] += int(reordered)
        self.seen["doubled"] += int(doubled)
        for _ in range(1 + doubled):
            heapq.heappush(self._queue, (due, next(self._numbers), side, packet))

    def close(self):
        os.write(self._wake, b"x")
        self._thread.join(timeout=20)
        for file in (*self._files, self._waking, self._wake):
            os.close(file)


class Netem:
    """A veth pair; the kernel is the weather."""

    def __init__(self, name, ends):
        self._ends = ends
        self._names = [f"{name}a", f"{name}b"]
        ip("link", "add", self._names[0], "type", "veth", "peer", "name", self._names[1])
        for device, end in zip(self._names, ends, strict=True):
            ip("link", "set", device, "netns", end.namespace)
            end.configure(device)
        self.seen = None
        self.weather = FAIR

    @property
    def weather(self):
        return self._weather

    @weather.setter
    def weather(self, weather):
        self._weather = weather
        for device, end in zip(self._names, self._ends, strict=True):
            done = subprocess.run(
                ["tc", "-n", end.namespace, "qdisc", "replace", "dev", device, "root", "netem",
                 *weather.as_netem()],
                capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode:
                raise OSError(f"tc: {done.stderr.strip()}")

    def close(self):
        """Do nothing: the devices go with their namespaces."""


@dataclasses.dataclass(frozen=True)
class End:
    """One end of a link."""

    namespace: str
    address: str

    def configure(self, device):
        ip("-n", self.namespace, "address", "add", f"{self.address}/30", "dev", device)
        ip("-n", self.namespace, "link", "set", device, "up")


class Country:
    """A namespace for everybody, and a link between the curator and each of the others."""

    def __init__(self, kind, names):
        self._made = contextlib.ExitStack()
        self.links = {}
        try:
            for who in ("curator", *names):
                self._add(self.namespace(who))
            for number, name in enumerate(names):
                ends = (
                    End(self.namespace("curator"), self.curator_address(number)),
                    End(self.namespace(name), f"10.77.{number}.2"),
                )
                link = kind(f"pl{os.getpid()}x{number}", ends)
                self._made.callback(link.close)
                self.links[name] = link
        except BaseException:
            self.close()
            raise

    def namespace(self, who):
        return f"parley-{os.getpid()}-{who}"

    def curator_address(self, number):
        return f"10.77.{number}.1"

    def _add(self, namespace):
        ip("netns", "add", namespace)
        self._made.callback(ip, "netns", "delete", namespace)
        ip("-n", namespace, "link", "set", "lo", "up")

    def within(self, who):
        """Return what runs a command in the namespace of a party or the curator."""
        return ["ip", "netns", "exec", self.namespace(who)]

    def all_under(self, weather):
        for link in self.links.values():
            link.weather = weather

    def seen(self, what):
        return sum(link.seen[what] for link in self.links.values())

    def close(self):
        self._made.close()


def make_country(kind, names):
    """Make a country, or skip the test visibly where it is not permitted."""
    try:
        return Country(kind, names)
    except OSError as error:
        pytest.skip(f"no network namespaces with {kind.__name__.lower()} links here: {error}")
