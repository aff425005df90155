"""An identity at rest: one line of text in a file that only its owner can read.

    parley-identity-1 <base64 of the secret bytes>

The file is created with mode 0600 and never overwritten; a file that others can read is refused on
loading, because its secret must be taken as known.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from pathlib import Path

from common.crypto.identity import Identity
from common.errors import InputError

_LABEL = "parley-identity-1"


def save_identity(path: Path, identity: Identity) -> None:
    """Writes the secret keys; raises InputError rather than overwrite anything."""
    secret = base64.b64encode(identity.to_secret_bytes()).decode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{_LABEL} {secret}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"cannot make the identity file {path}: {error.strerror}") from error


def load_identity(path: Path) -> Identity:
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
    if label != _LABEL:
        raise InputError(f"{path} is not an identity file of version 1")
    return Identity(secret)
