"""A release received from elsewhere, a folder or a .zip: read, and not trusted.

Nothing is ever unpacked: files are read where they are. A .zip is looked at before anything in it
is read, and refused if a name is not plain, is there twice or is a link, if a small file claims to
unpack to an enormous file, or if any byte belongs to no entry: before, between or after them.
"""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from common.errors import InputError
from common.release.manifest import (
    FOLDER,
    MANIFEST,
    MOST_FILES,
    MOST_SIGNATURES,
    PAGES,
    is_plain_name,
    strict_json,
)

_MOST_TEXT = 64 << 20
_MOST_ENTRIES = MOST_FILES + MOST_SIGNATURES + 4
_MOST_RATIO = 200  # of an honest table; deflate itself goes to 1032
_HARMLESS_BYTES = 64 << 20  # below, no ratio is a danger
_LOCAL_HEADER_BYTES = 30
_END_BYTES = 22  # of the record that ends a .zip, if it has no comment
_DESCRIPTORS = (12, 16, 20, 24)  # what may follow an entry whose sizes were not known at first


class FileError(InputError):
    """A file of a release cannot be used; `Contents.error` makes it."""

    release: str
    file: str
    why: str


class Contents(ABC):
    """The files of a release."""

    def __init__(self, where: Path, sizes: Mapping[str, int]) -> None:
        self.where = str(where)  # what to call it in errors
        self._sizes = dict(sorted(sizes.items()))

    def sizes(self) -> dict[str, int]:
        """Return every file by name, in order, with its size; signatures as signatures/NAME."""
        return self._sizes

    def error(self, name: str, *, why: str) -> FileError:
        """Return an error that knows its file, and why it cannot be used."""
        error = FileError(f"{self.where}: {name}: {why}")
        error.release, error.file, error.why = self.where, name, why
        return error

    @contextmanager
    def blaming(self, name: str) -> Iterator[None]:
        """Make every InputError of the block a FileError of this file.

        Readers of tables and TOML put the file's name before the problem: it is not said twice.
        """
        try:
            yield
        except FileError as error:
            if error.release == self.where:
                raise
            raise self.error(name, why=str(error)) from None
        except InputError as error:
            raise self.error(name, why=str(error).removeprefix(f"{name}: ")) from None

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """Open a file for reading; raise InputError if that fails."""


@contextmanager
def open_release(path: Path) -> Iterator[Contents]:
    """Open a folder or a .zip; raise InputError if it is no release, or not safe to read."""
    if path.is_dir():
        yield FolderContents(path)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            yield ZipContents(path, archive)
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        raise InputError(f"{path}: cannot be read as a folder or a .zip: {error}") from error


def read_whole(contents: Contents, name: str, *, most: int) -> bytes:
    """Read a small file; raise InputError if it is missing or larger than `most`."""
    size = contents.sizes().get(name)
    if size is None:
        raise contents.error(name, why="is missing")
    if size > most:
        raise contents.error(name, why=f"has {size:,} bytes, more than {most:,}")
    with contents.open(name) as stream:
        data = stream.read(most + 1)
    if len(data) != size:
        raise contents.error(name, why="has another size than it says")
    return data


def read_text(contents: Contents, name: str) -> str:
    try:
        return read_whole(contents, name, most=_MOST_TEXT).decode()
    except UnicodeDecodeError:
        raise contents.error(name, why="not UTF-8") from None


def read_json(contents: Contents, name: str, *, most: int = _MOST_TEXT) -> dict[str, Any]:
    data = read_whole(contents, name, most=most)
    with contents.blaming(name):
        return strict_json(data, name)


def copy_into(folder: Path, contents: Contents, name: str) -> Path:
    """Copy a file of a release to where libraries can open it."""
    with contents.open(name) as source, (folder / name).open("wb") as target:
        shutil.copyfileobj(source, target)
    return folder / name


class FolderContents(Contents):
    """A release folder; links and anything that is not a plain file are refused."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, dict(_walk(folder)))
        self._folder = folder

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading; it is not followed if it has become a link."""
        try:
            flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
            return os.fdopen(os.open(self._folder / name, flags), "rb")
        except OSError as error:
            raise self.error(name, why=f"cannot be read: {error.strerror}") from error


def _walk(folder: Path, below: str = "") -> Iterator[tuple[str, int]]:
    try:
        for path in folder.iterdir():
            if below and path.name.startswith("."):
                continue  # a signature that is being written
            name, status = below + path.name, path.lstat()
            if stat.S_ISDIR(status.st_mode) and name == FOLDER:
                yield from _walk(path, f"{FOLDER}/")
            elif stat.S_ISREG(status.st_mode):
                yield name, status.st_size
            else:
                kind = "a link" if stat.S_ISLNK(status.st_mode) else "not a file"
                raise InputError(f"{path}: it is {kind}. A release has plain files only")
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}") from error


