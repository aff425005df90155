"""Commitments to tables, exchanged before the first step beside what else is set up.

Every party sends its signed commitment and the salt of its contributions; when all are in, the
curator publishes the commitments to all. A party goes on only if its own is there unchanged and
every other is signed by the identity that the study pins.
"""

from __future__ import annotations

from collections.abc import Collection

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
from common.study.members import check_missing
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
    def done(self) -> bool:
        return bool(self.published) and self._rest.done

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


class CommittingCurator(CuratorSide):
    """Collects the commitments, and publishes them when the last are in."""

    collects = False

    def __init__(self, study: Study, rest: CuratorSide) -> None:
        self._study, self._rest = study, rest
        self._pending = set(study.parties)
        self._salts: dict[str, bytes] = {}
        self._tables: dict[str, TableCommitment] = {}
        self.published = b""

    @property
    def awaits(self) -> Collection[str]:
        return (*self._rest.awaits, COMMITMENTS)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        return tuple(sorted(self._pending.union(() if self._rest.done else self._rest.waiting_for)))

    @property
    def done(self) -> bool:
        return not self._pending and self._rest.done

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        if message.round != COMMITMENTS:
            return self._rest.receive(sender, message)
        if sender not in self._pending:
            raise RemoteProtocolError(f"{sender!r} committed to its table before")
        value, signature, salt = message.parts(bytes, bytes, bytes)
        commitment = TableCommitment(value, signature)
        commitment.require(self._study, sender)
        if len(salt) != SALT_BYTES:
            raise RemoteProtocolError(f"a salt has {SALT_BYTES} bytes")
        self._tables[sender], self._salts[sender] = commitment, salt
        self._pending.discard(sender)
        return self._publish()

    def without(self, party: str) -> list[Move]:
        moves = self._rest.without(party)
        if self.published:
            return moves
        self._pending.discard(party)
        self._tables.pop(party, None)
        return [*moves, *self._publish()]

    def _publish(self) -> list[Move]:
        if self._pending:
            return []
        tables = {name: self._tables[name] for name in self._study.parties if name in self._tables}
        self.published = framed_tables(tables)
        return [Post(round=COMMITMENTS, payload=(self.published,), to=name) for name in tables]

    def contribution(self, party: str, step: int, sent: Collection[bytes]) -> bytes:
        """Return a party's commitment to the messages, by digest, that it sent in a step."""
        return committed_contribution(
            self._study.digest, party, step=step, sent=sent, salt=self._salts[party]
        )
