"""An identity at rest: one line of text in a file that only its owner can read.

    parley-identity-1 <base64 of the secret bytes>
    parley-identity-sealed-1 <base64 of the secret bytes under a passphrase>

The file is created with mode 0600 and never overwritten; a file that others can read is refused on
loading, because its secret must be taken as known. The public half beside it, `identity.pub`, is
base64 and nothing else.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Callable
from pathlib import Path

from common.crypto.identity import Identity, PublicIdentity
from common.crypto.sealing import seal, unseal
from common.errors import InputError
from common.privacy.randomness import OsRandomSource

_LABEL = "parley-identity-1"
_SEALED = "parley-identity-sealed-1"

AskPassphrase = Callable[[], str]
"""Called when a file turns out to be under a passphrase; raises InputError if there is none."""


def no_passphrase() -> str:
    """For whoever was given none."""
    raise InputError("it is under a passphrase, and none was given")


def identity_bytes(identity: Identity, *, passphrase: str | None = None) -> bytes:
    """The content of an identity file; without a passphrase the file's mode is all there is."""
    label, secret = _LABEL, identity.to_secret_bytes()
    if passphrase is not None:
        label = _SEALED
        secret = seal(secret, passphrase, header=_SEALED.encode(), source=OsRandomSource())
    return f"{label} {base64.b64encode(secret).decode()}\n".encode()


def save_identity(path: Path, identity: Identity, *, passphrase: str | None = None) -> None:
    """Writes the secret keys; raises InputError rather than overwrite anything."""
    content = identity_bytes(identity, passphrase=passphrase)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"cannot make the identity file {path}: {error.strerror}") from error


def load_identity(path: Path, *, passphrase: AskPassphrase = no_passphrase) -> Identity:
    """Reads what `save_identity` wrote; raises InputError if others could have read it."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid != os.geteuid():
                raise InputError(
                    f"the identity file {path} must belong to the user who runs this and be "
                    f"closed to all others: chmod 600 {path}. If others could read it, make a "
                    "new identity and have the study pin that one"
                )
            fields = file.read(1 << 12).decode("ascii", errors="replace").split()
    except OSError as error:
        raise InputError(f"cannot read the identity file {path}: {error.strerror}") from error
    try:
        label, encoded = fields
        secret = base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        raise InputError(f"{path} is not an identity file") from None
    if label == _SEALED:
        try:
            secret = unseal(secret, passphrase(), header=_SEALED.encode())
        except InputError as error:
            raise InputError(f"the identity file {path}: {error}") from None
    elif label != _LABEL:
        raise InputError(f"{path} is not an identity file of version 1")
    return Identity(secret)


def load_public_identity(path: Path) -> PublicIdentity:
    """The identity in an identity.pub; raises InputError if it is none."""
    try:
        encoded = base64.b64decode(path.read_text("ascii").strip(), validate=True)
        return PublicIdentity(encoded)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, InputError):  # not ASCII, not base64, not an identity
        raise InputError(f"{path}: not the identity.pub of anybody") from None
