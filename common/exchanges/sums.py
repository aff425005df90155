"""A noisy sum over some parties: each counts its rows, and only the total is learnt.

How the vectors are added up follows from the study: in the clear or under masks (`masked`), under
masks that do without parties (`recoverable`), or in a ring of ciphertexts (`ring`).

What each adversary learns, or can do:

- The curator: the noisy sum. Everything else it sees is sealed or, in masked mode, uniform.
- One party: nothing. If the sum is published, a party can subtract the share it drew: with
  one-share noise it then has the exact sum in one case of K; with distributed noise the shares of
  the others, at least one whole discrete Laplace, stay.
- Curator and parties together, with masks: the total of the others, with the others' noise. For any
  number of them in a sum of up to 33 parties, for up to max(t, 31) in a larger one
  (`common.crypto.sums.masks`). With one-share noise that noise is there only if the share used is
  one of theirs.
- A curator that selects no share, E(0) everywhere, or another one for each party: one-share:
  detected, the selector's proof fails or neighbours cannot read each other
  (`common.crypto.sums.one_share` says what it takes for granted); distributed and masked: harmless,
  it has no say.
- A party that sends garbage: refused where it is no ciphertext or does not decode, otherwise a
  wrong sum. No side learns more from it; a sum is as right as its parties are honest.

Each sum that is run is a release: a curator may claim that a finished one has failed. So a party
that runs a sum again charges the budget again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.crypto.paillier.keys import PublicKey
from common.crypto.sums.plan import Aggregation, SumPlan, framed_law
from common.errors import InputError, LocalError, RemoteProtocolError
from common.exchanges import masked, recoverable, ring
from common.privacy.noise_law import NoiseLaw
from common.privacy.randomness import RandomSource
from common.privacy.sensitivity import Sensitivity
from common.schema.limits import MOST_STEP_CELLS
from common.study.document import Study
from common.study.history import NO_HISTORY
from common.study.requests import Request, read_cells
from common.study.sides import CuratorSide, PartySide
from common.study.steps import (
    Exchange,
    OnePlace,
    Result,
    Step,
    StepAtCurator,
    StepAtParty,
    StepContext,
)


def sum_step(
    *,
    name: str,
    phase: str,
    parties: tuple[str, ...],
    request: Request,
    sensitivity: Sensitivity,
    law: NoiseLaw,
) -> Step:
    """Return a step that asks some parties, in ring order, for a noisy sum.

    The sensitivity is that of the whole vector when one row is replaced, the law that of the noise
    in the sum.
    """
    return Step(
        name=name,
        phase=phase,
        parties=parties,
        exchange=NoisySum(),
        mechanism=f"{law.name} on a secure sum",
        request=request,
        law=law,
        sensitivity=sensitivity,
    )


class AddedUp(Exchange):
    """What every exchange has in common that adds up one vector of each party."""

    @abstractmethod
    def plan(
        self, context: StepContext, public_key: PublicKey | None, *, keyless: bool = False
    ) -> SumPlan:
        """Derive the secure sum; the number of the step is in it, so no sum is ever run twice.

        A keyless plan is for bounds and noise only, which do not depend on the key of a ring.
        """

    @abstractmethod
    def vector(self, context: StepAtParty) -> NDArray[np.int64]:
        """Return what a party adds, shape (cells,); its noise is added where the plan has a law."""

    def party(self, context: StepAtParty) -> PartySide:
        key = context.memory.state.get(ring.RingKey)
        plan = self.plan(context, None if key is None else key.public)
        if plan.may_miss:
            return recoverable.RecoveringParty(plan, context, self.vector)
        if plan.aggregation is Aggregation.PAILLIER:
            return ring.RingParty(plan, context, self.vector(context))
        return masked.MaskedParty(plan, context, self.vector(context))

    def curator(self, context: StepAtCurator) -> CuratorSide:
        key = context.private_key
        plan = self.plan(context, None if key is None else key.public_key)
        if plan.may_miss:
            return recoverable.RecoveringCurator(plan, context)
        if plan.aggregation is Aggregation.PAILLIER:
            return ring.RingCurator(plan, context)
        return masked.MaskedCurator(plan)

    def without_rows(self, step: Step, source: RandomSource) -> Result:
        return np.zeros(step.cells, np.int64)

    def read(self, step: Step, study: Study, data: bytes) -> Result:
        """Read the published result.

        A value that no honest parties' contributions can add up to is a RemoteProtocolError. So no
        later step has to fear what it computes from it.
        """
        total, bound = read_cells(data, step.cells), bounds_of(study, step).total_bound
        if int(total.min()) < -bound or int(total.max()) > bound:
            raise RemoteProtocolError(
                f"the result of step {step.name!r} has a value outside +-{bound}: it is no sum of "
                "honest contributions"
            )
        return total

    def check(self, step: Step, result: Result) -> None:
        if isinstance(result, bytes) or result.shape != (step.cells,):
            shape = "bytes" if isinstance(result, bytes) else result.shape
            raise LocalError(f"step {step.name!r} has {step.cells} cells, its result {shape}")

    def check_size(self, step: Step) -> None:
        if step.cells > MOST_STEP_CELLS:
            raise InputError(
                f"step {step.name!r}: it asks for {step.cells:,} integers at once, at most "
                f"{MOST_STEP_CELLS:,} can be sent. Give attributes fewer values, or use method "
                "subn+"
            )


@dataclass(frozen=True)
class NoisySum(AddedUp):
    """The counts of all parties of the step, under the noise of the step's law."""

    counts_all = True

    def canonical(self, step: Step) -> bytes:
        moved = _sensitivity(step)
        return frame(
            (
                "sum",
                step.name,
                frame(step.parties),
                step.counted.canonical,
                frame(moved.l1.as_integer_ratio()),
                frame(moved.l2_squared.as_integer_ratio()),
                framed_law(step.noise_law),
            )
        )

    def plan(
        self, context: StepContext, public_key: PublicKey | None, *, keyless: bool = False
    ) -> SumPlan:
        study, step = context.study, context.step
        parties = len(step.parties)
        may_miss = max(0, study.may_miss - len(study.members) + parties)
        return SumPlan(
            study=study.digest,
            step=context.number,
            context=context.digest,
            parties=step.parties,
            cells=step.cells,
            aggregation=aggregation_of(study, keyless=keyless),
            public_key=public_key,
            zero_sum_masks=study.profile == "sound",
            limits=tuple(step.counted.limit(study.rows_of[name]) for name in step.parties),
            noise=study.noise,
            law=step.noise_law,
            colluders=min(study.colluders, parties - 1),
            may_miss=may_miss,
            hybrid=bool(study.agreement and may_miss),
        )

    def vector(self, context: StepAtParty) -> NDArray[np.int64]:
        return context.step.counted.answer(context.data)

    def in_one_place(self, step: Step, place: OnePlace) -> Result:
        exact = step.counted.answer(place.rows(*step.parties))
        return exact + place.noise(step, bounds_of(place.study, step))

    def owners_with(self, step: Step, party: str) -> int:
        return len(step.parties)

    def without(self, step: Step, missing: Collection[str]) -> Step:
        if set(step.parties).isdisjoint(missing):
            return step
        return replace(step, parties=tuple(name for name in step.parties if name not in missing))

    def of_people(self, step: Step, rows: int) -> Step:
        return replace(step, sensitivity=_sensitivity(step).of_rows(rows))

    def answers(self, context: StepContext) -> Counter[str]:
        plan = self.plan(context, None)
        return recoverable.answers(plan) if plan.may_miss else masked.answers(plan)


def bounds_of(study: Study, step: Step) -> SumPlan:
    """Return a keyless plan of a step's sum, for its bounds and its noise."""
    exchange = step.exchange
    if not isinstance(exchange, AddedUp):
        raise LocalError(f"step {step.name!r} is not a sum")
    context = StepContext(study=study, number=0, step=step, history=NO_HISTORY)
    return exchange.plan(context, None, keyless=True)


def aggregation_of(study: Study, *, keyless: bool) -> Aggregation:
    """Return how a study adds up; in the clear where a ring would need its key."""
    ring_only = study.aggregation is Aggregation.PAILLIER
    return Aggregation.CLEAR if keyless and ring_only else study.aggregation


def in_the_clear(study: Study) -> Study:
    """Return the unsigned study whose sums are added up openly, by every party: without a key."""
    clear = Aggregation.CLEAR
    return replace(study, aggregation=clear, agreement="", may_miss=0, signature=None)


def _sensitivity(step: Step) -> Sensitivity:
    if step.sensitivity is None:
        raise LocalError(f"step {step.name!r}: only a sum has a sensitivity")
    return step.sensitivity
