"""The release folder: the names of its files, and how it is written, whole or not at all.

Everything is written into a hidden sibling of the folder, flushed to disk and then renamed
(`common.files`), so a full disk or Ctrl-C leaves what was there before. A folder that is not a
release is never replaced.

results.bin has what was published during a study, step after step. Every party received all of it,
and it carries the noise that the privacy statement counts. With the study it determines the steps,
their cost and the model, so a reader can derive those again, and a party can tell whether these are
the results that it saw. Its layout: the line `parley results 2`, then for every step its length (8
bytes, big-endian) and its bytes: for a sum little-endian signed integers, all as wide as the
largest needs; for a choice the published payload.

commitments.json has each owner's commitment to its table with the owner's signature, and for each
step one commitment for each of its parties, in order. Its bytes follow from its content.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import InputError, PolicyError
from common.files import replace, replaced_folder
from common.release.contents import Contents, read_text
from common.release.manifest import json_text, strict_json
from common.schema.schema import Schema
from common.study.document import Study

if TYPE_CHECKING:
    import pandas as pd


from common.release.contents import read_whole
from common.study.commitments import Commitments, TableCommitment

STATEMENT = "privacy.json"
MODEL = "model.json"
RANGES = "ranges.zip"  # a range release: every cell, for queries
REPORT = "report.html"
NETWORK = "network.svg"
USAGE = "usage.json"  # what its users must know first
SCHEMA = "schema.toml"
TRANSCRIPT = "transcript.json"
RESULTS = "results.bin"
STUDY = "study.toml"  # a study of several owners: what they agreed on
COMMITMENTS = "commitments.json"  # of a study with commitments: what owners committed to
PRIOR = "prior.zip"  # of a study that builds on an earlier release: what it needs of that
FORMATS = ("csv", "parquet")
TABLE = "synthetic"
TABLES = tuple(f"{TABLE}.{ending}" for ending in FORMATS)  # a release has one of them
_EVENTS = re.compile(rf"{TABLE}-[a-z][a-z0-9_-]*\.({'|'.join(FORMATS)})")
PAGE_NAMES = frozenset({REPORT, USAGE, NETWORK})  # the pages for people: their maker's own word
_ALWAYS = frozenset({STATEMENT, MODEL, SCHEMA})
_OF_A_STUDY = frozenset({STUDY, RESULTS, TRANSCRIPT})
_RESULTS_HEAD = b"parley results 2\n"
_LENGTH_BYTES = 8
_MOST_RESULTS = 1 << 30
_COMMITMENTS_FORMAT, _COMMITMENTS_VERSION = "parley commitments", 1
_MOST_COMMITMENTS = 256 << 20


@contextmanager
def new_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a scratch folder that becomes `target` if the block ends well, and else vanishes."""
    check_target(target, overwrite=overwrite)
    with replaced_folder(target) as scratch:
        yield scratch


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse a place where a release must not go; call it before any budget is spent."""
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{target}: this is a file. Name a folder for the release")
    if not any(target.iterdir()):
        return
    if not (target / STATEMENT).exists():
        raise InputError(
            f"{target}: the folder is not empty, and not a release. Name another folder"
        )
    if not overwrite:
        raise InputError(
            f"{target}: the folder already holds a release. Add overwrite=True to replace it"
        )


def check_file(target: Path, *, overwrite: bool) -> None:
    """Refuse a place where a single file must not go; call it before the work is done."""
    if target.is_dir():
        raise InputError(f"{target}: this is a folder. Name a file")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}. Make it first")
    if target.exists() and not overwrite:
        raise InputError(f"{target}: the file exists already. Add overwrite=True to replace it")


def check_new(target: Path) -> None:
    """Refuse a place where there is something already, or no folder for it."""
    if target.exists():
        raise InputError(f"{target}: it exists, and nothing is overwritten. Name another place")
    check_file(target, overwrite=False)


def check_private(target: Path) -> None:
    """Refuse to put what only the owner may see into a folder that is handed on."""
    for folder in target.absolute().parents:
        if (folder / STATEMENT).exists():
            raise PolicyError(
                f"{target}: {folder} is a release, to be published, and this is computed from the "
                "real rows without noise. Name a file outside of it"
            )


def write_file(target: Path, text: str) -> None:
    """Write a text file, replaced in one step or not at all."""
    replace(target, text.encode())


def write_json(path: Path, value: object) -> None:
    path.write_text(json_text(value), encoding="utf-8")


def table_name(file_format: str) -> str:
    return f"{TABLE}.{file_format}"


def events_stem(schema: Schema) -> str:
    """Return the name of the table of events, without its ending."""
    if schema.events is None:
        raise InputError("schema: it has no [events]")
    return f"{TABLE}-{schema.events.name}"


def events_table(schema: Schema, file_format: str) -> str:
    return f"{events_stem(schema)}.{file_format}"


def event_tables(listed: Collection[str]) -> frozenset[str]:
    """Return the files that are named like a table of events."""
    return frozenset(name for name in listed if _EVENTS.fullmatch(name))


def files_besides_the_table(listed: Collection[str], *, study: bool) -> frozenset[str]:
    """Return the files that a release has besides its table and its pages: neither more nor fewer.

    Range counts, a prior, commitments or a table of events among those `listed` in the manifest
    say of which kind the release is.
    """
    if study:
        extra = {PRIOR, COMMITMENTS} & set(listed)
        return _ALWAYS | _OF_A_STUDY | extra | event_tables(listed)
    return _ALWAYS | ({RANGES} & set(listed))


def pages_of_kind(listed: Collection[str], *, rows: bool = True) -> frozenset[str]:
    """Return the pages of a release with these files: range counts and answers have no network."""
    return PAGE_NAMES - ({NETWORK} if RANGES in listed or not rows else set())


def write_table(folder: Path, table: pd.DataFrame, file_format: str, *, stem: str = TABLE) -> Path:
    """Write a table of synthetic rows: synthetic.csv or synthetic.parquet, or that of events."""
    path = folder / f"{stem}.{file_format}"
    if file_format == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return path


def cautions_of(folder: Path) -> list[str]:
    """Return what users of a release must know first; nothing without a usage.json."""
    if not (folder / USAGE).exists():
        return []
    cautions = read_json(folder, USAGE).get("cautions", [])
    return [str(words) for words in cautions] if isinstance(cautions, list) else []


def read_schema(contents: Contents) -> Schema:
    text = read_text(contents, SCHEMA)
    with contents.blaming(SCHEMA):
        return Schema.from_toml(text, where=SCHEMA)


def read_study(contents: Contents) -> Study:
    text = read_text(contents, STUDY)
    with contents.blaming(STUDY):
        return Study.from_toml(text, where=STUDY)


def read_json(folder: Path, name: str) -> dict[str, object]:
    try:
        data = (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{folder} is not a release: it has no {name}") from error
    except OSError as error:
        raise InputError(f"cannot read {folder / name}: {error}") from error
    return strict_json(data, str(folder / name))


def verdict_words(verdict: Mapping[str, Any]) -> tuple[str, str, str]:
    """Put a verdict of privacy.json into words: the criterion, the outcome, and the figures."""
    figures = f"{verdict['measured']:,g} ± {verdict['error']:,.4g} in the rows"
    if verdict["by_chance"] is None:
        return (
            verdict["criterion"],
            verdict["outcome"],
            f"{figures}, {verdict['model']:,g} in the model",
        )
    chance = f"{verdict['by_chance']:,.4g} in rows drawn from the model"
    return verdict["criterion"], verdict["outcome"], f"{figures}, {chance}"


def verdict_lines(privacy: Mapping[str, Any]) -> list[str]:
    return ["{}: {} ({})".format(*verdict_words(verdict)) for verdict in privacy["criteria"]]


def write_results(path: Path, results: Sequence[bytes]) -> None:
    with path.open("wb") as file:
        file.write(_RESULTS_HEAD)
        for result in results:
            file.write(len(result).to_bytes(_LENGTH_BYTES, "big"))
            file.write(result)


def read_results(contents: Contents) -> tuple[bytes, ...]:
    """Read the results in a release; raise InputError if they are too many or damaged."""
    size = contents.sizes().get(RESULTS, 0)
    if size > _MOST_RESULTS:
        raise contents.error(RESULTS, why=f"{size:,} bytes are more than {_MOST_RESULTS:,}")
    with contents.open(RESULTS) as stream:
        if stream.read(len(_RESULTS_HEAD)) != _RESULTS_HEAD:
            raise contents.error(RESULTS, why="not published results of version 2")
        results, bytes_left = [], size - len(_RESULTS_HEAD)
        while bytes_left > 0:
            length = int.from_bytes(stream.read(_LENGTH_BYTES), "big")
            bytes_left -= _LENGTH_BYTES + length
            if bytes_left < 0:  # before anything of that length is read
                break
            results.append(stream.read(length))
        if bytes_left != 0 or stream.read(1):
            raise contents.error(RESULTS, why="cut short, or longer than it says")
    return tuple(results)


def commitments_text(commitments: Commitments) -> str:
    return json_text(
        {
            "format": _COMMITMENTS_FORMAT,
            "version": _COMMITMENTS_VERSION,
            "tables": {
                name: {
                    "commitment": commitment.value.hex(),
                    "signature": commitment.signature.hex(),
                }
                for name, commitment in commitments.tables.items()
            },
            "contributions": [
                [value.hex() for value in step] for step in commitments.contributions
            ],
        }
    )


def read_commitments(contents: Contents, study: Study) -> Commitments | None:
    """Read the commitments in a release; None if the study has none."""
    if not study.commitments:
        return None
    data = read_whole(contents, COMMITMENTS, most=_MOST_COMMITMENTS)
    with contents.blaming(COMMITMENTS):
        commitments = _commitments_in(strict_json(data, COMMITMENTS))
        if commitments_text(commitments).encode() != data:
            raise InputError("not written as parley writes commitments")
        return commitments


def _commitments_in(document: dict[str, Any]) -> Commitments:
    if (document.get("format"), document.get("version")) != (
        _COMMITMENTS_FORMAT,
        _COMMITMENTS_VERSION,
    ):
        raise InputError(f"not {_COMMITMENTS_FORMAT} of version {_COMMITMENTS_VERSION}")
    try:
        tables = {
            name: TableCommitment(
                bytes.fromhex(entry["commitment"]), bytes.fromhex(entry["signature"])
            )
            for name, entry in document["tables"].items()
        }
        steps = document["contributions"]
        return Commitments(tables, tuple(tuple(map(bytes.fromhex, step)) for step in steps))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"not commitments: {error!r}") from None
