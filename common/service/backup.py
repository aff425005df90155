"""Backups of a service's state: taken while the service runs, restored where it does not.

A backup is an uncompressed tar of the state file, as SQLite's backup gives it at one moment, and of
`backup.json`, which describes it. It holds keys of running studies: its mode is 0600.

A state never goes backwards: a backup is restored only where there is no state that can be read.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from common.errors import InputError, LocalError
from common.files import flush, make_private_folder, whole_file
from common.service.database import Database, make_private
from common.service.state import FILES, opened

_ABOUT = "backup.json"
_MOST_ABOUT = 1 << 16
_FORMAT = 1
_SERVICES = {name: service for service, name in FILES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The description of a backup."""

    role: str  # curator or party
    state: str  # the name of the state file in it
    sha256: str  # of the state file
    taken_at: str
    software: str  # that took it
    head: str  # of a party's ledger; empty at a curator
    format: int = _FORMAT  # of the backup


@contextmanager
def snapshot(state: Path) -> Iterator[Path]:
    """Copy a state file at one moment, for the length of a block; services may be writing.

    Raises:
        InputError: there is no state file, or it is of another service.
        LocalError: the state cannot be copied, or is damaged.
    """
    if not state.is_file() or not state.stat().st_size:
        raise InputError(f"{state}: there is no state to back up. Is this the service's folder?")
    with tempfile.TemporaryDirectory(prefix=".backup.", dir=state.parent) as scratch:
        copy = Path(scratch) / state.name
        make_private(copy)
        try:
            with (
                closing(sqlite3.connect(f"{state.absolute().as_uri()}?mode=rw", uri=True)) as live,
                closing(sqlite3.connect(copy)) as target,
            ):
                live.backup(target)
                target.execute("PRAGMA journal_mode=DELETE")  # one plain file, of a running service
        except sqlite3.Error as error:
            raise LocalError(f"{state}: cannot be copied: {error}") from error
        with opened(copy.parent, _SERVICES[copy.name]) as database:
            database.check()
        yield copy


def write(copy: Path, *, out: Path, role: str, at: str, software: str, head: str = "") -> About:
    """Write a snapshot into a new file, whole or not at all, for its owner's eyes only."""
    about = About(
        role=role, state=copy.name, sha256=_sha256(copy), taken_at=at, software=software, head=head
    )
    document = json.dumps(asdict(about), indent=2).encode()
    with (
        whole_file(out, mode=0o600, overwrite=False) as scratch,
        tarfile.open(scratch, mode="w") as tar,
    ):
        entry = tarfile.TarInfo(_ABOUT)
        entry.size, entry.mode = len(document), 0o600
        tar.addfile(entry, io.BytesIO(document))
        tar.add(copy, arcname=about.state)
    return about


def read_about(file: Path) -> About:
    """Read the description of a backup; InputError if it is none, or of another format."""
    with _opened(file) as tar:
        document = _content(tar, _ABOUT).read(_MOST_ABOUT)
        about = About(**json.loads(document))
    if about.format != _FORMAT or about.state not in _SERVICES:
        raise InputError(f"{file}: a backup of another version of parley. Restore it with that")
    return about


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, "r:") as tar:
            yield tar
    except OSError as error:
        raise InputError(f"{file}: cannot be read or restored: {error.strerror}") from error
    except (tarfile.TarError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file}: not a backup of parley, or damaged") from error


def _content(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    stream = tar.extractfile(name)
    if stream is None:
        raise KeyError(name)
    return stream


@contextmanager
def restored(file: Path, about: About, folder: Path) -> Iterator[Path]:
    """Yield the state of a backup; put it into a folder when the block ends well.

    The caller is alone in the folder. A damaged state is kept beside it, and so is one in which
    nothing was ever written down.

    Raises:
        InputError: the folder has a state that can be read, or the backup is damaged.
    """
    make_private_folder(folder)
    place = folder / about.state
    refuse_readable(place)
    with tempfile.TemporaryDirectory(prefix=".restore.", dir=folder) as scratch:
        copy = Path(scratch) / about.state
        make_private(copy)
        _unpack(file, about, copy)
        yield copy
        flush(copy)
        _move_aside(place)
        copy.rename(place)
        flush(folder)


def refuse_readable(place: Path) -> None:
    """Refuse to replace a state in which something was written down; InputError says how to."""
    if not place.exists():
        return
    try:
        with Database(place, read_only=True, any_version=True) as database:
            database.check()
            if _is_blank(database):
                return
    except (InputError, LocalError):
        return  # damaged: it is kept aside
    raise InputError(
        f"{place}: this state can be read, and every backup is older. A state never goes "
        "backwards: restore into another folder, or only if this file is lost or damaged"
    )


def _is_blank(database: Database) -> bool:
    """Say whether no table has a row, so that a backup cannot be older."""
    tables = database.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return not any(database.rows(f'SELECT 1 FROM "{name}" LIMIT 1') for (name,) in tables)  # noqa: S608


def _move_aside(place: Path) -> None:
    """Rename a state and its log, which SQLite would take for that of the restored file."""
    files = [file for file in map(place.with_name, _names(place.name)) if file.exists()]
    for number in range(1, 1000):
        names = _names(f"{place.name}.damaged-{number}")
        if not any(place.with_name(name).exists() for name in names):
            for file in files:
                file.rename(file.with_name(f"{names[-1]}{file.name.removeprefix(place.name)}"))
            return
    raise InputError(f"{place}: too many damaged copies beside it. Remove some")


def _names(state: str) -> list[str]:
    """List the files that SQLite keeps for a state, the state last."""
    return [f"{state}-wal", f"{state}-shm", f"{state}-journal", state]


def _unpack(file: Path, about: About, copy: Path) -> None:
    with _opened(file) as tar, copy.open("wb") as target:
        shutil.copyfileobj(_content(tar, about.state), target)
    if _sha256(copy) != about.sha256:
        raise InputError(f"{file}: damaged: its state has another digest. Use another backup")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
