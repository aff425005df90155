"""A secret's file: made with mode 0600, never over another, and read only if nobody else could.

What is in it is the business of `identity_file` and `keyfile`.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from common.errors import InputError


def make(path: Path, secret: bytes, *, what: str) -> None:
    """Write a new file of mode 0600, on disk when the call returns.

    Args:
        path: where nothing may be.
        secret: the content.
        what: the file is, for errors: "the key file".

    Raises:
        InputError: the file exists or cannot be made; nothing is overwritten.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise InputError(f"cannot make {what} {path}: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink()  # half a secret is of no use, and would stand in the way of the next try
        raise InputError(f"cannot write {what} {path}: {error.strerror}") from error


def read(path: Path, most_bytes: int, *, what: str, remedy: str) -> bytes:
    """The first bytes of a file that its user alone can read.

    Args:
        path: as `make` made it.
        most_bytes: to be read.
        what: the file is, for errors.
        remedy: what to do if others could read it.

    Raises:
        InputError: the file cannot be read, or others could have read it.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid != os.geteuid():
                raise InputError(
                    f"{what} {path} must belong to the user who runs this and be closed to all "
                    f"others: chmod 600 {path}. If others could read it, {remedy}"
                )
            return file.read(most_bytes)
    except OSError as error:
        raise InputError(f"cannot read {what} {path}: {error.strerror}") from error
