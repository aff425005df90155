"""A study's script, run again on the results in a release: they lead to its steps and its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from common.errors import InputError, RemoteProtocolError
from common.methods.registry import run_of
from common.release.prior import PriorRelease
from common.study.document import Study
from common.study.script import ScriptRun, drive
from common.study.steps import Result, Step
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
    unread = iter(results)

    def published(step: Step) -> Result:
        data = next(unread, None)
        if data is None:
            raise InputError(f"found {many(len(results), 'result')}, and the study has more steps")
        return step.read(study, data)

    drive(run, published, missing)
    if next(unread, None) is not None:
        number = len(run.made)
        raise InputError(f"expected the results of {many(number, 'step')}, found {len(results)}")
    return run
