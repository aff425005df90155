"""A release in one file: the same release always gives the same .zip, byte for byte.

All files lie in one folder, which is named after the study. Names in order, a fixed time, fixed
modes. The bytes of a deflated entry depend on the library that
deflates, so two machines with different ones may differ; what is signed is the manifest, which does
not. Files that are compressed already are stored. It is made piece by piece, while it is written or
sent: no second copy on disk, none in memory.

    with release.new_file(target) as scratch, scratch.open("wb") as stream:
        stream.writelines(zip_pieces(FolderContents(folder)))
"""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import IO, cast

from common.errors import InputError
from common.release.contents import Contents, read_whole
from common.schema.toml import parse_toml

_TIME = (1980, 1, 1, 0, 0, 0)  # the first that the format knows
_UNIX = 3
_COMPRESSED = (".parquet", ".zip", ".gz")
_PIECE = 1 << 20
_STUDY = "study.toml"
_MOST_STUDY = 64 << 20
_MOST_FOLDER = 60
_UNNAMED = "release"


def zip_pieces(contents: Contents, *, added: Mapping[str, bytes] | None = None) -> Iterator[bytes]:
    """The bytes of the .zip of a release, in constant memory.

    Args:
        contents: the release, a folder or another .zip.
        added: further small files by name; they take the place of files of the same name.
    """
    extra = {} if added is None else added
    sizes = contents.sizes() | {name: len(data) for name, data in extra.items()}
    folder, sink = _folder(contents), _Sink()
    with zipfile.ZipFile(cast(IO[bytes], sink), "w") as archive:
        for name, size in sorted(sizes.items()):
            source = io.BytesIO(extra[name]) if name in extra else contents.open(name)
            with source, archive.open(_entry(f"{folder}/{name}", size), "w") as target:
                while piece := source.read(_PIECE):
                    target.write(piece)
                    yield sink.take()
    yield sink.take()


def _folder(contents: Contents) -> str:
    """A name for the folder that every file system takes; the same for the same release."""
    if _STUDY not in contents.sizes():
        return _UNNAMED
    try:
        name = parse_toml(read_whole(contents, _STUDY, most=_MOST_STUDY).decode()).get("name")
    except (InputError, UnicodeDecodeError):
        return _UNNAMED
    plain = re.sub(r"[^A-Za-z0-9]+", "-", str(name)).strip("-")
    return plain[:_MOST_FOLDER] or _UNNAMED


def _entry(name: str, size: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIME)
    stored = PurePath(name).suffix in _COMPRESSED
    entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    entry.create_system = _UNIX
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    entry.file_size = size  # decides on the 64-bit format before the first byte
    return entry


class _Sink:
    """Keeps what the archive writes until it is taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """There is nothing to flush."""

    def close(self) -> None:
        """There is nothing to close."""

    def take(self) -> bytes:
        whole, self._pieces = b"".join(self._pieces), []
        return whole
