"""The messages of a service's studies, on disk before they count, and wiped when a study ends.

A received message is kept with the names of the effects it had, in the order in which messages
came, so a role that is given the same messages again comes to where it was. A message to send is
kept until its recipient has acknowledged it; one of many recipients is kept once. Messages of one
sender, and to one recipient, are numbered 1, 2, 3, ...

Everything is written in the transaction of the caller, whose file has a table `study`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.errors import LocalError
from common.service.database import Database
from common.study.ids import StudyId, short_id
from common.wire.catalogue import ErrorCode, WireError

_RECEIVED = """
CREATE TABLE IF NOT EXISTS received (
    study BLOB NOT NULL REFERENCES study (study),
    number INTEGER NOT NULL,
    sender TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    body BLOB,
    effects TEXT NOT NULL,
    received_at TEXT NOT NULL,
    PRIMARY KEY (study, number),
    UNIQUE (study, sender, sequence)
) STRICT;
"""
_SENT = """
CREATE TABLE IF NOT EXISTS content (
    study BLOB NOT NULL REFERENCES study (study),
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (study, digest)
) STRICT;
CREATE TABLE IF NOT EXISTS outgoing (
    study BLOB NOT NULL REFERENCES study (study),
    recipient TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    acknowledged INTEGER NOT NULL,
    PRIMARY KEY (study, recipient, sequence)
) STRICT;
CREATE INDEX IF NOT EXISTS outgoing_due ON outgoing (study, digest) WHERE acknowledged = 0;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message that was taken in, and the names of the effects it had."""

    sender: str
    sequence: int
    body: bytes
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message to be sent, until it is acknowledged."""

    sequence: int
    body: bytes


class Inbox:
    """The messages that a service took in."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_RECEIVED)

    def is_duplicate(self, study: StudyId, sender: str, *, sequence: int, body: bytes) -> bool:
        """Compare a message with those that its sender sent before; whether it is one of them.

        Raises:
            WireError: OUT_OF_ORDER: one before it is missing; SEQUENCE_REUSED: another one came
                with its number.
        """
        newest = self.newest(study, sender)
        if sequence == newest + 1:
            return False
        if not 1 <= sequence <= newest:
            words = f"message {sequence} came after message {newest}"
            raise WireError(ErrorCode.OUT_OF_ORDER, words)
        ((digest,),) = self._file.rows(
            "SELECT digest FROM received WHERE study = ? AND sender = ? AND sequence = ?",
            (study, sender, sequence),
        )
        if digest != _sha256(body):
            words = f"message {sequence} came twice, with different content"
            raise WireError(ErrorCode.SEQUENCE_REUSED, words)
        return True

    def add(
        self,
        study: StudyId,
        sender: str,
        *,
        sequence: int,
        body: bytes,
        effects: Sequence[str],
        at: str,
        kept: bool = True,
    ) -> None:
        """Keep a message and the names of its effects; of one not kept, the digest alone."""
        self._file.write(
            "INSERT INTO received VALUES (?, 1 + (SELECT COALESCE(MAX(number), 0) FROM received "
            "WHERE study = ?), ?, ?, ?, ?, ?, ?)",
            (
                study, study, sender, sequence, _sha256(body), body if kept else None,
                json.dumps(list(effects)), at,
            ),
        )  # fmt: skip

    def newest(self, study: StudyId, sender: str) -> int:
        """Return the number of a sender's newest message; 0 before the first."""
        ((newest,),) = self._file.rows(
            "SELECT COALESCE(MAX(sequence), 0) FROM received WHERE study = ? AND sender = ?",
            (study, sender),
        )
        return int(newest)

    def messages(self, study: StudyId) -> Iterator[Received]:
        """Yield the messages of a study in the order they came; LocalError once they are wiped."""
        numbers = self._file.rows(
            "SELECT number FROM received WHERE study = ? ORDER BY number", (study,)
        )
        for (number,) in numbers:
            ((sender, sequence, body, effects),) = self._file.rows(
                "SELECT sender, sequence, body, effects FROM received "
                "WHERE study = ? AND number = ?",
                (study, number),
            )
            if body is None:
                raise LocalError(f"message {number} of study {short_id(study)} was wiped")
            yield Received(
                sender=sender, sequence=sequence, body=bytes(body),
                effects=tuple(json.loads(effects)),
            )  # fmt: skip

    def bodies(self, study: StudyId, sender: str) -> list[bytes]:
        """List a sender's messages in order; none once they are wiped."""
        rows = self._file.rows(
            "SELECT body FROM received WHERE study = ? AND sender = ? AND body IS NOT NULL "
            "ORDER BY sequence",
            (study, sender),
        )
        return [bytes(body) for (body,) in rows]

    def digests(self, study: StudyId, sender: str) -> list[bytes]:
        """List SHA-256 of a sender's messages in order; digests outlive the messages."""
        rows = self._file.rows(
            "SELECT digest FROM received WHERE study = ? AND sender = ? ORDER BY sequence",
            (study, sender),
        )
        return [bytes(digest) for (digest,) in rows]

    def wipe(self, study: StudyId) -> None:
        self._file.write("UPDATE received SET body = NULL WHERE study = ?", (study,))


