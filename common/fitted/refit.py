"""A study's script run again on rows drawn from its model: how far would a release scatter?

The rows are dealt out to the parties, every sum is counted and gets fresh noise of its law, and the
script goes on to its model. The script, the requests, the mechanisms and
the noise are those of the study; only the cryptography, which changes no sum, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from common.bayes.form import Model
from common.errors import LocalError
from common.methods.criteria import PHASE
from common.methods.prior import Prior
from common.methods.registry import run_of
from common.privacy.randomness import RandomSource
from common.schema import Codes
from common.study.document import Study
from common.study.script import drive
from common.study.steps import OnePlace, Result, Step


def refit_study(
    study: Study,
    rows: Codes,
    source: RandomSource,
    missing: Mapping[str, int] = MappingProxyType({}),
    prior: Prior | None = None,
    near: Model | None = None,
) -> Model:
    """Take the study's script to its model on these rows, dealt out to the parties in their order.

    Parties go `missing` as they did, each before a step. The fit may start `near` a model, if the
    rows were drawn from it.
    """
    if rows.rows != study.rows:
        raise LocalError(f"the study has {study.rows} rows, not {rows.rows}")
    place = dealt_out(study, rows, source)

    def answer(step: Step) -> Result:
        if step.phase == PHASE:
            return np.zeros(step.cells, np.int64)  # criteria: nothing of the model follows
        return place.answer(step)

    run = drive(run_of(study, prior), answer, missing)
    return run.model(near)


def dealt_out(study: Study, rows: Codes, source: RandomSource) -> OnePlace:
    """Deal rows out to the parties of a study, in their order."""
    ends = np.cumsum([0, *study.rows_of.values()]).tolist()
    parts = [rows.take(slice(start, end)) for start, end in pairwise(ends)]
    return OnePlace(study, dict(zip(study.parties, parts, strict=True)), source)
