"""Small files written whole or not at all, and on disk when the call returns."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from common.errors import InputError


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """A new file, whole or not at all; InputError rather than overwrite anything."""
    scratch = _scratch(path, data, mode)
    try:
        os.link(scratch, path)
        flush_folder(path.parent)
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
        flush_folder(path.parent)
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
    except OSError as error:
        scratch.unlink()
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return scratch


def flush_folder(folder: Path) -> None:
    """Have the names in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
