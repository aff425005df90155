"""What the curator must not forget, in one SQLite file: studies, approvals, messages, keys.

When a study ends, its secrets go: the Paillier key, the keys of its steps, what the parties sent.
A queue stays until its party has acknowledged it, or until the curator has run for `KEEP_QUEUES_H`
hours since the end. No wall clock decides that: one that is wrong for a moment drops nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from common.crypto.key_files import private_key_from_bytes, private_key_to_bytes
from common.crypto.paillier.keys import PrivateKey
from common.errors import InputError, LocalError
from common.privacy.randomness import RandomSource
from common.service.database import Database
from common.service.durable import Inbox, Outbox, StepKeys
from common.service.traffic import TrafficLog
from common.study.document import Study
from common.study.ids import StudyId
from common.wire.strict import MOST_STUDY_BYTES
from curator.store.reader import StoreReader
from curator.store.records import Alert, Links, StepRecord, StudyState, Word

KEEP_QUEUES_H = 30 * 24  # of an ended study, for a party that does not acknowledge

# `step` is for people who watch: what was opened when, and at what cost; it stays. `member` lists
# the parties of a study in their order; a party is settled when the study ended and the party has
# every message. `held` is a step that is opened when all of its owners call. `awaited` says whose
# call or answer a study waits for. `absence` says who left a study, and stays. `alert` is what the
# operator has not been told yet. `queue_age` is how many hours the curator has run since a study
# ended whose queue is not acknowledged.
#
# What a running curator asks again and again has an index without the studies that are over, and
# the queries name it: SQLite would rather read the table in its order.
_TABLES = """
CREATE TABLE IF NOT EXISTS party (
    name TEXT PRIMARY KEY,
    identity BLOB NOT NULL,
    software TEXT NOT NULL,
    seen_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS study (
    study BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    state TEXT NOT NULL,
    step INTEGER NOT NULL,
    phase TEXT NOT NULL,
    cause TEXT NOT NULL,
    place TEXT NOT NULL,
    proposed_at TEXT NOT NULL,
    ended_at TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS study_open ON study (study) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS study_state ON study (state);
CREATE TABLE IF NOT EXISTS member (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    settled INTEGER NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE INDEX IF NOT EXISTS member_of ON member (party);
CREATE INDEX IF NOT EXISTS member_open ON member (party) WHERE settled = 0;
CREATE TABLE IF NOT EXISTS held (
    study BLOB PRIMARY KEY REFERENCES study (study),
    body BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS awaited (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    word TEXT NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE TABLE IF NOT EXISTS alert (
    number INTEGER PRIMARY KEY,
    study BLOB NOT NULL REFERENCES study (study),
    event TEXT NOT NULL,
    words TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS abort_request (
    study BLOB PRIMARY KEY REFERENCES study (study),
    reason TEXT NOT NULL,
    asked_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS missing_request (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE TABLE IF NOT EXISTS absence (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    step INTEGER NOT NULL,
    reason TEXT NOT NULL,
    sums INTEGER,
    at TEXT NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE TABLE IF NOT EXISTS approval (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    signature BLOB NOT NULL,
    approved_at TEXT NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE TABLE IF NOT EXISTS step (
    study BLOB NOT NULL REFERENCES study (study),
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    phase TEXT NOT NULL,
    opened_at TEXT NOT NULL,
    costs TEXT NOT NULL,
    links TEXT NOT NULL,
    PRIMARY KEY (study, number)
) STRICT;
CREATE TABLE IF NOT EXISTS queue_age (
    study BLOB PRIMARY KEY REFERENCES study (study),
    hours INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS paillier_key (
    study BLOB PRIMARY KEY REFERENCES study (study),
    key BLOB NOT NULL
) STRICT;
"""


class Store(StoreReader):
    """The store of all studies of a curator. Threads may share it.

    A passphrase protects Paillier keys on top of the file's mode. What is not written in a
    transaction of its own is written in the caller's.
    """

    def __init__(
        self, database: Database, source: RandomSource, *, passphrase: str | None = None
    ) -> None:
        super().__init__(database)
        self._source = source
        self._passphrase = passphrase
        database.add_tables(_TABLES)
        self.traffic = TrafficLog(database)
        self.inbox, self.outbox = Inbox(database), Outbox(database)
        self.keys = StepKeys(database, source)

    @property
    def version(self) -> int:
        """A number that grows with every change that this process makes."""
        return self._file.commits

    def transaction(self) -> AbstractContextManager[None]:
        return self._file.transaction()

    def check(self) -> None:
        self._file.check()

    def check_at_start(self) -> None:
        self._file.check_at_start()

    def enrol(self, name: str, *, identity: bytes, software: str, at: str) -> None:
        """Record a party that called, with the identity that it offers for studies."""
        with self._file.transaction():
            self._file.write(
                "INSERT OR REPLACE INTO party VALUES (?, ?, ?, ?)", (name, identity, software, at)
            )

    def note_calls(self, calls: Mapping[str, str]) -> None:
        with self._file.transaction(synced=False):
            for party, at in calls.items():
                self._file.write("UPDATE party SET seen_at = ? WHERE name = ?", (at, party))

    def propose(self, study: Study, *, at: str) -> None:
        """Take in a study; to repeat this is harmless, and updates its signature."""
        document = study.to_toml()
        if len(document) > MOST_STUDY_BYTES:
            raise InputError(
                f"study {study.name!r}: it has {len(document):,} characters, and at most "
                f"{MOST_STUDY_BYTES:,} can be sent. Use fewer values in its schema"
            )
        if Study.from_toml(document).digest != study.digest:
            raise LocalError(f"study {study.name!r}: its text means another study")
        with self._file.transaction():
            self._file.write(
                "INSERT INTO study VALUES (?, ?, ?, ?, 0, '', '', '', ?, NULL) "
                "ON CONFLICT (study) DO UPDATE SET document = excluded.document",
                (study.digest, study.name, document, StudyState.WAITING.value, at),
            )
            for name in study.parties:
                self._file.write(
                    "INSERT OR IGNORE INTO member VALUES (?, ?, 0)", (study.digest, name)
                )

    def move(self, study: StudyId, state: StudyState, *, step: int, phase: str) -> None:
        """Record the state of a study, in the caller's transaction."""
        self._file.write(
            "UPDATE study SET state = ?, step = ?, phase = ?, cause = '' WHERE study = ?",
            (state.value, step, phase, study),
        )

    def note_step(self, study: StudyId, step: StepRecord) -> None:
        """Record a step that was opened, in the caller's transaction."""
        costs = json.dumps({party: str(cost) for party, cost in step.costs.items()})
        self._file.write(
            "INSERT OR IGNORE INTO step VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                study, step.number, step.name, step.phase, step.opened_at, costs,
                json.dumps(step.links),
            ),
        )  # fmt: skip

    def note_links(self, study: StudyId, number: int, links: Links) -> None:
        """Record which attributes a published choice links, in the caller's transaction."""
        self._file.write(
            "UPDATE step SET links = ? WHERE study = ? AND number = ?",
            (json.dumps(links), study, number),
        )

    def note_cause(self, study: StudyId, cause: str) -> None:
        with self._file.transaction():
            self._file.write("UPDATE study SET cause = ? WHERE study = ?", (cause, study))

    def end(self, study: StudyId, state: StudyState, *, cause: str, place: str, at: str) -> None:
        """Close a study and wipe its secrets, in the caller's transaction."""
        self._file.write(
            "UPDATE study SET state = ?, cause = ?, place = ?, ended_at = ? WHERE study = ?",
            (state.value, cause, place, at, study),
        )
        self.add_alert(study, state.value, words=cause or place, at=at)
        self.keys.wipe(study)
        self.inbox.wipe(study)
        self._file.wipe("DELETE FROM paillier_key WHERE study = ?", (study,))
        self._file.write("DELETE FROM held WHERE study = ?", (study,))
        self._file.write("DELETE FROM awaited WHERE study = ?", (study,))

    def ask_to_abort(self, study: StudyId, reason: str, *, at: str) -> None:
        """Have the curator that runs on this file, now or later, end a study; the first counts."""
        with self._file.transaction():
            self._file.write(
                "INSERT OR IGNORE INTO abort_request VALUES (?, ?, ?)", (study, reason, at)
            )

    def ask_to_miss(self, study: StudyId, party: str, *, at: str) -> None:
        """Have the curator that runs on this file, now or later, go on without a party."""
        with self._file.transaction():
            self._file.write(
                "INSERT OR IGNORE INTO missing_request VALUES (?, ?, ?)", (study, party, at)
            )

    def asked_to_miss(self) -> list[tuple[StudyId, str]]:
        """List the studies that are to go on without a party, each with the party."""
        rows = self._file.rows("SELECT study, party FROM missing_request ORDER BY rowid")
        return [(StudyId(study), party) for study, party in rows]

    def drop_missing(self, study: StudyId, party: str) -> None:
        with self._file.transaction():
            self._file.write(
                "DELETE FROM missing_request WHERE study = ? AND party = ?", (study, party)
            )

    def add_alert(self, study: StudyId, event: str, *, words: str, at: str) -> None:
        """Record an event for the operator, in the caller's transaction or in one of its own."""
        with self._file.transaction():
            self._file.write(
                "INSERT INTO alert (study, event, words, at) VALUES (?, ?, ?, ?)",
                (study, event, words, at),
            )

    def alerts(self) -> list[Alert]:
        """List the events that the operator has not been told yet, oldest first."""
        return self._file.records(
            Alert,
            "SELECT number, study, name, event, words, at FROM alert JOIN study "
            "USING (study) ORDER BY number",
        )

    def drop_alerts(self, newest: int) -> None:
        with self._file.transaction():
            self._file.write("DELETE FROM alert WHERE number <= ?", (newest,))

    def note_absence(self, study: StudyId, party: str, step: int, reason: str, *, at: str) -> None:
        """Record a party that left, and an event for the operator, in the caller's transaction."""
        self._file.write(
            "INSERT OR IGNORE INTO absence VALUES (?, ?, ?, ?, NULL, ?)",
            (study, party, step, reason, at),
        )
        self.add_alert(study, "missing", words=reason, at=at)

    def note_sums(self, study: StudyId, sums: Mapping[str, int]) -> None:
        """Record in how many sums each party that left is, in the caller's transaction."""
        for party, number in sums.items():
            self._file.write(
                "UPDATE absence SET sums = ? WHERE study = ? AND party = ?", (number, study, party)
            )

    def hold(self, study: StudyId, body: bytes) -> None:
        """Keep the message that opens a step until it may be sent, in the caller's transaction."""
        self._file.write("INSERT INTO held VALUES (?, ?)", (study, body))

    def held(self, study: StudyId) -> bytes | None:
        """Return the message that opens the next step, if it is held."""
        rows = self._file.rows("SELECT body FROM held WHERE study = ?", (study,))
        return bytes(rows[0][0]) if rows else None

    def holding(self) -> set[StudyId]:
        """Return the studies whose next step is held."""
        return {StudyId(study) for (study,) in self._file.rows("SELECT study FROM held")}

    def send_held(self, study: StudyId) -> None:
        """Forget the held message, in the caller's transaction: it is queued."""
        self._file.write("DELETE FROM held WHERE study = ?", (study,))

    def wait_for(
        self, study: StudyId, parties: Sequence[str], word: Word, *, at: str, anew: bool = False
    ) -> None:
        """Record which parties a study waits for now, in the caller's transaction.

        With many parties an answer changes one line. Those that were waited for before keep their
        times, unless the wait begins `anew`.
        """
        query = "SELECT party, word FROM awaited WHERE study = ?"
        before: dict[str, str] = dict(self._file.rows(query, (study,)))
        for party in before.keys() - set(parties):
            self._file.write("DELETE FROM awaited WHERE study = ? AND party = ?", (study, party))
        for party in parties:
            if anew or before.get(party) != word:
                self._file.write(
                    "INSERT OR REPLACE INTO awaited VALUES (?, ?, ?, ?)", (study, party, word, at)
                )

    def approve(self, study: StudyId, party: str, signature: bytes, *, at: str) -> None:
        """Keep a party's approval, in the caller's transaction."""
        self._file.write(
            "INSERT OR IGNORE INTO approval VALUES (?, ?, ?, ?)", (study, party, signature, at)
        )

    def acknowledge(self, study: StudyId, party: str, newest: int) -> None:
        """Record that a party has the messages up to a number; drop what no party waits for."""
        over = self.record(study).ended_at is not None
        with self._file.transaction(synced=over):  # or the message is sent once more
            self.outbox.acknowledge(study, party, newest, over=over)
            self._file.write(
                "UPDATE member SET settled = 1 WHERE study = ? AND party = ? AND settled = 0 "
                "AND EXISTS (SELECT 1 FROM study WHERE study = ? AND ended_at IS NOT NULL) "
                "AND NOT EXISTS (SELECT 1 FROM outgoing "
                "WHERE study = ? AND recipient = ? AND acknowledged = 0)",
                (study, party, study, study, party),
            )

    def age_queues(self, *, hours: int) -> None:
        """Note that the curator ran for so many hours; drop queues that were kept for too long."""
        ended = (
            "SELECT DISTINCT study FROM member INDEXED BY member_open CROSS JOIN study "
            "USING (study) WHERE settled = 0 AND ended_at IS NOT NULL"
        )
        if not self._file.rows(ended):
            return
        with self._file.transaction():
            self._file.write(f"INSERT OR IGNORE INTO queue_age SELECT study, 0 FROM ({ended})")  # noqa: S608  # ours
            self._file.write("UPDATE queue_age SET hours = hours + ?", (hours,))
            old = self._file.rows("SELECT study FROM queue_age WHERE hours >= ?", (KEEP_QUEUES_H,))
            for (study,) in old:
                self.outbox.drop(study)
                self._file.write("UPDATE member SET settled = 1 WHERE study = ?", (study,))
            self._file.write(f"DELETE FROM queue_age WHERE study NOT IN ({ended})")  # noqa: S608  # ours

    def paillier_key(self, study: StudyId) -> PrivateKey | None:
        rows = self._file.rows("SELECT key FROM paillier_key WHERE study = ?", (study,))
        return private_key_from_bytes(rows[0][0], passphrase=self._passphrase) if rows else None

    def keep_paillier_key(self, study: StudyId, key: PrivateKey) -> None:
        data = private_key_to_bytes(key, passphrase=self._passphrase, source=self._source)
        with self._file.transaction():
            self._file.write("INSERT INTO paillier_key VALUES (?, ?)", (study, data))
