"""Messages and roles that survive a crash: on disk before they count, wiped when a study ends.

A received message is kept with the names of the effects it had, in the order in which messages
came. A message to send is kept until its recipient has acknowledged it; a message to many
recipients is kept once. Messages of one sender, and to one recipient, are numbered 1, 2, 3, ...
Everything is written in the transaction of the caller, whose file has a table `study`.

A role is deterministic given the study, the messages in order and the random source of each step.
The messages are in the inbox, and the key of each step's source is on disk before it is used. So a
replay of the inbox brings the role back. What the role would send during a replay is thrown away:
sealed envelopes would differ, and the bytes in the outbox are the ones that count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import KEY_BYTES, KeyedRandomSource, RandomSource, SourceOfStep
from common.privacy.secret import Secret
from common.service.database import Database
from common.study.ids import StudyId, short_id
from common.wire.catalogue import ErrorCode, WireError
from common.wire.frames import NumberedMessage

R = TypeVar("R")

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
_STEP_KEYS = """
CREATE TABLE IF NOT EXISTS step_key (
    study BLOB NOT NULL REFERENCES study (study),
    step INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (study, step)
) STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message that was taken in, and the names of the effects it had."""

    sender: str
    sequence: int
    body: bytes
    effects: tuple[str, ...]


class Inbox:
    """The messages that a service took in."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_RECEIVED)

    def is_duplicate(self, study: StudyId, sender: str, *, sequence: int, body: bytes) -> bool:
        """Return whether a message came before; WireError for a gap, or other content."""
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
        keep: bool = True,
    ) -> None:
        """Keep a message, or its digest alone, with the names of its effects."""
        self._file.write(
            "INSERT INTO received VALUES (?, 1 + (SELECT COALESCE(MAX(number), 0) FROM received "
            "WHERE study = ?), ?, ?, ?, ?, ?, ?)",
            (
                study, study, sender, sequence, _sha256(body), body if keep else None,
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
        """List a sender's messages in order, as long as they are not wiped."""
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
        self._file.wipe("UPDATE received SET body = NULL WHERE study = ?", (study,))


class Outbox:
    """The messages that a service sends, numbered for each recipient."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_SENT)

    def add(self, study: StudyId, recipient: str, body: bytes) -> NumberedMessage:
        """Queue a message for a recipient."""
        digest, sequence = _sha256(body), self.newest(study, recipient) + 1
        self._file.write("INSERT OR IGNORE INTO content VALUES (?, ?, ?)", (study, digest, body))
        self._file.write(
            "INSERT INTO outgoing VALUES (?, ?, ?, ?, 0)", (study, recipient, sequence, digest)
        )
        return NumberedMessage(sequence=sequence, body=body)

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

    def next(self, study: StudyId, recipient: str, *, after: int) -> NumberedMessage | None:
        """Return the first message to a recipient after a number, if one is still kept."""
        rows = self._file.rows(
            "SELECT sequence, body FROM outgoing JOIN content USING (study, digest) "
            "WHERE study = ? AND recipient = ? AND sequence > ? ORDER BY sequence LIMIT 1",
            (study, recipient, after),
        )
        return NumberedMessage(sequence=rows[0][0], body=bytes(rows[0][1])) if rows else None

    def due(self, study: StudyId, recipient: str) -> Iterator[NumberedMessage]:
        """Yield what a recipient has not acknowledged and is still kept, in order."""
        newest = self.acknowledged(study, recipient)
        while (message := self.next(study, recipient, after=newest)) is not None:
            yield message
            newest = message.sequence

    def acknowledge(self, study: StudyId, recipient: str, newest: int, *, over: bool) -> None:
        """Record that a recipient has messages up to a number; drop what is due to none.

        Of a study that is over, no trace is to stay; of another one, the log may keep some.
        """
        remove = self._file.wipe if over else self._file.write
        which = "study = ? AND recipient = ? AND sequence <= ? AND acknowledged = 0"
        values = (study, recipient, newest)
        digests = self._file.rows(f"SELECT digest FROM outgoing WHERE {which}", values)  # noqa: S608  # ours
        self._file.write(f"UPDATE outgoing SET acknowledged = 1 WHERE {which}", values)  # noqa: S608  # ours
        for (digest,) in digests:
            # Looked up by the index: an acknowledgement costs the same with many recipients.
            remove(
                "DELETE FROM content WHERE study = ?1 AND digest = ?2 AND NOT EXISTS "
                "(SELECT 1 FROM outgoing INDEXED BY outgoing_due "
                "WHERE study = ?1 AND digest = ?2 AND acknowledged = 0)",
                (study, digest),
            )

    def drop(self, study: StudyId) -> None:
        """Forget the bytes of messages, acknowledged or not: they are not sent any more."""
        self._file.wipe("DELETE FROM content WHERE study = ?", (study,))


def _sha256(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


class StepKeys:
    """The secret keys of the steps' randomness, drawn once and kept until their study ends."""

    def __init__(self, database: Database, source: RandomSource) -> None:
        self._file, self._source = database, source
        database.add_tables(_STEP_KEYS)

    @property
    def private(self) -> bool:
        """Whether keys are secrets: false with a seeded source."""
        return self._source.private

    def key(self, study: StudyId, step: int) -> Secret[bytes]:
        """Return the key of a step, written before it is returned.

        A message that says anything about the key is synced before it leaves, and the key with it.
        """
        with self._file.transaction(synced=False):
            rows = self._file.rows(
                "SELECT key FROM step_key WHERE study = ? AND step = ?", (study, step)
            )
            if rows:
                return Secret(bytes(rows[0][0]))
            key = self._source.random_bytes(KEY_BYTES)
            self._file.write("INSERT INTO step_key VALUES (?, ?, ?)", (study, step, key))
        return Secret(key)

    def all(self, study: StudyId) -> dict[int, Secret[bytes]]:
        """Return the keys of a study that were drawn so far, by step."""
        rows = self._file.rows("SELECT step, key FROM step_key WHERE study = ?", (study,))
        return {int(step): Secret(bytes(key)) for step, key in rows}

    def wipe(self, study: StudyId) -> None:
        """Forget the keys of a study, in the caller's transaction."""
        self._file.wipe("DELETE FROM step_key WHERE study = ?", (study,))


class DurableRole(Generic[R]):
    """The role of one study, rebuilt from disk when it is needed. One thread at a time uses it.

    Args:
        study: its name, for errors.
        begin: makes a fresh role, given where the randomness of a step comes from.
        start: what a role does before its first message.
        feed: gives a role a message again, and names the effects.
        messages: what the role was given so far.
        key_of: returns the key of a step.
        private: whether keys are secrets.
    """

    def __init__(
        self,
        study: str,
        *,
        begin: Callable[[SourceOfStep], R],
        feed: Callable[[R, Received], Iterable[str]],
        start: Callable[[R], object] = lambda role: None,
        messages: Callable[[], Iterable[Received]],
        key_of: Callable[[int], Secret[bytes]],
        private: bool,
    ) -> None:
        self._study, self._begin, self._start, self._feed = study, begin, start, feed
        self._messages, self._key_of, self._private = messages, key_of, private
        self._role: R | None = None
        self._sources: dict[int, KeyedRandomSource] = {}

    @property
    def is_built(self) -> bool:
        """Whether the role is in memory."""
        return self._role is not None

    def begin(self) -> R:
        """Make the role anew, not started; its streams are read from their beginning."""
        self._sources = {}
        self._role = self._begin(self._source_of)
        return self._role

    def current(self) -> R:
        """Return the role, rebuilt from its messages; LocalError if they have other effects now."""
        if self._role is not None:
            return self._role
        with self.guarded():
            role = self.begin()
            self._start(role)
            for message in self._messages():
                effects = tuple(self._feed(role, message))
                if effects != message.effects:
                    raise LocalError(
                        f"study {self._study!r}: message {message.sequence} of {message.sender!r} "
                        f"had the effects {list(message.effects)} when it came, and has other "
                        f"effects now, {list(effects)}. Go on with the version of this program "
                        "that the study was begun with"
                    )
        return role

    def forget(self) -> None:
        """Drop the role; it is rebuilt when it is needed again."""
        self._role = None

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Forget the role if the block fails and the role may be ahead of the disk.

        Its streams may be ahead, too: a replay would then read again, for another answer, what was
        used already. A message that is refused before any randomness is drawn changes nothing.
        """
        role, drawn = self._role, self._drawn()
        try:
            yield
        except BaseException as error:
            refused = isinstance(error, RemoteProtocolError)
            if not refused or self._role is not role or self._drawn() != drawn:
                self.forget()
            raise

    def _source_of(self, step: int) -> RandomSource:
        """Return the one stream of a step; asked again, it goes on and repeats nothing."""
        if step not in self._sources:
            self._sources[step] = KeyedRandomSource(
                self._key_of(step).reveal(), private=self._private
            )
        return self._sources[step]

    def _drawn(self) -> int:
        return sum(source.drawn_bytes for source in self._sources.values())
