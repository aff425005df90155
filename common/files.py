"""Small files: written whole or not at all, on disk when the call returns."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import InputError

_LARGEST_FILE = 1 << 20


def pieces_of(path: Path, *, most: int = _LARGEST_FILE) -> Iterator[bytes]:
    """Read a file of any size, piece by piece."""
    with path.open("rb") as stream:
        while piece := stream.read(most):
            yield piece


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """A new file, whole or not at all; InputError rather than overwrite anything."""
    scratch = _scratch(path, data, mode)
    try:
        os.link(scratch, path)
        flush(path.parent)
    except FileExistsError:
        raise InputError(f"{path} exists; nothing is overwritten") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        scratch.unlink(missing_ok=True)


def replace(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Another content for a file, at one moment."""
    scratch = _scratch(path, data, mode)
    try:
        scratch.replace(path)
        flush(path.parent)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _scratch(path: Path, data: bytes, mode: int) -> Path:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException as error:
        scratch.unlink()
        if isinstance(error, OSError):
            raise InputError(f"cannot write {path}: {error.strerror}") from error
        raise
    return scratch


def make_private_folder(folder: Path) -> None:
    """Make a folder that its owner alone can enter, if it is missing; an existing one is kept."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from error


@contextmanager
def whole_folder(folder: Path) -> Iterator[None]:
    """What the block puts into a new or empty folder goes again if the block does not end well."""
    existed = folder.is_dir()
    ours = not (existed and any(folder.iterdir())) and not folder.is_file()
    try:
        yield
    except BaseException:
        if ours:
            for path in folder.glob("*"):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            if not existed and folder.is_dir():
                folder.rmdir()
        raise


def flush(path: Path) -> None:
    """Have a file's content, or the names in a folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path) -> bytes:
    """A small file's bytes; InputError says why not."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > _LARGEST_FILE:
        raise InputError(f"{path}: it is larger than 1 MiB")
    return data


def read_private(path: Path, *, remedy: str, group_may_read: bool = False) -> bytes:
    """A secret's bytes; InputError if other users of the machine could have read them, too.

    Args:
        path: a file of mode 0600 that belongs to the user who runs this.
        remedy: what to do if others could read it.
        group_may_read: whose file it is does not matter either; that is how containers hand
            secrets to a service.
    """
    data, status = read(path), path.stat()
    ours = group_may_read or status.st_uid == os.geteuid()
    if not ours or status.st_mode & (0o007 if group_may_read else 0o077):
        raise InputError(
            f"{path} is open to {'every user' if group_may_read else 'other users'} of this "
            f"machine: make it yours, and chmod 600 {path}. If others could read it, {remedy}"
        )
    return data


def read_private_key(path: Path) -> bytes:
    """A private key or a passphrase that a container may hand to a service."""
    remedy = "make a new key with `parley keys rotate`"
    return read_private(path, remedy=remedy, group_may_read=True)
