"""A release as a .zip that is made while it is sent: no second copy on disk, none in memory."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

_CHUNK = 1 << 16


def files_of(place: Path) -> list[Path]:
    """The files of a release, in order; links are not followed."""
    if place.is_symlink() or not place.exists():
        return []
    if place.is_file():
        return [place]
    return sorted(path for path in place.rglob("*") if path.is_file() and not path.is_symlink())


def zipped(place: Path) -> Iterator[bytes]:
    """The release in a folder of its own name."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files_of(place):
            entry = zipfile.ZipInfo.from_file(path, str(path.relative_to(place.parent)))
            entry.compress_type = zipfile.ZIP_DEFLATED
            with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)
                    yield sink.take()
    yield sink.take()


class _Sink:
    """Keeps what the archive writes until it is sent."""

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
