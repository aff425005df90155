"""A party's durable record of the messages it received and sent: the memory of a crashed node.

Every received message is one transaction (`party.node`): the message, the charge it caused, the
exact bytes it is answered with. After a crash those bytes are sent again: nothing is ever drawn,
encrypted or charged a second time.

When the study ends its keys and messages are wiped, unless the owner keeps them for an audit for a
while (`party.retention`). What stays is the sent log: for every message that left, to whom it went,
when, how large it was, and its SHA-256.

`Notes` are beside it: what the running node last said about each study, for `party status`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from common.errors import LocalError, PolicyError, RemoteProtocolError
from common.privacy.randomness import RandomSource
from common.privacy.secret import Secret
from common.service.database import Database
from common.service.durable import Inbox, Outbox, StepKeys
from common.service.traffic import TrafficLog
from common.study.ids import StudyId, short_id
from common.wire.frames import NumberedMessage
from party.retention import Retention

CURATOR = "curator"  # the one peer of a party
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
CREATE TABLE IF NOT EXISTS departure (
    study BLOB NOT NULL REFERENCES study (study),
    sequence INTEGER NOT NULL,
    kind TEXT NOT NULL,
    recipient TEXT NOT NULL,
    size INTEGER NOT NULL,
    released_at TEXT NOT NULL,
    acknowledged_at TEXT,
    PRIMARY KEY (study, sequence)
) STRICT;
"""
_NOTES = """
CREATE TABLE IF NOT EXISTS note (
    study BLOB PRIMARY KEY,
    words TEXT NOT NULL,
    noted_at TEXT NOT NULL
) STRICT;
"""


class JournalState(enum.StrEnum):
    """Where a study stands for this party."""

    RUNNING = "running"
    FINISHED = "finished"
    LEFT = "left"  # the study was finished without this party, which may be in some of its sums
    ABORTED = "aborted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRecord:
    """A study as the journal knows it; `reason` is for the owner's eyes, and never sent."""

    study: StudyId
    name: str
    data_digest: str  # of the rows that it is about; a secret
    state: JournalState
    reason: str
    began_at: str
    ended_at: str | None


