"""The policy that counts is the one on disk: read again when its file changes.

A node runs for months, and its owner edits the file meanwhile. A file that cannot be read does not
change the policy: the one before counts on, and log and page say so.

Which policy counts for what: a study is reviewed, and approved automatically, by one reading of the
file. Every charge is within the caps of the file at that moment and within what was approved: lower
caps stop a study that is under way, and higher caps give it no more than its owner approved.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from common.errors import InputError
from common.files import version_of
from common.service.process import Clock
from party.owner.policy import Policy

logger = logging.getLogger(__name__)

_SETTLED_S = 0.5  # without a change, before a file counts as written to its end
_LOOK_EVERY_S = 0.05
_MOST_S = 10.0  # for a file that keeps changing


class PolicyFile:
    """A policy in a file. Threads may share it. InputError if the first reading fails.

    `check` raises InputError for a policy that does not fit what else this party has.
    """

    def __init__(
        self, path: Path, clock: Clock, *, check: Callable[[Policy], None] = lambda policy: None
    ) -> None:
        self._path, self._clock, self._check = path, clock, check
        self._lock = threading.Lock()
        self._version = version_of(path)
        self._policy = self._load()
        self._read_at = clock()
        self._complaint = ""

    @property
    def current(self) -> Policy:
        """The policy of the file; waits for a file that is just being written."""
        with self._lock:
            if version_of(self._path) != self._version:
                self._version = self._settled()
                self._read_again()
            return self._policy

    @property
    def words(self) -> str:
        policy = self.current
        return (
            f"epsilon {policy.epsilon_per_study} a study, {policy.epsilon_in_total} in total: "
            f"{self._path}, read on {self._read_at:%Y-%m-%d at %H:%M:%S} UTC"
        )

    @property
    def complaint(self) -> str:
        """Why the newest file does not count; empty if it does."""
        _ = self.current
        return self._complaint

    def _load(self) -> Policy:
        policy = Policy.load(self._path)
        self._check(policy)
        return policy

    def _settled(self) -> tuple[int, int, int] | None:
        """Wait until the file stays as it is: half a file may be a policy with fewer limits."""
        version, since = version_of(self._path), time.monotonic()
        until = since + _MOST_S
        while (now := time.monotonic()) - since < _SETTLED_S and now < until:
            time.sleep(_LOOK_EVERY_S)
            if version_of(self._path) != version:
                version, since = version_of(self._path), time.monotonic()
        return version

    def _read_again(self) -> None:
        try:
            policy = self._load()
        except InputError as error:
            self._complaint = (
                f"{error}. The policy as it was read on {self._read_at:%Y-%m-%d at %H:%M:%S} UTC "
                "counts until the file is mended"
            )
            logger.error("the policy changed and cannot be used: %s", self._complaint)
            return
        logger.warning("%s: it changed, and counts from now on: %s", self._path,
                       _changes(self._policy, policy))  # fmt: skip
        self._policy, self._read_at, self._complaint = policy, self._clock(), ""


def _changes(before: Policy, after: Policy) -> str:
    pairs = [(key.name, getattr(before, key.name), getattr(after, key.name))
             for key in fields(Policy)]  # fmt: skip
    changes = [f"{name} {_value(old)} -> {_value(new)}" for name, old, new in pairs if old != new]
    return ", ".join(changes) or "no limit is another"


def _value(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
