"""A release handed on: its manifest and signatures, and all of it in one .zip.

A release always gives the same .zip, byte for byte: all files lie in one folder, which is named
after the study, with names in order, a fixed time and fixed modes. The bytes of a deflated entry
depend on the compression library, so they may differ between machines; what is signed is the
manifest, which does not. The .zip is made piece by piece, while it is written or sent: no second
copy on disk, none in memory.
"""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import IO, cast

from common import files as atomic
from common.errors import InputError
from common.privacy.statement import versions
from common.release import folder as release
from common.release.contents import Contents, FolderContents, data_names, open_release, read_text
from common.release.integrity import check_bytes, name_problems, require_none
from common.release.manifest import (
    FOLDER,
    MANIFEST,
    PAGES,
    Manifest,
    MethodVersion,
    Signature,
    Signer,
    pages_bytes,
    sha256_of,
)
from common.schema.toml import parse_toml
from common.wording import Reporter, silent

_TIME = (1980, 1, 1, 0, 0, 0)  # the first that the format knows
_UNIX = 3
_COMPRESSED = (".parquet", ".zip", ".gz")  # stored as they are
_PIECE = 1 << 20
_MOST_FOLDER = 60
_UNNAMED = "release"


def finish(
    folder: Path,
    *,
    study: bytes | None,
    method: MethodVersion,
    date: str,
    signer: Signer | None,
) -> None:
    """List every file of a folder that holds a release and nothing else; sign the lists."""
    contents = FolderContents(folder)
    entries = {}
    for name in data_names(contents):
        with contents.open(name) as stream:
            entries[name] = sha256_of(stream)
    pages = pages_bytes({name: entries.pop(name) for name in release.PAGE_NAMES & entries.keys()})
    digest = None if study is None else study.hex()
    manifest = Manifest(
        files=entries, study=digest, date=date, versions=versions(), method=method
    ).to_bytes()
    (folder / MANIFEST).write_bytes(manifest)
    (folder / PAGES).write_bytes(pages)
    if signer is not None:
        add_signature(folder, signer.sign(manifest, pages))


def bundle(folder: Path, *, target: Path, tell: Reporter = silent) -> None:
    """Write a release folder as a .zip, whole or not at all, if it is what its manifest says."""
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder. Name the release folder")
    contents = FolderContents(folder)
    checked = check_bytes(contents, tell=tell)
    require_none(str(folder), [*checked.problems, *name_problems(checked)])
    tell(0.5, "writing the .zip")
    _write(contents, target, {})


def add_signature(path: Path, signature: Signature) -> None:
    """Add a signature to a release, a folder or a .zip, whole or not at all."""
    if path.is_dir():
        try:
            (path / FOLDER).mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write {path / FOLDER}: {error.strerror}") from error
        atomic.replace(path / signature.file, signature.to_bytes())
        return
    with open_release(path) as contents:
        _write(contents, path, {signature.file: signature.to_bytes()})


def _write(contents: Contents, target: Path, added: dict[str, bytes]) -> None:
    with atomic.whole_file(target) as scratch, scratch.open("wb") as stream:
        stream.writelines(zip_pieces(contents, added=added))


def zip_pieces(
    contents: Contents,
    *,
    only: Collection[str] | None = None,
    added: Mapping[str, bytes] = MappingProxyType({}),
) -> Iterator[bytes]:
    """Yield the bytes of the .zip of a release, in constant memory.

    `only` are the files that go into it, None for all. `added` are further small files by name,
    which take the place of the release's own.
    """
    stored = {name: size for name, size in contents.sizes().items() if only is None or name in only}
    sizes = stored | {name: len(data) for name, data in added.items()}
    folder, sink = _folder(contents), _Sink()
    with zipfile.ZipFile(cast(IO[bytes], sink), "w") as archive:
        for name, size in sorted(sizes.items()):
            source = io.BytesIO(added[name]) if name in added else contents.open(name)
            with source, archive.open(_entry(f"{folder}/{name}", size), "w") as target:
                while piece := source.read(_PIECE):
                    target.write(piece)
                    yield sink.take()
    yield sink.take()


def _folder(contents: Contents) -> str:
    """Return a name for the folder that every file system takes, by the name of the study."""
    if release.STUDY not in contents.sizes():
        return _UNNAMED
    try:
        name = parse_toml(read_text(contents, release.STUDY)).get("name")
    except InputError:
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


class _Sink(io.RawIOBase):
    """Keeps what the archive writes until it is taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._pieces.append(bytes(data))
        return len(self._pieces[-1])

    def take(self) -> bytes:
        whole, self._pieces = b"".join(self._pieces), []
        return whole