_WORDS = {
    "EnvelopePosted": "sealed message to another owner",
    "ShareSubmitted": "counts with noise, encrypted or masked",
    "KeysDealt": "keys of a sum, sealed",
    "BoxRefused": "complaint about sealed keys",
    "BoxOpened": "answer to a complaint",
    "ListSigned": "signature under the list of missing owners",
    "MasksRevealed": "shares of masks",
    "ChoiceSubmitted": "outcome of a private choice",
    "StepMessage": "commitment to the table",
    "PartyRefused": "refusal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """A line of the sent log: a message that left, or may have left from `released_at` on."""

    study: StudyId
    study_name: str
    sequence: int
    kind: str
    recipient: str
    digest: str
    size: int
    released_at: str
    acknowledged_at: str | None

    @property
    def words(self) -> str:
        """What it was, for people."""
        return _WORDS.get(self.kind, self.kind)


class Journal:
    """The journal of all studies of a party, in the same file as its ledger."""

    def __init__(
        self, database: Database, source: RandomSource, retention: Retention | None = None
    ) -> None:
        self._file = database
        self.retention = retention or Retention(database, None, lambda: 0)
        database.add_tables(_TABLES)
        self.traffic = TrafficLog(database)
        self.inbox, self.outbox = Inbox(database), Outbox(database)
        self.keys = StepKeys(database, source)

    def transaction(self) -> AbstractContextManager[None]:
        return self._file.transaction()

    def begin(self, study: StudyId, *, name: str, data_digest: str, at: str) -> None:
        """Open a study, once, and pin its data; PolicyError if it is open with other data."""
        with self._file.transaction():
            known = self.record(study)
            if known is None:
                self._file.write(
                    "INSERT INTO study VALUES (?, ?, ?, ?, '', ?, NULL)",
                    (study, name, data_digest, JournalState.RUNNING.value, at),
                )
            elif known.state is JournalState.RUNNING and known.data_digest != data_digest:
                raise PolicyError(
                    f"study {name!r}: the data changed since the study began, and answers about "
                    "two different tables protect neither. Restore the data as it was, or give the "
                    "study up with `parley party decline`"
                )

    def forget_unanswered(self, study: StudyId) -> None:
        """Undo `begin` while nothing was received: our approval did not arrive, nothing is due."""
        with self._file.transaction():
            self._file.write(
                "DELETE FROM study WHERE study = ? AND state = ? "
                "AND NOT EXISTS (SELECT 1 FROM received WHERE received.study = study.study) "
                "AND NOT EXISTS (SELECT 1 FROM step_key WHERE step_key.study = study.study)",
                (study, JournalState.RUNNING.value),
            )

    def pinned_data(self, study: StudyId) -> str | None:
        """Return the digest of the data of a running study; None if it does not run."""
        known = self.record(study)
        if known is None or known.state is not JournalState.RUNNING:
            return None
        return known.data_digest

    def studies(self) -> list[StudyRecord]:
        """List every study that this party took part in, oldest first."""
        return self._records("", ())

    def record(self, study: StudyId) -> StudyRecord | None:
        """Return one study; None if we took no part in it."""
        return next(iter(self._records("WHERE study = ?", (study,))), None)

    def _records(self, where: str, values: tuple[bytes, ...]) -> list[StudyRecord]:
        return self._file.records(
            StudyRecord,
            "SELECT study, name, data_digest, state, reason, began_at, ended_at "  # noqa: S608  # ours
            f"FROM study {where} ORDER BY rowid",
            values,
            state=JournalState,
        )

    def state(self, study: StudyId) -> JournalState:
        record = self.record(study)
        if record is None:
            raise LocalError(f"study {short_id(study)} was never begun here")
        return record.state

    def step_key(self, study: StudyId, step: int) -> Secret[bytes]:
        """Return the secret key of a step's randomness, which is on disk by then."""
        if self.state(study) is not JournalState.RUNNING:
            raise LocalError("a study that ended has no keys any more")
        return self.keys.key(study, step)

    def add_received(
        self, study: StudyId, *, sequence: int, body: bytes, effects: Sequence[str], at: str
    ) -> None:
        """Remember a message and the names of its effects, in the caller's transaction."""
        self.inbox.add(
            study, CURATOR, sequence=sequence, body=body, effects=effects, at=at,
            keep=self.state(study) is JournalState.RUNNING,
        )  # fmt: skip

    def add_outgoing(
        self, study: StudyId, body: bytes, *, kind: str, recipient: str, at: str
    ) -> NumberedMessage:
        """Journal bytes that are to leave, in the caller's transaction."""
        outgoing = self.outbox.add(study, CURATOR, body)
        self._file.write(
            "INSERT INTO departure VALUES (?, ?, ?, ?, ?, ?, NULL)",
            (study, outgoing.sequence, kind, recipient, len(body), at),
        )
        return outgoing

    def acknowledge(self, study: StudyId, newest: int, *, at: str) -> None:
        """Note that the curator has this message and all before it; repeating it is harmless.

        Raises:
            RemoteProtocolError: nothing with that sequence was ever sent.
        """
        if not 0 <= newest <= self.outbox.newest(study, CURATOR):
            raise RemoteProtocolError(
                f"message {newest}: the curator acknowledged it, and this folder never sent it. If "
                "the folder was rolled back, give the study up with `parley party decline`"
            )
        over = self.pinned_data(study) is None
        with self._file.transaction(synced=over):  # or the message is sent once more
            self.outbox.acknowledge(study, CURATOR, newest, over=over)
            self._file.write(
                "UPDATE departure SET acknowledged_at = ? "
                "WHERE study = ? AND sequence <= ? AND acknowledged_at IS NULL",
                (at, study, newest),
            )

    def end(self, study: StudyId, state: JournalState, *, reason: str, at: str) -> None:
        """Close a study and wipe its secrets, or seal them for an audit.

        What is not acknowledged stays to be sent, unless the curator ended the study: it takes
        nothing more then.
        """
        with self._file.transaction():
            self._file.write(
                "UPDATE study SET state = ?, reason = ?, ended_at = ? WHERE study = ?",
                (state.value, reason, at, study),
            )
            if not self.retention.keep(study, self.keys.all(study), at=at):
                self.inbox.wipe(study)
            self.keys.wipe(study)
            if state is JournalState.ABORTED:
                self.outbox.drop(study)

    def wipe_expired(self, *, at: str) -> None:
        """Wipe what was kept for an audit for as long as the owner wanted."""
        for study in self.retention.due(at=at):
            self.wipe_kept(study)

    def wipe_kept(self, study: StudyId) -> None:
        """Wipe what is kept of an ended study, now."""
        with self._file.transaction():
            self.retention.forget(study)
            self.inbox.wipe(study)

    def leave(self, study: StudyId) -> None:
        """Note that a study that was aborted for us was finished; nothing else changes."""
        record = self.record(study)
        if record is None or record.state is not JournalState.ABORTED:
            return
        with self._file.transaction():
            self._file.write(
                "UPDATE study SET state = ? WHERE study = ?", (JournalState.LEFT.value, study)
            )

    def sent_log(self) -> list[SentMessage]:
        """List every message that left or may have left, of every study, oldest first."""
        return self._file.records(
            SentMessage,
            "SELECT study, name AS study_name, sequence, kind, departure.recipient AS recipient, "
            "digest, size, released_at, acknowledged_at FROM departure "
            "JOIN outgoing USING (study, sequence) JOIN study USING (study) "
            "ORDER BY departure.rowid",
            digest=bytes.hex,
        )


class Notes:
    """The notes in a party's file: for the owner's eyes, never sent. Nothing depends on them."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_NOTES)

    def write(self, study: StudyId, words: str, *, at: str) -> None:
        """Replace what was said about a study; empty words only remove it."""
        with self._file.transaction(synced=False):
            self._file.write("DELETE FROM note WHERE study = ?", (study,))
            if words:
                self._file.write("INSERT INTO note VALUES (?, ?, ?)", (study, words, at))

    def clear(self) -> None:
        """Forget what an earlier run of the node said."""
        with self._file.transaction(synced=False):
            self._file.write("DELETE FROM note")

    def all(self) -> Mapping[StudyId, str]:
        """Return what was said about each study, and since when."""
        rows = self._file.rows("SELECT study, words, noted_at FROM note")
        return {StudyId(study): f"{words} (since {at})" for study, words, at in rows}
