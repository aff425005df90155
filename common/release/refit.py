"""A study's script run again: on its published results, or on rows drawn from its model.

The results lead to the steps and the model that were released. To see how far a release scatters,
rows drawn from the released model are dealt out to the parties, every sum is counted and gets fresh
noise of its law, and the script goes on to its model. The script, the requests, the mechanisms and
the noise are those of the study; only the cryptography, which changes no sum, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from common.errors import InputError, LocalError, RemoteProtocolError
from common.methods.registry import run_of
from common.privacy.randomness import RandomSource
from common.release.prior import PriorRelease
from common.schema import Codes
from common.study.document import Study
from common.study.prior import Prior
from common.study.script import ScriptRun, drive
from common.study.steps import Model, OnePlace, Result, Step
from common.wording import many


def replay(
    study: Study,
    results: Sequence[bytes],
    missing: Mapping[str, int] = MappingProxyType({}),
    prior: PriorRelease | None = None,
) -> ScriptRun:
    """Run the study's script to its last step: it has every step, and can fit the model.

    `missing` has, for each party that went missing, the first step without it. Raise InputError
    if the results are not those of this study.
    """
    try:
        return _replay(study, results, missing, prior)
    except RemoteProtocolError as error:  # as from a peer, but a file has it
        raise InputError(f"the results are not those of study {study.name!r}: {error}") from error


def _replay(
    study: Study,
    results: Sequence[bytes],
    missing: Mapping[str, int],
    prior: PriorRelease | None,
) -> ScriptRun:
    run = run_of(study) if prior is None else prior.begin(study)
    left = iter(results)

    def published(step: Step) -> Result:
        data = next(left, None)
        if data is None:
            raise InputError(f"found {many(len(results), 'result')}, and the study has more steps")
        return step.read(study, data)

    drive(run, published, missing)
    if next(left, None) is not None:
        number = len(run.made)
        raise InputError(f"expected the results of {many(number, 'step')}, found {len(results)}")
    return run


def refit_study(
    study: Study,
    rows: Codes,
    source: RandomSource,
    missing: Mapping[str, int] = MappingProxyType({}),
    prior: Prior | None = None,
) -> Model:
    """Take the study's script to its model on these rows, dealt out to the parties in their order.

    Parties go `missing` as they did, each before a step.
    """
    if rows.rows != study.rows:
        raise LocalError(f"the study has {study.rows} rows, not {rows.rows}")
    place = dealt_out(study, rows, source)

    def answer(step: Step) -> Result:
        if step.request is not None and not step.request.shown:
            return np.zeros(step.cells, np.int64)  # criteria: nothing of the model follows
        return place.answer(step)

    return drive(run_of(study, prior), answer, missing).model()


def dealt_out(study: Study, rows: Codes, source: RandomSource) -> OnePlace:
    """Deal rows out to the parties of a study, in their order."""
    ends = np.cumsum([0, *study.rows_of.values()]).tolist()
    parts = [rows.take(slice(start, end)) for start, end in pairwise(ends)]
    return OnePlace(study, dict(zip(study.parties, parts, strict=True)), source)
