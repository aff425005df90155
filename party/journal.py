"""What a party received, drew and let out, on disk before it counts: the memory of a crashed node.

Every received message is one transaction: the message, the charge it caused, the exact bytes it is
answered with. Only then do bytes leave. After a crash the role is rebuilt by giving it the received
messages again, with the randomness of the same per-step keys, and what was released but not
acknowledged is sent again, byte for byte: nothing is ever drawn, encrypted or charged a second
time.

When the study ends its keys and messages are wiped. What stays is the transcript: for every message
that left, to whom it went, when, how large it was, and its SHA-256.

Not here: what messages mean, and when to send them. `party.node` knows.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from common.errors import LocalError, PolicyError, RemoteProtocolError
from common.privacy.randomness import KEY_BYTES, RandomSource
from common.service.database import Database
from common.service.traffic import TrafficLog

_TABLES = """
CREATE TABLE IF NOT EXISTS study (
    study BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    data_digest TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    began_at TEXT NOT NULL,
    ended_at TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS received (
    study BLOB NOT NULL REFERENCES study (study),
    number INTEGER NOT NULL,
    digest BLOB NOT NULL,
    body BLOB,
    effects TEXT NOT NULL,
    received_at TEXT NOT NULL,
    PRIMARY KEY (study, number)
) STRICT;
CREATE TABLE IF NOT EXISTS outgoing (
    study BLOB NOT NULL REFERENCES study (study),
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    recipient TEXT NOT NULL,
    digest BLOB NOT NULL,
    size INTEGER NOT NULL,
    body BLOB,
    released_at TEXT NOT NULL,
    acknowledged_at TEXT,
    PRIMARY KEY (study, number)
) STRICT;
CREATE TABLE IF NOT EXISTS step_key (
    study BLOB NOT NULL REFERENCES study (study),
    step INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (study, step)
) STRICT;
"""


class StudyState(enum.StrEnum):
    """Where a study stands for this party."""

    RUNNING = "running"
    FINISHED = "finished"
    ABORTED = "aborted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRecord:
    """A study as the journal knows it; `reason` is for the owner's eyes, and never sent."""

    study: bytes
    name: str
    state: StudyState
    reason: str
    began_at: str
    ended_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message in the journal, and the names of the effects it had."""

    number: int
    body: bytes
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message to be sent, until it is acknowledged."""

    number: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A line of the transcript: a message that left, or may have left from `released_at` on."""

    study: bytes
    study_name: str
    number: int
    kind: str
    recipient: str
    digest: str
    size: int
    released_at: str
    acknowledged_at: str | None


class Journal:
    """The journal of all studies of a party, in the same file as its ledger.

    Args:
        database: the file.
        source: where the keys of steps are drawn from.
    """

    def __init__(self, database: Database, source: RandomSource) -> None:
        self._file = database
        self._source = source
        self.traffic = TrafficLog(database)
        database.add_tables(_TABLES)

    @property
    def private(self) -> bool:
        """Whether the keys of steps are secrets: false with a seeded source."""
        return self._source.private

    def transaction(self) -> AbstractContextManager[None]:
        """All of the block's changes on disk, or none."""
        return self._file.transaction()

    def begin(self, study: bytes, *, name: str, data_digest: str, at: str) -> None:
        """Open a study, once, and pin the data that it is about.

        Raises:
            PolicyError: the study is open already, about other data.
        """
        with self._file.transaction():
            known = self._file.rows(
                "SELECT data_digest, state FROM study WHERE study = ?", (study,)
            )
            if not known:
                self._file.write(
                    "INSERT INTO study VALUES (?, ?, ?, ?, '', ?, NULL)",
                    (study, name, data_digest, StudyState.RUNNING.value, at),
                )
            elif known[0][1] == StudyState.RUNNING.value and known[0][0] != data_digest:
                raise PolicyError(
                    f"the data changed since study {name!r} began, and answers about two different "
                    "tables protect neither. Restore the data as it was, or give the study up with "
                    "`parley party decline`"
                )

    def forget_unanswered(self, study: bytes) -> None:
        """Undo `begin` while nothing was received: our approval did not arrive, nothing is due."""
        with self._file.transaction():
            self._file.write(
                "DELETE FROM study WHERE study = ? AND state = ? "
                "AND NOT EXISTS (SELECT 1 FROM received WHERE received.study = study.study) "
                "AND NOT EXISTS (SELECT 1 FROM step_key WHERE step_key.study = study.study)",
                (study, StudyState.RUNNING.value),
            )

    def pinned_data(self, study: bytes) -> str | None:
        """The digest of the data that a running study is about; None if none runs."""
        found = self._file.rows(
            "SELECT data_digest FROM study WHERE study = ? AND state = ?",
            (study, StudyState.RUNNING.value),
        )
        return str(found[0][0]) if found else None

    def studies(self) -> list[StudyRecord]:
        """Every study this party took part in, oldest first."""
        return self._records("", ())

    def record(self, study: bytes) -> StudyRecord | None:
        """One of them; None if we took no part in it."""
        return next(iter(self._records("WHERE study = ?", (study,))), None)

    def _records(self, where: str, values: tuple[bytes, ...]) -> list[StudyRecord]:
        rows = self._file.rows(
            "SELECT study, name, state, reason, began_at, ended_at "  # noqa: S608  # ours
            f"FROM study {where} ORDER BY rowid",
            values,
        )
        return [
            StudyRecord(
                study=study, name=name, state=StudyState(state), reason=reason,
                began_at=began_at, ended_at=ended_at,
            )
            for study, name, state, reason, began_at, ended_at in rows
        ]  # fmt: skip

    def state(self, study: bytes) -> StudyState:
        """Where a study stands."""
        found = self._file.rows("SELECT state FROM study WHERE study = ?", (study,))
        if not found:
            raise LocalError(f"study {study.hex()[:16]} was never begun here")
        return StudyState(found[0][0])

    def step_key(self, study: bytes, step: int) -> bytes:
        """The secret key of a step's randomness, on disk before it is returned."""
        with self._file.transaction():
            found = self._file.rows(
                "SELECT key FROM step_key WHERE study = ? AND step = ?", (study, step)
            )
            if found:
                return bytes(found[0][0])
            if self.state(study) is not StudyState.RUNNING:
                raise LocalError("a study that ended has no keys any more")
            key = self._source.random_bytes(KEY_BYTES)
            self._file.write("INSERT INTO step_key VALUES (?, ?, ?)", (study, step, key))
        return key

    def is_duplicate(self, study: bytes, number: int, body: bytes) -> bool:
        """Whether this message was received before; they arrive numbered 1, 2, 3, ...

        Raises:
            RemoteProtocolError: a message is missing before this one, or another one was received
                under this number.
        """
        newest = self.newest_received(study)
        if number == newest + 1:
            return False
        if number > newest + 1 or number < 1:
            raise RemoteProtocolError(f"message {number} came after message {newest}")
        ((digest,),) = self._file.rows(
            "SELECT digest FROM received WHERE study = ? AND number = ?", (study, number)
        )
        if digest != _sha256(body):
            raise RemoteProtocolError(f"message {number} came twice, with different content")
        return True

    def newest_released(self, study: bytes) -> int:
        """The number of the newest message that left or may have left; 0 before the first."""
        return self._newest("outgoing", study)

    def newest_received(self, study: bytes) -> int:
        """The number of the newest message received; 0 before the first."""
        return self._newest("received", study)

    def received(self, study: bytes, number: int) -> Received:
        """A message of a running study, for replay."""
        found = self._file.rows(
            "SELECT body, effects FROM received WHERE study = ? AND number = ?", (study, number)
        )
        if not found or found[0][0] is None:
            raise LocalError(f"message {number} is not in the journal any more")
        body, effects = found[0]
        return Received(number=number, body=bytes(body), effects=tuple(json.loads(effects)))

    def received_digests(self, study: bytes) -> list[bytes]:
        """SHA-256 of every message received, in order; they stay when the bodies are wiped."""
        rows = self._file.rows(
            "SELECT digest FROM received WHERE study = ? ORDER BY number", (study,)
        )
        return [bytes(digest) for (digest,) in rows]

    def add_received(
        self, study: bytes, number: int, body: bytes, *, effects: Sequence[str], at: str
    ) -> None:
        """Remember a message and the names of its effects, in the caller's transaction."""
        kept = body if self.state(study) is StudyState.RUNNING else None
        self._file.write(
            "INSERT INTO received VALUES (?, ?, ?, ?, ?, ?)",
            (study, number, _sha256(body), kept, json.dumps(list(effects)), at),
        )

    def add_outgoing(self, study: bytes, body: bytes, *, kind: str, recipient: str, at: str) -> int:
        """Release bytes, in the caller's transaction; their number."""
        number = self.newest_released(study) + 1
        self._file.write(
            "INSERT INTO outgoing VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (study, number, kind, recipient, _sha256(body), len(body), body, at),
        )
        return number

    def outbox(self, study: bytes) -> list[int]:
        """The numbers of what was released and not acknowledged, in order."""
        rows = self._file.rows(
            "SELECT number FROM outgoing WHERE study = ? AND acknowledged_at IS NULL "
            "AND body IS NOT NULL ORDER BY number",
            (study,),
        )
        return [number for (number,) in rows]

    def outgoing(self, study: bytes, number: int) -> Outgoing:
        """A message of the outbox."""
        ((body,),) = self._file.rows(
            "SELECT body FROM outgoing WHERE study = ? AND number = ?", (study, number)
        )
        return Outgoing(number=number, body=bytes(body))

    def acknowledge(self, study: bytes, number: int, *, at: str) -> None:
        """The curator has this message, and every one before it; again is harmless.

        Raises:
            RemoteProtocolError: nothing with that number was ever released.
        """
        if not 0 <= number <= self.newest_released(study):
            raise RemoteProtocolError(
                f"message {number} was acknowledged but never sent from this folder: if that is an "
                "older copy, give the study up with `parley party decline`"
            )
        with self._file.transaction():
            self._file.write(
                "UPDATE outgoing SET acknowledged_at = ? "
                "WHERE study = ? AND number <= ? AND acknowledged_at IS NULL",
                (at, study, number),
            )
            if self.state(study) is not StudyState.RUNNING:
                self._wipe_acknowledged(study)

    def end(self, study: bytes, state: StudyState, *, reason: str, at: str) -> None:
        """Close a study and wipe its secrets; what was not acknowledged yet stays to be sent.

        Unless the curator ended the study for us: it takes nothing more then.
        """
        with self._file.transaction():
            self._file.write(
                "UPDATE study SET state = ?, reason = ?, ended_at = ? WHERE study = ?",
                (state.value, reason, at, study),
            )
            self._file.write("DELETE FROM step_key WHERE study = ?", (study,))
            self._file.write("UPDATE received SET body = NULL WHERE study = ?", (study,))
            self._wipe_acknowledged(study)
            if state is StudyState.ABORTED:
                self._file.write("UPDATE outgoing SET body = NULL WHERE study = ?", (study,))

    def transcript(self) -> list[Departure]:
        """Every message that left or may have left, of every study, oldest first."""
        rows = self._file.rows(
            "SELECT study, name, number, kind, recipient, digest, size, released_at, "
            "acknowledged_at FROM outgoing JOIN study USING (study) ORDER BY outgoing.rowid"
        )
        return [
            Departure(
                study=study, study_name=name, number=number, kind=kind, recipient=recipient,
                digest=digest.hex(), size=size, released_at=released_at,
                acknowledged_at=acknowledged_at,
            )
            for study, name, number, kind, recipient, digest, size, released_at, acknowledged_at
            in rows
        ]  # fmt: skip

    def _newest(self, table: str, study: bytes) -> int:
        ((number,),) = self._file.rows(
            f"SELECT COALESCE(MAX(number), 0) FROM {table} WHERE study = ?",  # noqa: S608  # ours
            (study,),
        )
        return int(number)

    def _wipe_acknowledged(self, study: bytes) -> None:
        self._file.write(
            "UPDATE outgoing SET body = NULL WHERE study = ? AND acknowledged_at IS NOT NULL",
            (study,),
        )


def _sha256(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
