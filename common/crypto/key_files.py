"""Secret keys at rest, plain or under a passphrase: a party's identity, the curator's Paillier key.

An identity is one line of text in a file that only its owner can read:

    parley-identity-1 <base64 of the secret bytes>
    parley-identity-sealed-1 <base64 of the secret bytes under a passphrase>

The file is created with mode 0600 and never overwritten; a file that others can read is refused on
loading, because its secret must be taken as known. The public half beside it, `identity.pub`, is
base64 and nothing else.

A Paillier key is the line `parley paillier private key 1`, one byte that says how the rest is
protected, and the rest: `S`, sealed under a passphrase, or `P`, plain, protected by the mode of the
file that holds it. The secret is the public key's bytes followed by the factor p; q follows from n.

Under a passphrase: AES-256-GCM under scrypt. Sealed bytes are a header that the caller chooses, 16
bytes of salt, 12 of nonce, then the ciphertext; everything before it is authenticated. The cost of
scrypt (2^17 blocks, 128 MB, half a second) is fixed, so that a file cannot ask for more.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from common.crypto.identities.identity import Identity, PublicIdentity
from common.crypto.paillier.keys import PrivateKey, PublicKey
from common.errors import InputError, LocalError, RemoteProtocolError, located
from common.files import read_private, write_new
from common.privacy.randomness import OsRandomSource, RandomSource

_IDENTITY = "parley-identity-1"
_SEALED_IDENTITY = "parley-identity-sealed-1"
_PAILLIER = b"parley paillier private key 1\n"
_SEALED, _PLAIN = b"S", b"P"
_SALT_BYTES, _NONCE_BYTES = 16, 12

AskPassphrase = Callable[[], str]
"""Called when a file turns out to be under a passphrase; raises InputError if there is none."""


def no_passphrase() -> str:
    """Refuse: no passphrase was given."""
    raise InputError("it is under a passphrase, and none was given")


def identity_bytes(identity: Identity, *, passphrase: str | None = None) -> bytes:
    """Return the content of an identity file; without a passphrase only its mode protects it."""
    label, secret = _IDENTITY, identity.to_secret_bytes()
    if passphrase is not None:
        label = _SEALED_IDENTITY
        secret = seal(secret, passphrase, header=label.encode(), source=OsRandomSource())
    return f"{label} {base64.b64encode(secret).decode()}\n".encode()


def save_identity(path: Path, identity: Identity, *, passphrase: str | None = None) -> None:
    """Write the secret keys; raise InputError rather than overwrite anything."""
    write_new(path, identity_bytes(identity, passphrase=passphrase), mode=0o600)


def load_identity(path: Path, *, passphrase: AskPassphrase = no_passphrase) -> Identity:
    """Read what `save_identity` wrote; raise InputError if others could have read it."""
    content = read_private(path, remedy="make a new identity and have the study pin that one")
    try:
        label, encoded = content.decode("ascii", errors="replace").split()
        secret = base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        raise InputError(f"{path} is not an identity file") from None
    if label == _SEALED_IDENTITY:
        with located(str(path)):
            secret = unseal(secret, passphrase(), header=label.encode())
    elif label != _IDENTITY:
        raise InputError(f"{path} is not an identity file of version 1")
    return Identity(secret)


def load_public_identity(path: Path) -> PublicIdentity:
    """Read an identity.pub; InputError if it holds no identity."""
    try:
        return PublicIdentity.from_text(path.read_text("ascii").strip())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, InputError):  # not ASCII, not base64, not an identity
        raise InputError(f"{path}: not an identity.pub. Ask the party for the file again") from None


def private_key_to_bytes(key: PrivateKey, *, passphrase: str | None, source: RandomSource) -> bytes:
    """Return the key as stored; secret if there is no passphrase."""
    p, _ = key.reveal_factors()
    secret = key.public_key.to_bytes() + p.to_bytes(key.public_key.bits // 16, "big")
    if passphrase is None:
        return _PAILLIER + _PLAIN + secret
    return seal(secret, passphrase, header=_PAILLIER + _SEALED, source=source)


def private_key_from_bytes(data: bytes, *, passphrase: str | None) -> PrivateKey:
    """Read what `private_key_to_bytes` made; InputError names what is wrong and no secret."""
    protection = data[len(_PAILLIER) : len(_PAILLIER) + 1]
    if not data.startswith(_PAILLIER) or protection not in (_SEALED, _PLAIN):
        raise InputError("not a Paillier private key of version 1")
    if protection == _PLAIN:
        if passphrase is not None:
            raise InputError("a passphrase was given, but the key is not under one")
        return _private_key(data.removeprefix(_PAILLIER + _PLAIN))
    if passphrase is None:
        raise InputError("the key is under a passphrase; give it")
    return _private_key(unseal(data, passphrase, header=_PAILLIER + _SEALED))


def _private_key(secret: bytes) -> PrivateKey:
    # The public key is 3 + 6b bytes and the factor b, where b is a sixteenth of the key's bits.
    width = (len(secret) - 3) // 7
    try:
        public_key = PublicKey.from_bytes(secret[: len(secret) - width])
        p = int.from_bytes(secret[len(secret) - width :], "big")
        return PrivateKey(public_key, p, int(public_key.n) // max(p, 1))
    except (RemoteProtocolError, LocalError):
        # Without the cause: nothing of a private key belongs into an error's trace.
        raise InputError("the key is damaged") from None


def seal(secret: bytes, passphrase: str, *, header: bytes, source: RandomSource) -> bytes:
    """Return the header and the sealed secret."""
    if not passphrase:
        raise InputError("an empty passphrase protects nothing")
    before = header + source.random_bytes(_SALT_BYTES + _NONCE_BYTES)
    cipher = _cipher(passphrase, before[len(header) : -_NONCE_BYTES])
    return before + cipher.encrypt(before[-_NONCE_BYTES:], secret, before)


def unseal(data: bytes, passphrase: str, *, header: bytes) -> bytes:
    """Return what `seal` sealed under this header; InputError names what is wrong and no secret."""
    size = len(header) + _SALT_BYTES + _NONCE_BYTES
    before, sealed = data[:size], data[size:]
    if len(before) < size or not before.startswith(header):
        raise InputError("the key is truncated")
    try:
        cipher = _cipher(passphrase, before[len(header) : -_NONCE_BYTES])
        return cipher.decrypt(before[-_NONCE_BYTES:], sealed, before)
    except InvalidTag:
        raise InputError("the passphrase is wrong, or the key is damaged") from None


def _cipher(passphrase: str, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt=salt, length=32, n=1 << 17, r=8, p=1).derive(passphrase.encode()))
