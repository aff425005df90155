"""A release in one file, and signatures added to it afterwards."""

from __future__ import annotations

from pathlib import Path

from common import files as atomic
from common.errors import InputError
from common.release import folder as release
from common.release.archive import zip_pieces
from common.release.contents import Contents, FolderContents, open_release
from common.release.progress import Reporter, silent
from common.release.signatures import FOLDER, Signature
from common.release.verify import verify


def bundle(folder: Path, target: Path, *, tell: Reporter = silent) -> None:
    """A release folder as a .zip, written whole or not at all.

    Raises:
        InputError: the folder is not a release, or not what its manifest says.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; name the release folder")
    verify(folder, unsigned=True, bytes_only=True, tell=tell).require()
    tell(0.5, "writing the .zip")
    _write(FolderContents(folder), target, {})


def add_signature(path: Path, signature: Signature) -> None:
    """A signature into a release that is in its place: a folder or a .zip, whole or not at all."""
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
    with release.new_file(target) as scratch, scratch.open("wb") as stream:
        stream.writelines(zip_pieces(contents, added=added))
