"""From a step of a study to the secure sum that answers it: the same on both sides."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from common.crypto.paillier.keys import PublicKey
from common.crypto.sums.masks import partners
from common.crypto.sums.plan import Aggregation, Noise, SumPlan
from common.errors import RemoteProtocolError
from common.study.document import Study
from common.study.history import HistoryDigest
from common.study.steps import ReplaceStep, SumStep, step_digest


def sum_plan_of(
    study: Study,
    number: int,
    step: SumStep | ReplaceStep,
    public_key: PublicKey | None,
    *,
    history: HistoryDigest,
) -> SumPlan:
    """Derive the secure sum of a step from the study and what was published under it.

    The step's number is in the plan, so no sum is ever run twice. The history is the digest of
    all that was published, as this side knows it.
    """
    plan = partial(
        SumPlan,
        study=study.digest,
        step=number,
        context=step_digest(history, number, step),
        parties=step.parties,
        cells=step.cells,
        aggregation=study.aggregation,
        public_key=public_key,
        zero_sum_masks=study.profile == "sound",
    )
    if isinstance(step, ReplaceStep):
        limits = step.release.limits(step.group)
        return plan(limits=tuple(limits.values()), noise=Noise.NONE)
    may_miss = max(0, study.may_miss - len(study.members) + len(step.parties))
    return plan(
        limits=tuple(step.request.limit(study.rows_of[name]) for name in step.parties),
        noise=study.noise,
        law=step.law,
        colluders=min(study.colluders, len(step.parties) - 1),
        may_miss=may_miss,
        hybrid=bool(study.agreement and may_miss),
    )


def with_hybrid_masks(study: Study) -> Study:
    """Return a new study with the stronger key agreement of masks, if it can have it."""
    return replace(study, agreement="hybrid", signature=None) if study.can_agree else study


def in_the_clear(study: Study) -> Study:
    """Return the unsigned study whose sums are added up openly, by every party: without a key."""
    clear = Aggregation.CLEAR
    return replace(study, aggregation=clear, agreement="", may_miss=0, signature=None)


def seed_partners(study: Study, name: str) -> tuple[list[str], list[str]]:
    """Return whose seeds of masks a party receives, and for whom it draws seeds, in order.

    They are its mask partners in every sum that the study can have: of all parties or of a cohort;
    of any two where the paper's noise replacement is run; of the parties that are left where some
    may go missing. Of two partners the earlier draws a seed, or both do where some may go missing.
    """
    place = study.parties.index(name)
    shared = _mask_partners(study, name)
    if study.may_miss:
        both = [other for other in study.parties if other in shared]
        return both, both
    return (
        [other for other in study.parties[:place] if other in shared],
        [other for other in study.parties[place + 1 :] if other in shared],
    )


def _mask_partners(study: Study, name: str) -> Collection[str]:
    parties, cohorts = study.parties, study.cohorts
    if study.profile != "sound":
        return parties
    bounds = [len(parties) * number // cohorts for number in range(cohorts + 1)]
    orders = [parties, *(parties[start:end] for start, end in pairwise(bounds))]
    return {
        order[place]
        for order in orders
        if name in order
        for place in partners(
            order.index(name),
            parties=len(order),
            colluders=min(study.colluders, len(order) - 1),
            may_miss=study.may_miss,
            in_later_sums=True,
        )
    }


def needs_key(study: Study) -> bool:
    """Return whether the curator must have a Paillier key for this study."""
    return study.aggregation is Aggregation.PAILLIER


def encode_result(result: NDArray[np.int64] | bytes) -> bytes:
    """Return a step's result as it is published.

    Every cell of a sum is a little-endian signed integer, as wide as the largest needs: each party
    receives each result, so in a study of many turns these are most of the bytes.
    """
    if isinstance(result, bytes):
        return result
    largest = max(int(result.max(initial=0)), -1 - int(result.min(initial=0)))
    width = largest.bit_length() // 8 + 1
    return result.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def read_cells(data: bytes, cells: int) -> NDArray[np.int64]:
    """Read a published sum; RemoteProtocolError if `encode_result` would write it otherwise."""
    width, rest = divmod(len(data), cells)
    if rest or not 1 <= width <= 8:
        raise RemoteProtocolError(f"a sum of {cells} cells has {len(data)} bytes")
    wide = np.zeros((cells, 8), np.uint8)
    wide[:, 8 - width :] = np.frombuffer(data, np.uint8).reshape(cells, width)
    total = np.asarray(wide.view("<i8")[:, 0] >> 8 * (8 - width), dtype=np.int64)
    if encode_result(total) != data:
        raise RemoteProtocolError(f"a sum of {cells} cells is not written as short as it can be")
    return total


def decode_total(plan: SumPlan, data: bytes) -> NDArray[np.int64]:
    """Read the published result of a sum.

    Raises:
        RemoteProtocolError: it does not have the sum's cells, or holds a value that no honest
            parties' contributions can add up to. So no later step has to fear what it
            computes from it.
    """
    total = read_cells(data, plan.cells)
    if int(total.min()) < -plan.total_bound or int(total.max()) > plan.total_bound:
        raise RemoteProtocolError(
            f"the result of step {plan.step} has a value outside +-{plan.total_bound}: it is no "
            "sum of honest contributions"
        )
    return total
