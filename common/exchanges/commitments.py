"""Commitments to tables, exchanged before the first step beside what else is set up.

Every party sends its signed commitment and the salt of its contributions; when all are in, the
curator publishes the commitments to all. A party goes on only if its own is there unchanged and
every other is signed by the identity that the study pins.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from common.crypto.sums.missing_lists import check_missing
from common.errors import RemoteProtocolError
from common.exchanges.choice import CHOICE
from common.exchanges.masked import MASKED_INPUT
from common.privacy.randomness import RandomSource
from common.study.commitments import (
    SALT_BYTES,
    TableCommitment,
    committed_contribution,
    framed_tables,
    read_tables,
    require_tables,
)
from common.study.document import Study
from common.study.messages import StepMessage
from common.study.sides import CuratorSide, Memory, Move, PartySide, Post

COMMITMENTS = "commitments"  # the round


def is_contribution(message: StepMessage) -> bool:
    """Return whether a party commits to a message of a step: to words and choices.

    They are all that comes of its rows to the curator. Envelopes between parties are sealed with
    fresh randomness: nobody can make one again, not even its sender.
    """
    return message.round in (MASKED_INPUT, CHOICE)


class CommittingParty(PartySide):
    """A party's side of the set-up: its commitments, and the rest of it. Holds salts."""

    def __init__(
        self, study: Study, memory: Memory, source: RandomSource, digest: str, rest: PartySide
    ) -> None:
        self._study, self._name, self._rest = study, memory.member.name, rest
        self._salt = source.random_bytes(SALT_BYTES)
        table_salt = source.random_bytes(SALT_BYTES)
        identity = memory.member.identity
        self._commitment = TableCommitment.make(
            study.digest, self._name, digest=digest, salt=table_salt, identity=identity
        )
        self.published = b""  # all commitments to tables, once they are

    @property
    def awaits(self) -> Collection[str]:
        return (*self._rest.awaits, *(() if self.published else (COMMITMENTS,)))

    @property
    def absent(self) -> Collection[str]:
        uncommitted = set(self._study.parties) - read_tables(self.published).keys()
        return {*self._rest.absent, *(uncommitted if self.published else ())}

    @property
    def commitment(self) -> bytes:
        """The commitment to our table."""
        return self._commitment.value

    def begin(self) -> list[Post]:
        payload = (self._commitment.value, self._commitment.signature, self._salt)
        return [Post(round=COMMITMENTS, payload=payload, of_rows=False), *self._rest.begin()]

    def receive(self, message: StepMessage) -> list[Post]:
        if message.round != COMMITMENTS:
            return self._rest.receive(message)
        (data,) = message.parts(bytes)
        tables = read_tables(data)
        if tables.get(self._name) != self._commitment:
            raise RemoteProtocolError(
                "the curator publishes another commitment to our table than ours, or none"
            )
        require_tables(self._study, tables)
        missing = tuple(name for name in self._study.parties if name not in tables)
        check_missing(self._study.parties, missing, may_miss=self._study.may_miss, of=self._name)
        self.published = data
        return []

    def contribution(self, step: int, sent: Collection[bytes]) -> bytes:
        """Return the commitment to the messages, by digest, that we sent in a step."""
        return committed_contribution(
            self._study.digest, self._name, step=step, sent=sent, salt=self._salt
        )


class Collecting(CuratorSide):
    """Takes one message of every party, and tells all when the last is in; that it does once."""

    collects = False

    def __init__(self, study: Study) -> None:
        self._study = study
        self._left = list(study.parties)
        self._pending = set(study.parties)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        return tuple(sorted(self._pending))

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        if sender not in self._pending:
            raise RemoteProtocolError(f"{sender!r} sent its {message.round} before")
        self._take(sender, message)
        return self._off(sender)

    def without(self, party: str) -> list[Move]:
        self._left.remove(party)
        return self._off(party)

    def _off(self, party: str) -> list[Move]:
        """Take a party off the list of those that are waited for."""
        if not self._pending:  # all were told: the party is missing in the first step
            return []
        self._pending.discard(party)
        return [] if self._pending else self._tell()

    @abstractmethod
    def _take(self, sender: str, message: StepMessage) -> None:
        """Keep what a party sent, or raise and change nothing."""

    @abstractmethod
    def _tell(self) -> list[Move]:
        """Return what the parties that are left are told."""


class CommittingCurator(Collecting):
    """Collects the commitments, and publishes them when the last are in."""

    def __init__(self, study: Study, rest: CuratorSide) -> None:
        super().__init__(study)
        self._rest = rest
        self._salts: dict[str, bytes] = {}
        self._tables: dict[str, TableCommitment] = {}
        self.published = b""

    @property
    def awaits(self) -> Collection[str]:
        return (*self._rest.awaits, COMMITMENTS)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        return tuple(sorted({*super().waiting_for, *self._rest.waiting_for}))

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        if message.round != COMMITMENTS:
            return self._rest.receive(sender, message)
        return super().receive(sender, message)

    def without(self, party: str) -> list[Move]:
        return [*self._rest.without(party), *super().without(party)]

    def _take(self, sender: str, message: StepMessage) -> None:
        value, signature, salt = message.parts(bytes, bytes, bytes)
        commitment = TableCommitment(value, signature)
        commitment.require(self._study, sender)
        if len(salt) != SALT_BYTES:
            raise RemoteProtocolError(f"a salt has {SALT_BYTES} bytes")
        self._tables[sender], self._salts[sender] = commitment, salt

    def _tell(self) -> list[Move]:
        tables = {name: self._tables[name] for name in self._left}
        self.published = framed_tables(tables)
        return [Post(round=COMMITMENTS, payload=(self.published,), to=name) for name in tables]

    def contribution(self, party: str, step: int, sent: Collection[bytes]) -> bytes:
        """Return a party's commitment to the messages, by digest, that it sent in a step."""
        return committed_contribution(
            self._study.digest, party, step=step, sent=sent, salt=self._salts[party]
        )
