"""A curator and its parties as the processes of a deployment, kept alive by a supervisor."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from unittest import mock

from common.service.process import system_clock
from common.study.document import Study
from curator.app import propose
from parley.cli.main import main
from tests.harness.consortium import NAMES
from tests.harness.disks import NoMountError, mounted
from tests.harness.process_consortium import ProcessConsortium

PER_STUDY = 8  # the most epsilon that the owners' policies allow
STRANGER = "stranger"  # has a certificate, and is in no study
_ENDS_S = 60
_DEADLINE_S = 60.0  # no owner is away for so long, so none may be missed
_STOPPED = (0, 130, -signal.SIGTERM)  # at work, while starting, while importing
_GAVE_UP = (3, 5)  # the disk is full, the curator is out of reach: a supervisor starts it again


@dataclass(frozen=True)
class Offer:
    """A study that was offered, and whether the policies must refuse it."""

    study: Study
    refused: bool = False

    @property
    def digest(self):
        return self.study.digest.hex()

    @property
    def names(self):
        return list(self.study.parties)


class World(ProcessConsortium):
    """Folders and processes of everybody; violations of what must hold are collected.

    Args:
        folder: exists and is empty.
        parties: how many.
        disk: the size of the file system below each state folder; None leaves them where they are.
    """

    def __init__(self, folder, parties, *, disk=None):
        super().__init__(folder, NAMES[:parties])
        self.write_policy(per_study=PER_STUDY, in_total=1_000_000)
        with (folder / "curator.toml").open("a") as settings:
            settings.write(f"step_deadline_s = {_DEADLINE_S}\n")
        self.stranger = self.add_keys(STRANGER)
        self.everybody = ("curator", *self.names)
        self.violations = []
        self.gave_up = Counter()
        self.filled = set()  # whose disk was full at some time
        self._open = contextlib.ExitStack()
        self.no_disks = "" if disk is not None else "not asked for"
        # A process that outlives this one reads the end of its standard input, and stops.
        self.stdin, leash = os.pipe()
        self._open.callback(os.close, leash)
        self._open.callback(os.close, self.stdin)
        for who in self.everybody:
            (folder / who).mkdir()
            if not self.no_disks:
                self._mount(folder / who, disk)

    def _mount(self, place, size):
        try:
            self._open.enter_context(mounted(place, size=size))
        except NoMountError as error:
            self.no_disks = str(error)

    def __enter__(self):
        for who in self.everybody:
            self.start(who)
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End every process, and unmount every disk."""
        self.stop()
        self._open.close()

    def command(self, who):
        """The command of a deployment."""
        words = ["curator", "serve"] if who == "curator" else ["party", "join"]
        if who == "curator" and not self.port:
            words += ["--port-file", str(self.folder / "curator" / "port")]
        file = str(self.folder / f"{who}.toml")
        service = [sys.executable, "-m", "tests.chaos.service", str(self._clock_of(who))]
        return [*service, *words, "--config", file, "--stop-with-stdin"]

    def _clock_of(self, who):
        return self.folder / f"{who}.clock"

    def set_clock(self, who, *, wrong_by):
        """Have the wall clock of a service be wrong by so many seconds, from now on."""
        self._clock_of(who).write_text(str(wrong_by))

    def offer(self, name, *, refused=False, **terms):
        """Offer a study to its parties, as `parley curator study add` does."""
        study = self.new_study(name, **terms)
        propose(self.settings, study, clock=system_clock)
        return Offer(study, refused=refused)

    def terminate(self, victims):
        """End services with SIGTERM, all at once, and look at their exit codes."""
        for who in victims:
            self.processes[who].terminate()
        for who in victims:
            process = self.processes.pop(who)
            try:
                code = process.wait(timeout=_ENDS_S)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
                self.violations.append(f"{who}: did not end {_ENDS_S} s after SIGTERM")
            if code not in (*_STOPPED, *_GAVE_UP, -signal.SIGKILL):
                self.violations.append(f"{who}: exit code {code} after SIGTERM")

    def revive(self):
        """Start what ended by itself, as a supervisor does; only some exit codes are in order."""
        for who, process in list(self.processes.items()):
            code = process.poll()
            if code is None:
                continue
            if code in _GAVE_UP:
                self.gave_up[who] += 1
            else:
                self.violations.append(f"{who}: ended by itself with exit code {code}")
            self.start(who)

    def parley(self, *words):
        """Run a command in this process; its exit code, and what it says as JSON."""
        out, err = io.StringIO(), io.StringIO()
        address = {"PARLEY_PARTY_CURATOR": f"127.0.0.1:{self.port}"}
        with (
            mock.patch.dict(os.environ, address),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main([*map(str, words), "--json"])
        return code, json.loads(out.getvalue() or "{}"), err.getvalue()
