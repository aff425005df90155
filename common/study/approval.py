"""A party's approval of a study: a signature over the study's digest and the party's name."""

from __future__ import annotations

from common.crypto.identities.identity import PublicIdentity
from common.study.ids import StudyId

_CONTEXT = b"parley approval of a study, version 1\0"


def statement(*, study: StudyId, party: str) -> bytes:
    """The bytes that an owner signs. They can be taken for nothing else that is ever signed."""
    return _CONTEXT + study + party.encode()


def require(*, study: StudyId, party: str, signature: bytes, identity: PublicIdentity) -> None:
    """Raise InvalidSignature unless the party's pinned identity approved the study."""
    identity.verify(signature, message=statement(study=study, party=party))
