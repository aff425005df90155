"""The curator's Paillier private key at rest: under a passphrase, or plain.

Format, version 1: the line `parley paillier private key 1`, one byte that says how the rest is
protected, and the rest.
- `S`, sealed under a passphrase, see `under_passphrase`.
- `P`, plain: protected by the mode of the file that holds it.
The secret is the public key's bytes followed by the factor p; q follows from n.
"""

from __future__ import annotations

from common.crypto.identities.passphrase import seal, unseal
from common.crypto.paillier.keys import PrivateKey, PublicKey
from common.errors import InputError, LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource

_MAGIC = b"parley paillier private key 1\n"
_SEALED, _PLAIN = b"S", b"P"
_HEADER_BYTES = len(_MAGIC) + 1


def to_bytes(key: PrivateKey, *, passphrase: str | None, source: RandomSource) -> bytes:
    """Return the key as stored; secret if there is no passphrase."""
    p, _ = key.reveal_factors()
    secret = key.public_key.to_bytes() + p.to_bytes(key.public_key.bits // 16, "big")
    if passphrase is None:
        return _MAGIC + _PLAIN + secret
    return seal(secret, passphrase, header=_MAGIC + _SEALED, source=source)


def from_bytes(data: bytes, *, passphrase: str | None) -> PrivateKey:
    """Read what `to_bytes` made.

    Raises:
        InputError: naming what is wrong, and nothing that is secret.
    """
    protection = data[len(_MAGIC) : _HEADER_BYTES]
    if not data.startswith(_MAGIC) or protection not in (_SEALED, _PLAIN):
        raise InputError("not a Paillier private key of version 1")
    if protection == _PLAIN:
        if passphrase is not None:
            raise InputError("a passphrase was given, but the key is not under one")
        return _parse(data[_HEADER_BYTES:])
    if passphrase is None:
        raise InputError("the key is under a passphrase; give it")
    return _parse(unseal(data, passphrase, header=_MAGIC + _SEALED))


def _parse(secret: bytes) -> PrivateKey:
    # The public key is 3 + 6b bytes and the factor b, where b is a sixteenth of the key's bits.
    width = (len(secret) - 3) // 7
    try:
        public_key = PublicKey.from_bytes(secret[: len(secret) - width])
        p = int.from_bytes(secret[len(secret) - width :], "big")
        return PrivateKey(public_key, p, int(public_key.n) // max(p, 1))
    except (RemoteProtocolError, LocalError):
        # Without the cause: nothing of a private key belongs into an error's trace.
        raise InputError("the key is damaged") from None
