"""Reading back what a fitted model saved, or what is in a release: a folder or a .zip."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from common.errors import InputError
from common.fitted.linked import LinkedFit
from common.fitted.model import NO_ROWS, Origin
from common.fitted.privbayes import PrivBayesFit
from common.fitted.privelet import PriveletFit
from common.fitted.study import StudyFit
from common.methods.registry import publishes_rows
from common.release.contents import Contents, copy_into, open_release, read_json, read_whole
from common.release.folder import (
    MODEL,
    RANGES,
    STATEMENT,
    TABLES,
    TRANSCRIPT,
    read_commitments,
    read_results,
    read_study,
)
from common.release.manifest import MANIFEST
from common.release.model_file import PRIVBAYES, check_format, read_ranges
from common.release.prior import bundled_prior
from common.release.synthetic_table import TableColumns, read_linked
from common.schema import Schema
from common.study.transcript import phases_of
from common.tables import read_table

Loaded = PrivBayesFit | PriveletFit | StudyFit
_MOST = 1 << 30


def load(path: Path | str) -> Loaded:
    """Load what `parley.load` does, without what can be asked of it."""
    target = Path(path)
    if target.is_dir() or is_release_zip(target):
        with open_release(target) as contents:
            return _from_release(target, contents)
    if not target.is_file():
        raise InputError(f"{target}: no such file")
    if zipfile.is_zipfile(target):
        return PriveletFit.load(target)
    try:
        document = json.loads(target.read_text("utf-8"))
    except (OSError, ValueError) as error:
        words = (
            error.strerror if isinstance(error, OSError) else "it is neither a release nor a model"
        )
        raise InputError(
            f"{target}: {words}. Name a release, or a file that `save` wrote"
        ) from None
    check_format(document, str(target))
    if document.get("method") != PRIVBAYES.name:
        raise InputError(f"{target}: this only describes a release. Load the folder it is in")
    return PrivBayesFit.from_json(document, where=str(target))


def is_release_zip(path: Path) -> bool:
    """Return whether a file is the .zip of a release, and not of range counts."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.split("/")[-1] == MANIFEST for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


@contextmanager
def synthetic_table(release: Path) -> Iterator[Path]:
    """Yield the file with the synthetic rows of a release; of a .zip, a temporary copy."""
    with open_release(release) as contents:
        name = next((name for name in TABLES if name in contents.sizes()), None)
        if name is None and MODEL in contents.sizes():
            raise InputError(f"{release}: {NO_ROWS}")
        if name is None:
            raise InputError(f"{release} is not a release: it has no synthetic table")
        if release.is_dir():
            yield release / name
            return
        with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
            yield copy_into(Path(scratch), contents, name)


def _from_release(path: Path, contents: Contents) -> Loaded:
    names = contents.sizes()
    if MODEL not in names:
        raise InputError(f"{path} is not a release: it has no {MODEL}")
    document = read_json(contents, MODEL, most=_MOST)
    check_format(document, f"{path}: {MODEL}")
    if RANGES in names:
        ranges, stored = read_ranges(contents)
        origin = _origin(path, contents, ranges.schema)
        return PriveletFit(ranges=ranges, origin=origin, **stored._asdict())
    if document.get("method") == PRIVBAYES.name:
        with contents.blaming(MODEL):
            fitted = PrivBayesFit.from_json(document, where=MODEL)
        return replace(fitted, origin=_origin(path, contents, fitted.schema))
    study = read_study(contents)
    try:
        columns = TableColumns.of_json(document)
    except (KeyError, AttributeError) as error:
        raise contents.error(MODEL, why=f"the model is damaged: {error!r}") from None
    kind = StudyFit if study.schema.events is None else LinkedFit
    return kind(
        study=study,
        schema=study.schema,
        results=read_results(contents),
        privacy=read_json(contents, STATEMENT),
        columns=columns,
        transcript=_read_transcript(contents),
        prior=bundled_prior(contents, study),
        commitments=read_commitments(contents, study),
        origin=_origin(path, contents, study.schema, rows=publishes_rows(study.method)),
    )


def _read_transcript(contents: Contents) -> dict[str, object]:
    """Read what the study took; `parley verify` compares it with the study."""
    transcript = read_json(contents, TRANSCRIPT)
    with contents.blaming(TRANSCRIPT):
        phases_of(transcript)
    return transcript


def _origin(path: Path, contents: Contents, schema: Schema, *, rows: bool = True) -> Origin:
    """Read the synthetic rows of a release, and the digest of its manifest or else its model."""
    name = MANIFEST if MANIFEST in contents.sizes() else MODEL
    digest = hashlib.sha256(read_whole(contents, name, most=_MOST)).hexdigest()
    if not rows:
        return Origin(path, digest, None)
    if schema.events is not None:
        return Origin(path, digest, read_linked(contents, schema))
    with synthetic_table(path) as file:
        return Origin(path, digest, read_table(file, schema).encode(schema))
