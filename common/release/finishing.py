"""The last thing done to a release: its manifest, and its maker's signature."""

from __future__ import annotations

from pathlib import Path

from common.privacy.statement import versions
from common.release.contents import FolderContents, data_names
from common.release.manifest import MANIFEST, Manifest, sha256_of
from common.release.signatures import FOLDER, Signature, Signer


def finish(folder: Path, *, study: bytes | None, date: str, signer: Signer | None) -> None:
    """List every file of a folder that holds a release and nothing else; sign the list."""
    contents = FolderContents(folder)
    files = {}
    for name in data_names(contents):
        with contents.open(name) as stream:
            files[name] = sha256_of(stream)
    digest = None if study is None else study.hex()
    manifest = Manifest(files=files, study=digest, date=date, versions=versions()).to_bytes()
    (folder / MANIFEST).write_bytes(manifest)
    if signer is not None:
        put_signature(folder, signer.sign(manifest))


def put_signature(folder: Path, signature: Signature) -> None:
    """A signature into a folder that is not in its place yet."""
    (folder / FOLDER).mkdir(exist_ok=True)
    (folder / signature.file).write_bytes(signature.to_bytes())
