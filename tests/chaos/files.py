"""What the services have on disk, read beside them: all that chaos knows about their tables.

Files are opened read-only. A file that cannot be read at this moment (a transaction is under way, a
killed process left its journal, a disk is full) is None, and is read again later.
"""

import hashlib
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

_WAIT_S = 0.2
_SENT = "SELECT lower(hex(study)), sequence, lower(hex(digest)) FROM outgoing"
_STEP_KEYS = "SELECT lower(hex(study)), step, key FROM step_key"
_LEDGER = "SELECT number, study, step, epsilon, digest FROM entry"
_STATES = "SELECT lower(hex(study)), state FROM study"
_PARTY_SECRETS = """
SELECT lower(hex(study)), 'a step key' FROM step_key
UNION ALL SELECT lower(hex(study)), 'a received message' FROM received WHERE body IS NOT NULL
UNION ALL SELECT lower(hex(study)), 'a sent message' FROM content
"""
_STUDIES = "SELECT lower(hex(study)), state, cause, place FROM study"
_ARRIVED = "SELECT lower(hex(study)), sender, sequence, lower(hex(digest)) FROM received"
_CURATOR_SECRETS = """
SELECT lower(hex(study)), 'a step key' FROM step_key
UNION ALL SELECT lower(hex(study)), 'the Paillier key' FROM paillier_key
UNION ALL SELECT lower(hex(study)), 'a message of ' || sender FROM received WHERE body IS NOT NULL
UNION ALL SELECT lower(hex(study)), 'a queued message' FROM content
"""
QUEUED = "a queued message"


@dataclass(frozen=True)
class PartyFile:
    """A party's state: of every study its state, messages, step keys, secrets and charges."""

    states: dict
    sent: dict  # (study, sequence) -> SHA-256
    step_keys: dict  # (study, step) -> SHA-256 of the key
    ledger: dict  # number -> (study, step, epsilon, digest)
    secrets: dict  # study -> what is left of it

    def spent(self, study):
        return sum((Fraction(line[2]) for line in self.ledger.values() if line[0] == study), 0)

    def sent_of(self, study):
        return {seq: digest for (of, seq), digest in self.sent.items() if of == study}


@dataclass(frozen=True)
class CuratorFile:
    """The curator's state: of every study its record, accepted messages and secrets."""

    studies: dict  # study -> (state, cause, place)
    arrived: dict  # (party, study, sequence) -> SHA-256
    secrets: dict

    def arrived_of(self, party, study):
        rows = self.arrived.items()
        return {seq: digest for (*whose, seq), digest in rows if whose == [party, study]}


def read_party(path):
    found = _rows(path, _STATES, _SENT, _STEP_KEYS, _LEDGER, _PARTY_SECRETS)
    if found is None:
        return None
    states, sent, keys, ledger, secrets = found
    return PartyFile(
        states=dict(states),
        sent={(study, number): digest for study, number, digest in sent},
        step_keys={(study, step): _sha256(key) for study, step, key in keys},
        ledger={number: tuple(line) for number, *line in ledger},
        secrets=_by_study(secrets),
    )


def read_curator(path):
    found = _rows(path, _STUDIES, _ARRIVED, _CURATOR_SECRETS)
    if found is None:
        return None
    studies, arrived, secrets = found
    return CuratorFile(
        studies={study: record for study, *record in studies},
        arrived={(party, study, seq): digest for study, party, seq, digest in arrived},
        secrets=_by_study(secrets),
    )


def release_digest(place):
    """SHA-256 over every file of a release but its signatures, which owners add to."""
    files = sorted(each for each in Path(place).rglob("*") if each.is_file())
    inside = [each for each in files if each.relative_to(place).parts[0] != "signatures"]
    return _digest_of(
        tuple((each, each.stat().st_mtime_ns, each.stat().st_size) for each in inside)
    )


@lru_cache
def _digest_of(files):
    """Read again only when a file was written again."""
    lines = [f"{path.name} {_sha256(path.read_bytes())}" for path, *_ in files]
    return _sha256("\n".join(lines).encode())


def _rows(path, *queries):
    """The rows of every query, all of the same moment; None if the file cannot be read now."""
    try:
        where = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(where, uri=True, timeout=_WAIT_S)) as file:
            file.execute("BEGIN")
            return [file.execute(query).fetchall() for query in queries]
    except sqlite3.Error:
        return None


def _by_study(rows):
    found = defaultdict(list)
    for study, what in rows:
        found[study].append(what)
    return dict(found)


def _sha256(data):
    return hashlib.sha256(data).hexdigest()