class ZipContents(Contents):
    """A release in a .zip, looked at before anything in it is read."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        entries = archive.infolist()
        if len(entries) > _MOST_ENTRIES:
            raise InputError(f"{path}: {len(entries):,} entries are too many for a release")
        self._entries: dict[str, zipfile.ZipInfo] = {}
        names: set[str] = set()
        inside = _outer_folder(entries)
        for entry in entries:
            name = entry.filename.removeprefix(inside)
            if not name and entry.is_dir() and not entry.file_size:
                continue
            self._check(entry, name)
            if entry.filename.casefold() in names:  # on some disks these are the same file
                raise InputError(f"{path}: {entry.filename!r} is there twice")
            names.add(entry.filename.casefold())
            if not entry.is_dir():
                self._entries[name] = entry
        self._check_layout(entries)
        super().__init__(path, {name: entry.file_size for name, entry in self._entries.items()})

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading; it is unpacked while it is read."""
        try:
            return cast(BinaryIO, self._archive.open(self._entries[name]))
        except (KeyError, OSError, RuntimeError, zipfile.BadZipFile) as error:
            raise self.error(name, why=f"cannot be read: {error}") from error

    def _check(self, entry: zipfile.ZipInfo, name: str) -> None:
        if entry.filename != entry.orig_filename:
            raise self._refusal(entry, "has a name with a zero byte or a backslash in it")
        if entry.is_dir():
            if name != f"{FOLDER}/" or entry.file_size:
                raise self._refusal(entry, "is a folder that no release has")
            return
        *above, last = name.split("/")
        if above not in ([], [FOLDER]) or not is_plain_name(last):
            raise self._refusal(entry, "is not a name for a file of a release")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise self._refusal(entry, "is a link or a device, not a file")
        if entry.flag_bits & 0x1:
            raise self._refusal(entry, "is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._refusal(entry, "is neither stored nor deflated")
        if entry.file_size > max(_HARMLESS_BYTES, _MOST_RATIO * entry.compress_size):
            raise self._refusal(
                entry,
                f"would unpack to {entry.file_size:,} bytes, {_MOST_RATIO} times what it takes. "
                "If you trust it, unpack it yourself and name the folder",
            )

    def _check_layout(self, entries: list[zipfile.ZipInfo]) -> None:
        """Refuse bytes that belong to no entry: before, between or after them."""
        places = sorted(entries, key=lambda entry: entry.header_offset)
        starts = [entry.header_offset for entry in places] + [self._archive.start_dir]
        if starts[0] != 0:
            raise InputError(f"{self._path}: bytes before the first entry: not a .zip of a release")
        with self._path.open("rb") as file:
            for entry, start, following in zip(places, starts, starts[1:], strict=False):
                gap = following - _end_of(file, entry, start)
                if gap not in (_DESCRIPTORS if entry.flag_bits & 0x8 else (0,)):
                    raise self._refusal(entry, "overlaps what follows it, or leaves a gap")
            file.seek(-min(_END_BYTES, self._path.stat().st_size), os.SEEK_END)
            end = file.read()
        if not end.startswith(b"PK\5\6") or not end.endswith(b"\0\0"):
            raise InputError(f"{self._path}: bytes after the end of the .zip. Make it again")

    def _refusal(self, entry: zipfile.ZipInfo, why: str) -> InputError:
        return InputError(f"{self._path}: {entry.filename!r} {why}")


def _outer_folder(entries: list[zipfile.ZipInfo]) -> str:
    """Return the folder that all files are in, with its slash; nothing where there is none."""
    names = {entry.filename for entry in entries}
    for name in names:
        first, _, rest = name.partition("/")
        if rest == MANIFEST and is_plain_name(first):
            outer = f"{first}/"
            return outer if all(name.startswith(outer) for name in names) else ""
    return ""


def _end_of(file: BinaryIO, entry: zipfile.ZipInfo, start: int) -> int:
    """Return where the compressed bytes of an entry end; its header says its own length."""
    file.seek(start)
    header = file.read(_LOCAL_HEADER_BYTES)
    name, extra = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
    return start + _LOCAL_HEADER_BYTES + name + extra + entry.compress_size


def data_names(contents: Contents) -> list[str]:
    """Return the files that are listed: all but the lists themselves and the signatures."""
    return [
        name
        for name in contents.sizes()
        if name not in (MANIFEST, PAGES) and not name.startswith(f"{FOLDER}/")
    ]
