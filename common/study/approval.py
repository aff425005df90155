"""A party's approval of a study: a signature over the study's digest and the party's name."""

from __future__ import annotations

from typing import Protocol

from common.study.ids import StudyId

_CONTEXT = b"parley approval of a study, version 1\0"


class Verifier(Protocol):
    """The public identity that a study pins for a party."""

    def verify(self, signature: bytes, *, message: bytes) -> None:
        """Raise InvalidSignature unless this identity signed the message."""


def statement(*, study: StudyId, party: str) -> bytes:
    """The bytes that an owner signs. They can be taken for nothing else that is ever signed."""
    return _CONTEXT + study + party.encode()


def require(*, study: StudyId, party: str, signature: bytes, identity: Verifier) -> None:
    """Raise unless the party's pinned identity approved the study.

    Raises:
        InvalidSignature: it did not.
    """
    identity.verify(signature, message=statement(study=study, party=party))
