"""Files and folders: written whole or not at all, on disk when the call returns."""

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


def version_of(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is written or replaced; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a new file, whole or not at all; InputError rather than overwrite anything."""
    with whole_file(path, mode=mode, overwrite=False) as scratch:
        scratch.write_bytes(data)


def replace(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Give a file another content, at one moment."""
    with whole_file(path, mode=mode) as scratch:
        scratch.write_bytes(data)


@contextmanager
def whole_file(path: Path, *, mode: int = 0o644, overwrite: bool = True) -> Iterator[Path]:
    """Yield a file that takes the place of the path if the block ends well, and else vanishes.

    It has the suffix of the path, and its owner alone can read it until then.
    """
    with _writing(path):
        handle, name = tempfile.mkstemp(path.suffix, f".{path.name}.", path.parent)
        os.close(handle)
        scratch, is_new = Path(name), not path.exists()
        try:
            yield scratch
            flush(scratch)
            scratch.chmod(mode)
            if overwrite:
                scratch.replace(path)
            else:
                _link(scratch, path)
            try:
                flush(path.parent)
            except BaseException:
                if is_new:  # an older content cannot come back, a new file can go
                    path.unlink()
                raise
        finally:
            scratch.unlink(missing_ok=True)


def _link(scratch: Path, path: Path) -> None:
    try:
        os.link(scratch, path)
    except FileExistsError:
        raise InputError(f"{path}: it exists, and nothing is overwritten. Name another") from None


@contextmanager
def replaced_folder(target: Path) -> Iterator[Path]:
    """Yield a folder that takes the target's place if the block ends well, else vanishes."""
    with _writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            yield scratch
            for file in scratch.rglob("*"):
                if file.is_file():
                    flush(file)
            scratch.chmod(0o755)
            _put_in_place(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _put_in_place(scratch: Path, target: Path) -> None:
    """Rename twice, so that an older folder is deleted only once its successor is in place."""
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
        try:
            target.rename(old / target.name)
            try:
                scratch.rename(target)
            except OSError:
                (old / target.name).rename(target)
                raise
        finally:
            shutil.rmtree(old, ignore_errors=True)
    else:
        scratch.rename(target)
    flush(target.parent)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}. Nothing was left behind"
        ) from error


def make_private_folder(folder: Path) -> None:
    """Make a folder that its owner alone can enter, if it is missing; an existing one is kept."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from error


@contextmanager
def whole_folder(folder: Path) -> Iterator[None]:
    """Empty a new or empty folder again if the block raises."""
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
    """Flush a file's content, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path) -> bytes:
    """Return the bytes of a small file; an InputError names the reason if it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > _LARGEST_FILE:
        raise InputError(f"{path}: it is larger than 1 MiB")
    return data


def read_private(path: Path, *, remedy: str, group_may_read: bool = False) -> bytes:
    """Return the bytes of a secret; InputError if other users of the machine could read them.

    The file has mode 0600 and belongs to the user who runs this. `group_may_read` allows any owner
    and mode 0640, which is how containers hand secrets to a service. `remedy` is what to do if
    others could read the file.
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
    """Return a private key or a passphrase that a container may hand to a service."""
    remedy = "make a new key with `parley keys rotate`"
    return read_private(path, remedy=remedy, group_may_read=True)
