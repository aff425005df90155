"""What model.json holds of every kind of model, and how the models of single owners are read."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from common.bayes.form import Model
from common.bayes.privbayes.model import PrivBayesModel
from common.errors import InputError, located
from common.release import range_file
from common.release.contents import Contents, copy_into
from common.release.folder import RANGES
from common.release.manifest import MethodVersion
from common.release.measured import study_noise
from common.release.synthetic_table import TableColumns
from common.release.totals import study_totals
from common.schema import Schema
from common.study.document import Study
from common.study.steps import Step
from common.wavelet import NoisyMatrix

FORMAT = "parley model 1"
PRIVBAYES = MethodVersion("privbayes", 1)
PRIVELET = MethodVersion("privelet", 1)

Content = dict[str, object]


class Stored(NamedTuple):
    """What every stored model of a single owner has besides the model."""

    schema: Schema
    columns: TableColumns
    privacy: dict[str, object]


def model_document(
    content: Content, *, schema: Schema, columns: TableColumns, privacy: Mapping[str, object]
) -> Content:
    """Return the content of model.json, as plain JSON values."""
    shared = {"schema": schema.to_toml(), "columns": dict(columns.kinds)}
    return {"format": FORMAT, **content, **shared, "privacy": privacy}


def check_format(document: object, where: str) -> None:
    """Refuse, with InputError, what is no model.json of this format."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{where}: not a model of this version of parley ({FORMAT!r})")


def study_content(
    study: Study, steps: Sequence[Step], model: Model, results: Sequence[bytes]
) -> Content:
    """Return what model.json holds of a study, its method first.

    Where in their bins numbers are drawn is there only if it was measured.
    """
    totals = study_totals(study, steps, results)
    inside = {study.schema.joined.names[a]: total.inside.as_json() for a, total in totals.items()}
    return {
        "method": study.method,
        "rows": study.rows,
        "model": model.as_json(),
        "noise_in_a_count": study_noise(study, steps),
        **({"inside_bins": inside} if inside else {}),
    }


def privbayes_content(model: PrivBayesModel) -> Content:
    return {"method": PRIVBAYES.name, "model": model.as_json()}


def ranges_content(ranges: NoisyMatrix) -> Content:
    """Return what was done; the counts are in a file of their own."""
    plan, names = ranges.plan, ranges.schema.names
    return {
        "method": PRIVELET.name,
        "variant": plan.method,
        "rows": ranges.rows,
        "cells": plan.cells,
        "noise_scale": str(plan.scale),
        "transforms": {name: axis.kind for name, axis in zip(names, plan.axes, strict=True)},
    }


def read_privbayes(document: Mapping[str, Any], *, where: str) -> tuple[PrivBayesModel, Stored]:
    """Read a model.json of PrivBayes; `where` names the file in errors."""
    try:
        with located(where):
            schema = Schema.from_toml(document["schema"])
            model = PrivBayesModel.from_json(document["model"])
            columns = TableColumns.of_json(document)
        privacy = dict(document["privacy"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{where}: the model is damaged: {error!r}") from None
    if model.plan.sizes != schema.sizes:
        raise InputError(f"{where}: the model and its schema do not belong together")
    return model, Stored(schema, columns, privacy)


def read_range_file(path: Path | str) -> tuple[NoisyMatrix, Stored]:
    """Read a ranges.zip, with what it says of itself."""
    ranges, stated = range_file.load(path), range_file.read_stated(path)
    try:
        return ranges, Stored(ranges.schema, TableColumns.of_json(stated), dict(stated["privacy"]))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path}: its statement is missing or damaged: {error!r}") from None


def read_ranges(contents: Contents) -> tuple[NoisyMatrix, Stored]:
    with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
        copy = copy_into(Path(scratch), contents, RANGES)
        try:
            return read_range_file(copy)
        except InputError as error:
            problem = str(error).removeprefix(f"{copy}: ")
            raise contents.error(RANGES, why=problem) from None
