"""What owners commit to: their table before the first step, and what each sent in every step.

A commitment is HMAC-SHA-256 under a salt of 32 random bytes that the owner draws once. Whoever does
not have the salt learns nothing from it; whoever made it can open it to one content only.

The salt of the table stays with its owner. That of the contributions is told to the curator, which
has the contributions anyway: so both compute the same value, and neither need believe the other.
docs/commitments.md says what follows from them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from common.crypto.framing import frame, unframe
from common.crypto.identities.identity import Identity
from common.errors import RemoteProtocolError
from common.study.document import Study
from common.study.ids import StudyId
from common.study.messages import StepMessage

SALT_BYTES = 32
COMMITMENT_BYTES = 32


@dataclass(frozen=True, slots=True)
class TableCommitment:
    """An owner's word, signed, about which table it will answer from."""

    value: bytes
    signature: bytes

    @classmethod
    def make(
        cls, study: StudyId, party: str, *, digest: str, salt: bytes, identity: Identity
    ) -> TableCommitment:
        value = committed_table(study, party, digest=digest, salt=salt)
        return cls(value, identity.sign(_statement(study, party, value)))

    def require(self, study: Study, party: str) -> None:
        """Raise RemoteProtocolError unless the party's pinned identity signed it."""
        statement = _statement(study.digest, party, self.value)
        signed = study.roster[party].signed(statement, signature=self.signature)
        if len(self.value) != COMMITMENT_BYTES or not signed:
            raise RemoteProtocolError(
                f"the commitment of {party!r} to its table is not signed by {party!r}"
            )


Tables = Mapping[str, TableCommitment]
"""The commitments to tables by party, in the order of the study."""


@dataclass(frozen=True, slots=True)
class Commitments:
    """All commitments of a study, as they were published to every party."""

    tables: Tables
    contributions: tuple[tuple[bytes, ...], ...]  # by step, then in the order of its parties

    def require_steps(self, steps: Sequence[Sequence[str]]) -> None:
        """Raise RemoteProtocolError unless each of these parties, by step, has its commitments."""
        if [len(values) for values in self.contributions] != [len(parties) for parties in steps]:
            raise RemoteProtocolError("the commitments are not one for each party of each step")
        lacking = {name for parties in steps for name in parties} - self.tables.keys()
        if lacking:
            raise RemoteProtocolError(
                f"{', '.join(sorted(lacking))}: no commitment to a table, but in a step"
            )
        if any(len(value) != COMMITMENT_BYTES for values in self.contributions for value in values):
            raise RemoteProtocolError(f"a commitment has {COMMITMENT_BYTES} bytes")


def require_tables(study: Study, tables: Tables) -> None:
    """Raise RemoteProtocolError unless these are signed commitments of parties, in order."""
    if list(tables) != [name for name in study.parties if name in tables]:
        raise RemoteProtocolError("the commitments to tables are not of the study's parties")
    if len(study.parties) - len(tables) > study.may_miss:
        raise RemoteProtocolError("a commitment to a table is missing")
    for name, commitment in tables.items():
        commitment.require(study, name)


def committed_table(study: StudyId, party: str, *, digest: str, salt: bytes) -> bytes:
    return _under(salt, ("parley table 1", study, party, digest))


def committed_contribution(
    study: StudyId, party: str, *, step: int, sent: Iterable[bytes], salt: bytes
) -> bytes:
    """Return the commitment to what a party sent in a step: the digests of its messages."""
    return _under(salt, ("parley contribution 1", study, party, step, *sent))


def content_digest(message: StepMessage) -> bytes:
    """Return what stands for a message in a commitment."""
    parts = (frame(part) if isinstance(part, tuple) else part for part in message.payload)
    return hashlib.sha256(frame((message.round, *parts))).digest()


def framed_tables(tables: Tables) -> bytes:
    """Return the commitments to tables as they are published, and stand in the history."""
    return frame(
        part
        for name, commitment in tables.items()
        for part in (name, commitment.value, commitment.signature)
    )


def read_tables(data: bytes) -> dict[str, TableCommitment]:
    """Read published commitments; RemoteProtocolError if they are damaged."""
    try:
        fields = unframe(data)
    except ValueError as error:
        raise RemoteProtocolError(f"not commitments to tables: {error}") from None
    kinds = (str, bytes, bytes)
    if len(fields) % 3 or any(type(it) is not kinds[at % 3] for at, it in enumerate(fields)):
        raise RemoteProtocolError("not commitments to tables")
    names, values, signatures = fields[::3], fields[1::3], fields[2::3]
    tables = {
        str(name): TableCommitment(value, signature)
        for name, value, signature in zip(names, values, signatures, strict=True)
        if isinstance(value, bytes) and isinstance(signature, bytes)
    }
    if len(tables) != len(names):
        raise RemoteProtocolError("a party commits to two tables")
    return tables


def _under(salt: bytes, fields: Iterable[bytes | str | int]) -> bytes:
    return hmac.new(salt, frame(fields), hashlib.sha256).digest()


def _statement(study: StudyId, party: str, value: bytes) -> bytes:
    """Return the bytes that an owner signs. They can be taken for no other signed statement."""
    return frame(("parley commitment to a table 1", study, party, value))
