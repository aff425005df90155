"""A role that dies with its process and comes back the same.

A role is deterministic given the study, the messages in order and the random source of each step.
The messages are in the inbox, and the key of each step's source is on disk before it is used. So a
replay of the inbox brings the role back. What the role would send during a replay is thrown away:
sealed envelopes would differ, and the bytes in the outbox are the ones that count.

    live = DurableRole("a study", begin=make_role, feed=give, messages=..., key_of=..., ...)
    with live.guarded():                       # forgets the role if it gets ahead of the disk
        effects = live.current().receive(message)
        with database.transaction():
            ...                                # message and effects, all or none
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import KEY_BYTES, KeyedRandomSource, RandomSource, SourceOfStep
from common.privacy.secret import Secret
from common.service.database import Database
from common.service.durable.messages import Received
from common.study.ids import StudyId

R = TypeVar("R")

_TABLES = """
CREATE TABLE IF NOT EXISTS step_key (
    study BLOB NOT NULL REFERENCES study (study),
    step INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (study, step)
) STRICT;
"""


class StepKeys:
    """The secret keys of the steps' randomness, drawn once and kept until their study ends."""

    def __init__(self, database: Database, source: RandomSource) -> None:
        self._file, self._source = database, source
        database.add_tables(_TABLES)

    @property
    def private(self) -> bool:
        """Whether keys are secrets: false with a seeded source."""
        return self._source.private

    def key(self, study: StudyId, step: int) -> Secret[bytes]:
        """Return the key of a step, on disk before it is returned."""
        with self._file.transaction():
            found = self._file.rows(
                "SELECT key FROM step_key WHERE study = ? AND step = ?", (study, step)
            )
            if found:
                return Secret(bytes(found[0][0]))
            key = self._source.random_bytes(KEY_BYTES)
            self._file.write("INSERT INTO step_key VALUES (?, ?, ?)", (study, step, key))
        return Secret(key)

    def wipe(self, study: StudyId) -> None:
        """Forget the keys of a study, in the caller's transaction."""
        self._file.write("DELETE FROM step_key WHERE study = ?", (study,))


class DurableRole(Generic[R]):
    """The role of one study, rebuilt from disk when it is needed. One thread at a time uses it.

    Args:
        study: its name, for errors.
        begin: makes a fresh role, given where the randomness of a step comes from.
        start: what a role does before its first message.
        feed: gives a role a message again, and names the effects.
        messages: what the role was given so far.
        key_of: the key of a step.
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
