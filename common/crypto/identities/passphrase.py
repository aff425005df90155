"""A secret under a passphrase: AES-256-GCM under scrypt.

Sealed bytes are a header that the caller chooses, 16 bytes of salt, 12 of nonce, then the
ciphertext; everything before it is authenticated. The cost of scrypt (2^17 blocks, 128 MB, half a
second) is fixed, so that a file cannot ask for more.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from common.errors import InputError
from common.privacy.randomness import RandomSource

_SALT_BYTES, _NONCE_BYTES = 16, 12


def seal(secret: bytes, passphrase: str, *, header: bytes, source: RandomSource) -> bytes:
    """Return the header and the sealed secret."""
    if not passphrase:
        raise InputError("an empty passphrase protects nothing")
    before = header + source.random_bytes(_SALT_BYTES + _NONCE_BYTES)
    cipher = _cipher(passphrase, before[len(header) : -_NONCE_BYTES])
    return before + cipher.encrypt(before[-_NONCE_BYTES:], secret, before)


def unseal(data: bytes, passphrase: str, *, header: bytes) -> bytes:
    """Return the secret in what `seal` made under the same header.

    Raises:
        InputError: naming what is wrong, and nothing that is secret.
    """
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
