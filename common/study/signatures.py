"""Who stands for a study: its proposer signs the text, and each owner signs an approval.

The proposer, usually the curator's operator, signs the digest inside the study's own text:

    [signature]
    identity = "<base64 of the signer's public identity>"
    value = "<base64 of the signature>"

The signature is about the digest, so it is not part of what the digest stands for. It travels
wherever the text does: an owner can check a file that came by mail as well as one that the curator
sent. An approval is a signature over the digest and the party's name. A curator proves to a party
that it is the one which a study pins by signing a challenge. All three are Ed25519.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from common.crypto.identities.identity import Identity, PublicIdentity
from common.errors import InputError, located
from common.study.ids import StudyId

_PROPOSAL = b"parley study, signed by who proposes it, version 1\0"
_APPROVAL = b"parley approval of a study, version 1\0"
_PROOF = b"parley curator proves its identity, version 1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySignature:
    """The proposer's signature under a study."""

    identity: PublicIdentity
    value: bytes

    @classmethod
    def make(cls, digest: StudyId, identity: Identity) -> Self:
        return cls(identity=identity.public, value=identity.sign(_PROPOSAL + digest))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Read the [signature] of a study.toml; `require` says whether it is worth anything."""
        if not isinstance(table, dict) or set(table) != {"identity", "value"}:
            raise InputError("signature: expected the two keys identity and value")
        with located("signature"):
            identity = PublicIdentity.from_text(table["identity"])
        try:
            return cls(identity=identity, value=base64.b64decode(table["value"], validate=True))
        except (binascii.Error, TypeError, ValueError):
            raise InputError("signature: value is not base64") from None

    def require(self, digest: StudyId) -> None:
        """Raise InputError unless the signer signed the study of this digest."""
        if not self.identity.signed(_PROPOSAL + digest, signature=self.value):
            raise InputError(
                f"signature: {self.identity.fingerprint} did not sign this study: its text was "
                "changed, or the signature is of another one. Ask for it again"
            )

    def to_toml(self) -> str:
        return (
            f'[signature]\nidentity = "{self.identity.text}"  # {self.identity.fingerprint}\n'
            f'value = "{base64.b64encode(self.value).decode()}"\n'
        )


def approval_statement(*, study: StudyId, party: str) -> bytes:
    """Return the bytes that an owner signs. They can be taken for no other signed statement."""
    return _APPROVAL + study + party.encode()


def proof_statement(*, challenge: bytes, party: str) -> bytes:
    """Return the bytes that a curator signs to prove its identity to a party."""
    return _PROOF + challenge + party.encode()
