"""A study's script, run again on the results in a release: they lead to its steps and its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from common.errors import InputError, RemoteProtocolError
from common.methods.registry import run_of
from common.release.prior import PriorRelease
from common.study.document import Study
from common.study.history import NO_HISTORY
from common.study.script import ScriptRun
from common.study.steps import ChoiceStep
from common.study.sums import decode_total, in_the_clear, sum_plan_of
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
    # The bounds of a sum do not depend on how it is added up; in the clear it needs no key. That
    # variant of the study has no signature.
    bounds = in_the_clear(study)
    run = run_of(study) if prior is None else prior.begin(study)
    for number, result in enumerate(results):
        run.leave_out([name for name, first in missing.items() if first <= number])
        step = run.step()
        if step is None:
            raise InputError(
                f"expected the results of {many(number, 'step')}, found {len(results)}"
            )
        if isinstance(step, ChoiceStep):
            run.advance(result)
        else:
            plan = sum_plan_of(bounds, number, step, None, history=NO_HISTORY)
            run.advance(decode_total(plan, result))
    if run.step() is not None:
        raise InputError(f"found {many(len(results), 'result')}, and the study has more steps")
    return run
