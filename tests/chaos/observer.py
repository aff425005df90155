"""Keeps every message, step key, charge and release that it ever saw: none may change or vanish."""

import threading

from tests.chaos.files import read_curator, read_party, release_digest

_LOOK_EVERY_S = 0.2


class Observer:
    """Looks at everybody's files again and again, for the length of a block."""

    def __init__(self, world):
        self.world = world
        self.looks = self.skipped = 0
        self._seen = {}
        self._complained = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join()

    def _run(self):
        while not self._stopping.wait(_LOOK_EVERY_S):
            self.look()

    def look(self):
        """Compare what is on disk now with everything that was seen before."""
        for name in self.world.names:
            self._compare(name, read_party(self.world.folder / name / "party.db"), _party_facts)
        file = read_curator(self.world.folder / "curator" / "curator.db")
        self._compare("curator", file, _curator_facts)

    def _compare(self, who, file, facts_of):
        if file is None:
            self.skipped += 1
            return
        self.looks += 1
        now = facts_of(file)
        before = self._seen.setdefault(who, {})
        for what, value in now.items():
            if before.setdefault(what, value) != value:
                self._complain(f"{who}: {what} was {before[what]!r} and is {value!r}")
        for what in before.keys() - now.keys():
            if what[0] != "step key":  # wiped at the end of the study
                self._complain(f"{who}: {what} was there, and is not any more")

    def _complain(self, violation):
        if violation not in self._complained:
            self._complained.add(violation)
            self.world.violations.append(violation)


def _party_facts(file):
    return {
        **{("message", *key): digest for key, digest in file.sent.items()},
        **{("step key", *key): digest for key, digest in file.step_keys.items()},
        **{("charge", number): line for number, line in file.ledger.items()},
    }


def _curator_facts(file):
    done = {study: place for study, (state, _, place) in file.studies.items() if state == "done"}
    return {
        **{("message", *key): digest for key, digest in file.arrived.items()},
        **{("release", study): release_digest(place) for study, place in done.items()},
    }
