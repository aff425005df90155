"""The release folder: written whole or not at all.

Everything is written into a hidden sibling of the folder, flushed to disk and then renamed, so a
full disk or Ctrl-C leaves what was there before. A folder that is not a release is never replaced.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import InputError, PolicyError
from common.files import flush
from common.release.manifest import strict_json
from common.release.results import RESULTS

if TYPE_CHECKING:
    import pandas as pd

STATEMENT = "privacy.json"
MODEL = "model.json"
RANGES = "ranges.zip"  # a range release: every cell, for queries
REPORT = "report.html"
NETWORK = "network.svg"
USAGE = "usage.json"  # what its users must know first
SCHEMA = "schema.toml"
TRANSCRIPT = "transcript.json"
STUDY = "study.toml"  # a study of several owners: what they agreed on
PRIOR = "prior.zip"  # of a study that builds on an earlier release: what it needs of that
FORMATS = ("csv", "parquet")
TABLES = ("synthetic.csv", "synthetic.parquet")  # a release has one of them
_ALWAYS = frozenset({STATEMENT, MODEL, SCHEMA, REPORT, USAGE})
_OF_A_STUDY = frozenset({STUDY, RESULTS, TRANSCRIPT, NETWORK})


@contextmanager
def new_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A scratch folder that becomes `target` when the block ends well, and vanishes otherwise."""
    check_target(target, overwrite=overwrite)
    scratch: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        yield scratch
        for file in scratch.rglob("*"):
            if file.is_file():
                flush(file)
        scratch.chmod(0o755)
        _put_in_place(scratch, target)
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror or error}; nothing was left behind"
        ) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _put_in_place(scratch: Path, target: Path) -> None:
    """Two renames, so that what was there is gone only once its successor is in its place."""
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


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse a place where a release must not go; call it before any budget is spent."""
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{target} is a file; name a folder for the release")
    if not any(target.iterdir()):
        return
    if not (target / STATEMENT).exists():
        raise InputError(f"{target} is not empty and not a release; name another folder")
    if not overwrite:
        raise InputError(f"{target} already holds a release; add --overwrite to replace it")


def check_file(target: Path, *, overwrite: bool) -> None:
    """Refuse a place where a single file must not go; call it before the work is done."""
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}; make it first")
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists already; add --overwrite to replace it")


def check_new(target: Path) -> None:
    """Refuse a place where there is something already, or no folder for it."""
    if target.exists():
        raise InputError(f"{target} exists; nothing is overwritten")
    check_file(target, overwrite=False)


def check_private(target: Path) -> None:
    """Refuse to put what only the owner may see into a folder that is handed on."""
    for folder in target.absolute().parents:
        if (folder / STATEMENT).exists():
            raise PolicyError(
                f"{target}: {folder} is a release, to be published, and this is computed from the "
                "real rows without noise; name a file outside of it"
            )


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A scratch file that becomes `target` when the block ends well, and vanishes otherwise."""
    scratch: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
        scratch = Path(name)
        yield scratch
        flush(scratch)
        scratch.chmod(0o644)
        scratch.replace(target)
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror or error}; nothing was left behind"
        ) from error
    finally:
        if scratch is not None:
            scratch.unlink(missing_ok=True)


def write_file(target: Path, text: str) -> None:
    """A text file, replaced in one step or not at all."""
    with new_file(target) as scratch:
        scratch.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    path.write_text(json_text(value), encoding="utf-8")


def json_text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def table_name(file_format: str) -> str:
    return f"synthetic.{file_format}"


def files_besides_the_table(listed: Collection[str], *, study: bool) -> frozenset[str]:
    """The files that a release has besides its table: neither more nor fewer.

    Of those `listed` in the manifest, range counts and a prior say of which kind the release is.
    """
    if study:
        return _ALWAYS | _OF_A_STUDY | ({PRIOR} & set(listed))
    return _ALWAYS | {RANGES if RANGES in listed else NETWORK}


def write_table(folder: Path, table: pd.DataFrame, file_format: str) -> Path:
    """The synthetic rows as synthetic.csv or synthetic.parquet."""
    path = folder / table_name(file_format)
    if file_format == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return path


def cautions_of(folder: Path) -> list[str]:
    """What users of a release must know first; none of a folder without such a file."""
    if not (folder / USAGE).exists():
        return []
    found = read_json(folder, USAGE).get("cautions", [])
    return [str(words) for words in found] if isinstance(found, list) else []


def read_json(folder: Path, name: str) -> dict[str, object]:
    """One of a release's JSON files."""
    try:
        data = (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{folder} is not a release: it has no {name}") from error
    except OSError as error:
        raise InputError(f"cannot read {folder / name}: {error}") from error
    return strict_json(data, str(folder / name))


def verdict_words(found: Mapping[str, Any]) -> tuple[str, str, str]:
    """A verdict of privacy.json: the criterion, whether it is met, and by which figures."""
    figures = f"{found['measured']:,g} ± {found['error']:,.4g} in the rows"
    if found["by_chance"] is None:
        return found["criterion"], found["outcome"], f"{figures}, {found['model']:,g} in the model"
    chance = f"{found['by_chance']:,.4g} in rows drawn from the model"
    return found["criterion"], found["outcome"], f"{figures}, {chance}"


def verdict_lines(privacy: Mapping[str, Any]) -> list[str]:
    """The verdicts of a privacy.json, a line each; none if the study named no criteria."""
    return ["{}: {} ({})".format(*verdict_words(found)) for found in privacy["criteria"]]
