"""Who stands for a study: an Ed25519 signature over its digest, inside its own text.

    [signature]
    identity = "<base64 of the signer's public identity>"
    value = "<base64 of the signature>"

The proposer of a study signs it, usually the curator's operator. The signature is not part of what
the digest stands for: it is about the digest. It travels wherever the text of the study does, so an
owner can check a file that came by mail as well as one that the curator sent.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from cryptography.exceptions import InvalidSignature

from common.crypto.identities.identity import Identity, PublicIdentity
from common.errors import InputError

_CONTEXT = b"parley study, signed by who proposes it, version 1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySignature:
    """A signature under a study."""

    identity: PublicIdentity
    value: bytes

    @classmethod
    def make(cls, digest: bytes, identity: Identity) -> Self:
        return cls(identity=identity.public, value=identity.sign(_CONTEXT + digest))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """As a study.toml has it; `require` says whether it is worth anything."""
        if not isinstance(table, dict) or set(table) != {"identity", "value"}:
            raise InputError("signature: expected the two keys identity and value")
        try:
            identity, value = (
                base64.b64decode(table[key], validate=True) for key in ("identity", "value")
            )
        except (binascii.Error, TypeError, ValueError):
            raise InputError("signature: identity and value are in base64") from None
        return cls(identity=PublicIdentity(identity), value=value)

    def require(self, digest: bytes) -> None:
        """Raise InputError unless the signer signed the study of this digest."""
        try:
            self.identity.verify(self.value, message=_CONTEXT + digest)
        except InvalidSignature:
            raise InputError(
                f"signature: {self.identity.fingerprint} did not sign this study: its text was "
                "changed, or the signature is of another one. Ask for it again"
            ) from None

    def to_toml(self) -> str:
        encoded = base64.b64encode(self.identity.encoded).decode()
        return (
            f'[signature]\nidentity = "{encoded}"  # {self.identity.fingerprint}\n'
            f'value = "{base64.b64encode(self.value).decode()}"\n'
        )