class Outbox:
    """The messages that a service sends, numbered for each recipient."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_SENT)

    def add(self, study: StudyId, recipient: str, body: bytes) -> Outgoing:
        """Put a message behind the others for a recipient."""
        digest, sequence = _sha256(body), self.newest(study, recipient) + 1
        self._file.write("INSERT OR IGNORE INTO content VALUES (?, ?, ?)", (study, digest, body))
        self._file.write(
            "INSERT INTO outgoing VALUES (?, ?, ?, ?, 0)", (study, recipient, sequence, digest)
        )
        return Outgoing(sequence=sequence, body=body)

    def newest(self, study: StudyId, recipient: str) -> int:
        """Return the number of the newest message to a recipient; 0 before the first."""
        return self._newest(study, recipient, "")

    def acknowledged(self, study: StudyId, recipient: str) -> int:
        """Return the number of the newest acknowledged message; 0 before the first."""
        return self._newest(study, recipient, "AND acknowledged = 1")

    def _newest(self, study: StudyId, recipient: str, which: str) -> int:
        ((newest,),) = self._file.rows(
            "SELECT COALESCE(MAX(sequence), 0) FROM outgoing "  # noqa: S608  # ours
            f"WHERE study = ? AND recipient = ? {which}",
            (study, recipient),
        )
        return int(newest)

    def next(self, study: StudyId, recipient: str, *, after: int) -> Outgoing | None:
        """Return the first message to a recipient after a number, if one is still kept."""
        rows = self._file.rows(
            "SELECT sequence, body FROM outgoing JOIN content USING (study, digest) "
            "WHERE study = ? AND recipient = ? AND sequence > ? ORDER BY sequence LIMIT 1",
            (study, recipient, after),
        )
        return Outgoing(sequence=rows[0][0], body=bytes(rows[0][1])) if rows else None

    def due(self, study: StudyId, recipient: str) -> Iterator[Outgoing]:
        """Yield what a recipient has not acknowledged and is still kept, in order."""
        newest = self.acknowledged(study, recipient)
        while (message := self.next(study, recipient, after=newest)) is not None:
            yield message
            newest = message.sequence

    def acknowledge(self, study: StudyId, recipient: str, newest: int) -> None:
        """Note that a recipient has messages up to a number; drop what is due to none."""
        which = "study = ? AND recipient = ? AND sequence <= ? AND acknowledged = 0"
        values = (study, recipient, newest)
        digests = self._file.rows(f"SELECT digest FROM outgoing WHERE {which}", values)  # noqa: S608  # ours
        self._file.write(f"UPDATE outgoing SET acknowledged = 1 WHERE {which}", values)  # noqa: S608  # ours
        for (digest,) in digests:
            # Looked up by the index: an acknowledgement costs the same with many recipients.
            self._file.write(
                "DELETE FROM content WHERE study = ?1 AND digest = ?2 AND NOT EXISTS "
                "(SELECT 1 FROM outgoing INDEXED BY outgoing_due "
                "WHERE study = ?1 AND digest = ?2 AND acknowledged = 0)",
                (study, digest),
            )

    def drop(self, study: StudyId) -> None:
        """Forget what messages say, acknowledged or not: they are not sent any more."""
        self._file.write("DELETE FROM content WHERE study = ?", (study,))


def _sha256(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
