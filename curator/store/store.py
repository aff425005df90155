"""What the curator must not forget, in one SQLite file: studies, approvals, messages, keys.

Every accepted message of a party is stored in one transaction with the messages that it caused, so
after a crash a study's role is rebuilt by giving it the same messages in the same order, and what
was queued for the parties is sent as it was, byte for byte. `common.service.durable` does that, for
both services.

When a study ends, its secrets go: the Paillier key, the keys of its steps, what the parties sent.
A queue stays until its party has acknowledged it, at most `KEEP_QUEUES` after the end.

Not here: what messages mean, and when a study starts. `curator.node` knows.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

from common.crypto.key_files import private_key_from_bytes, private_key_to_bytes
from common.crypto.paillier.keys import PrivateKey
from common.errors import InputError, LocalError
from common.privacy.randomness import RandomSource
from common.service.database import Database
from common.service.durable.messages import Inbox, Outbox
from common.service.durable.role import StepKeys
from common.service.traffic import TrafficLog
from common.study.document import Study
from common.study.ids import StudyId
from common.wire.strict import MOST_STUDY_BYTES
from curator.progress import Links, StepRecord
from curator.store.reader import StoreReader
from curator.store.records import Alert, StudyState, Word
from curator.store.tables import TABLES

KEEP_QUEUES = dt.timedelta(days=30)  # of an ended study, for a party that does not acknowledge


class Store(StoreReader):
    """The store of all studies of a curator. Threads may share it.

    A passphrase protects Paillier keys on top of the file's mode.
    """

    def __init__(
        self, database: Database, source: RandomSource, *, passphrase: str | None = None
    ) -> None:
        super().__init__(database)
        self._source = source
        self._passphrase = passphrase
        database.add_tables(TABLES)
        self.traffic = TrafficLog(database)
        self.inbox, self.outbox = Inbox(database), Outbox(database)
        self.keys = StepKeys(database, source)

    @property
    def version(self) -> int:
        """Another one after every change that this process made."""
        return self._file.commits

    def transaction(self) -> AbstractContextManager[None]:
        """All of the block's changes on disk, or none."""
        return self._file.transaction()

    def check(self) -> None:
        self._file.check()

    def check_at_start(self) -> None:
        self._file.check_at_start()

    def enrol(self, name: str, *, identity: bytes, software: str, at: str) -> None:
        """Note who was here, with the identity that it offers for studies."""
        with self._file.transaction():
            self._file.write(
                "INSERT OR REPLACE INTO party VALUES (?, ?, ?, ?)", (name, identity, software, at)
            )

    def note_calls(self, calls: Mapping[str, str]) -> None:
        with self._file.transaction():
            for party, at in calls.items():
                self._file.write("UPDATE party SET seen_at = ? WHERE name = ?", (at, party))

    def propose(self, study: Study, *, at: str) -> None:
        """Take in a study; again is harmless, and brings its signature up to date."""
        document = study.to_toml()
        if len(document) > MOST_STUDY_BYTES:
            raise InputError(
                f"study {study.name!r} has {len(document):,} characters, at most "
                f"{MOST_STUDY_BYTES:,} can be sent; use fewer values in its schema"
            )
        if Study.from_toml(document).digest != study.digest:
            raise LocalError(f"study {study.name!r} does not survive being written down")
        with self._file.transaction():
            self._file.write(
                "INSERT INTO study VALUES (?, ?, ?, ?, 0, '', '', '', ?, NULL) "
                "ON CONFLICT (study) DO UPDATE SET document = excluded.document",
                (study.digest, study.name, document, StudyState.WAITING.value, at),
            )
            for member in study.members:
                self._file.write(
                    "INSERT OR IGNORE INTO member VALUES (?, ?, 0)", (study.digest, member.name)
                )

    def move(self, study: StudyId, state: StudyState, *, step: int, phase: str) -> None:
        """Note where a study stands, in the caller's transaction."""
        self._file.write(
            "UPDATE study SET state = ?, step = ?, phase = ?, cause = '' WHERE study = ?",
            (state.value, step, phase, study),
        )

    def note_step(self, study: StudyId, step: StepRecord) -> None:
        """Note what was opened, in the caller's transaction; again is harmless."""
        costs = json.dumps({party: str(cost) for party, cost in step.costs.items()})
        self._file.write(
            "INSERT OR IGNORE INTO step VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                study, step.number, step.name, step.phase, step.opened_at, costs,
                json.dumps(step.links),
            ),
        )  # fmt: skip

    def note_links(self, study: StudyId, number: int, links: Links) -> None:
        """Note which attributes a published choice puts together, in the caller's transaction."""
        self._file.write(
            "UPDATE step SET links = ? WHERE study = ? AND number = ?",
            (json.dumps(links), study, number),
        )

    def note_cause(self, study: StudyId, cause: str) -> None:
        """Why a study does not go on."""
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
        self._file.write("DELETE FROM paillier_key WHERE study = ?", (study,))
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
        """The studies and the parties that they are to go on without."""
        rows = self._file.rows("SELECT study, party FROM missing_request ORDER BY rowid")
        return [(StudyId(study), party) for study, party in rows]

    def drop_missing(self, study: StudyId, party: str) -> None:
        """Forget a request: it was seen to, or the study is over."""
        with self._file.transaction():
            self._file.write(
                "DELETE FROM missing_request WHERE study = ? AND party = ?", (study, party)
            )

    def add_alert(self, study: StudyId, event: str, *, words: str, at: str) -> None:
        """Note an event for the operator, in the caller's transaction or in one of its own."""
        with self._file.transaction():
            self._file.write(
                "INSERT INTO alert (study, event, words, at) VALUES (?, ?, ?, ?)",
                (study, event, words, at),
            )

    def alerts(self) -> list[Alert]:
        """The events that the operator's hook did not take yet, oldest first."""
        rows = self._file.rows(
            "SELECT number, alert.study, name, event, words, at FROM alert JOIN study "
            "USING (study) ORDER BY number"
        )
        return [
            Alert(number=number, study=StudyId(study), name=name, event=event, words=words, at=at)
            for number, study, name, event, words, at in rows
        ]

    def drop_alerts(self, newest: int) -> None:
        with self._file.transaction():
            self._file.write("DELETE FROM alert WHERE number <= ?", (newest,))

    def hold(self, study: StudyId, body: bytes) -> None:
        """Keep the message that opens a step until it may be sent, in the caller's transaction."""
        self._file.write("INSERT INTO held VALUES (?, ?)", (study, body))

    def held(self, study: StudyId) -> bytes | None:
        """The message that opens the next step, if it is not to be sent yet."""
        rows = self._file.rows("SELECT body FROM held WHERE study = ?", (study,))
        return bytes(rows[0][0]) if rows else None

    def release_held(self, study: StudyId) -> None:
        """Forget the held message, in the caller's transaction: it is queued."""
        self._file.write("DELETE FROM held WHERE study = ?", (study,))

    def wait_for(self, study: StudyId, parties: Iterable[str], word: Word, *, at: str) -> None:
        """Note that a study waits for parties, too, in the caller's transaction."""
        for party in parties:
            self._file.write(
                "INSERT OR REPLACE INTO awaited VALUES (?, ?, ?, ?)", (study, party, word, at)
            )

    def stop_waiting_for(self, study: StudyId, parties: Iterable[str]) -> None:
        """Note that a study waits for parties no more, in the caller's transaction."""
        for party in parties:
            self._file.write("DELETE FROM awaited WHERE study = ? AND party = ?", (study, party))

    def approve(self, study: StudyId, party: str, signature: bytes, *, at: str) -> None:
        """Keep a party's approval, in the caller's transaction; again is harmless."""
        self._file.write(
            "INSERT OR IGNORE INTO approval VALUES (?, ?, ?, ?)", (study, party, signature, at)
        )

    def acknowledge(self, study: StudyId, party: str, newest: int) -> None:
        """A party has every message up to a number; what no party waits for any more is dropped."""
        with self._file.transaction():
            self.outbox.acknowledge(study, party, newest)
            self._file.write(
                "UPDATE member SET settled = 1 WHERE study = ? AND party = ? AND settled = 0 "
                "AND EXISTS (SELECT 1 FROM study WHERE study = ? AND ended_at IS NOT NULL) "
                "AND NOT EXISTS (SELECT 1 FROM outgoing "
                "WHERE study = ? AND recipient = ? AND acknowledged = 0)",
                (study, party, study, study, party),
            )

    def drop_queues(self, *, ended_before: str) -> None:
        """Drop what parties never acknowledged of studies that ended long ago."""
        old = self._file.rows(
            "SELECT DISTINCT study FROM member INDEXED BY member_open CROSS JOIN study "
            "USING (study) WHERE settled = 0 AND ended_at < ?",
            (ended_before,),
        )
        if not old:
            return
        with self._file.transaction():
            for (study,) in old:
                self.outbox.drop(study)
                self._file.write("UPDATE member SET settled = 1 WHERE study = ?", (study,))

    def paillier_key(self, study: StudyId) -> PrivateKey | None:
        found = self._file.rows("SELECT key FROM paillier_key WHERE study = ?", (study,))
        return private_key_from_bytes(found[0][0], passphrase=self._passphrase) if found else None

    def keep_paillier_key(self, study: StudyId, key: PrivateKey) -> None:
        data = private_key_to_bytes(key, passphrase=self._passphrase, source=self._source)
        with self._file.transaction():
            self._file.write("INSERT INTO paillier_key VALUES (?, ?)", (study, data))
