"""Reading back what a fitted model saved, or what is in a release folder."""

from __future__ import annotations

import json
import zipfile
from functools import partial
from pathlib import Path

from common.errors import InputError
from common.release.fitted import FORMAT
from common.release.fitted_privbayes import METHOD, FittedPrivBayes
from common.release.fitted_privelet import FittedPrivelet
from common.release.folder import FORMATS, MODEL, RANGES, SCHEMA, STATEMENT, read_json, table_name
from common.release.released_model import ReleasedModel
from common.release.released_rows import ReleasedRows
from common.schema import Schema
from common.schema.tables import read_table


def load(path: Path | str) -> FittedPrivBayes | FittedPrivelet | ReleasedRows:
    """The model in a file that `save` wrote, or what is in a release folder.

    The release of a study of several owners is read back as its synthetic rows; `sample` draws
    further ones from its model.

    Raises:
        InputError: there is none, or it is damaged.
    """
    target = Path(path)
    if target.is_dir():
        names = [name for name in (RANGES, MODEL) if (target / name).is_file()]
        if not names:
            raise InputError(f"{target} is not a release: it has no {MODEL}")
        target = target / names[0]
    if not target.is_file():
        raise InputError(f"{target}: no such file")
    if zipfile.is_zipfile(target):
        return FittedPrivelet.load(target)
    try:
        document = json.loads(target.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{target}: not a model: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{target}: not a model of this version of parley ({FORMAT!r})")
    if document.get("method") != METHOD:
        if target.parent != Path(path):
            raise InputError(f"{target} only describes a release; load the folder it is in")
        return _released_rows(target.parent, document)
    return FittedPrivBayes.from_json(document, where=str(target))


def synthetic_table(folder: Path) -> Path:
    """The file with the synthetic rows of a release.

    Raises:
        InputError: there is none.
    """
    files = [folder / table_name(kind) for kind in FORMATS]
    table = next((file for file in files if file.is_file()), None)
    if table is None:
        raise InputError(f"{folder} is not a release: it has no synthetic table")
    return table


def _released_rows(folder: Path, document: dict[str, object]) -> ReleasedRows:
    schema = Schema.load(folder / SCHEMA)
    table = synthetic_table(folder)
    rows = document.get("rows")
    if not isinstance(rows, int):
        raise InputError(f"{folder / MODEL}: the model is damaged: it does not say how many rows")
    codes = read_table(table, schema).encode(schema)
    return ReleasedRows(
        schema,
        codes,
        rows,
        read_json(folder, STATEMENT),
        _noise(document, folder),
        model=partial(ReleasedModel.read, document, where=str(folder / MODEL)),
    )


def _noise(document: dict[str, object], folder: Path) -> dict[str, float]:
    """By attribute; none in releases of versions that did not write it."""
    noise = document.get("noise_in_a_count", {})
    if not isinstance(noise, dict) or not all(isinstance(v, int | float) for v in noise.values()):
        raise InputError(f"{folder / MODEL}: the model is damaged: its noise is no list of numbers")
    return {name: float(deviation) for name, deviation in noise.items()}
