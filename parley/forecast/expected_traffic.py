"""How many bytes the steps of a study will move, by the rules that the roles follow.

Counted is what `transcript.json` counts: the content of messages. The network's own wrapping (TLS,
gRPC) comes on top, some percent of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from common.crypto.sums.plan import Noise
from common.crypto.two_party.computation import message_bytes
from common.study.document import Study
from common.study.messages import DIGEST_BYTES
from common.study.steps import ChoiceStep, JointChoiceStep, ReplaceStep, Step, SumStep
from common.study.sums import needs_key, sum_plan_of
from parley.forecast.unit_costs import UnitCosts

_WORDS_OF_A_STEP = 2 * DIGEST_BYTES  # the study's digest and the step's


@dataclass(slots=True)
class ExpectedTraffic:
    """Bytes by party and direction, and the units that each party works on."""

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Both directions, all parties."""
        return sum(self.sent.values()) + sum(self.received.values())


def expected_traffic(
    study: Study, steps: Sequence[Step], results: Sequence[bytes], costs: UnitCosts
) -> ExpectedTraffic:
    """What a study with these steps moves.

    Args:
        study: with its real parties and their real row counts.
        steps: as a run on stand-in rows made them.
        results: what was published in each; only their lengths matter.
        costs: of a unit.
    """
    traffic = ExpectedTraffic()
    names = [member.name for member in study.members]
    key_bytes = 0 if costs.public_key is None else len(costs.public_key.to_bytes())
    for name in names:
        traffic.received[name] += 2 * DIGEST_BYTES + key_bytes  # the study opens, and ends
    if needs_key(study) and study.noise is Noise.ONE_SHARE:
        for other in names[1:]:
            traffic.sent[names[0]] += DIGEST_BYTES + costs.seed_bytes + len(other)
            traffic.received[other] += DIGEST_BYTES + costs.seed_bytes + len(names[0])
    for number, (step, result) in enumerate(zip(steps, results, strict=True)):
        _add_step(traffic, study, number, step, len(result), costs)
    return traffic


def _add_step(
    traffic: ExpectedTraffic,
    study: Study,
    number: int,
    step: Step,
    published: int,
    costs: UnitCosts,
) -> None:
    if isinstance(step, ChoiceStep):
        opening = 0
        traffic.sent[step.party] += DIGEST_BYTES + published
        if isinstance(step, JointChoiceStep):
            _add_computation(traffic, step, costs)
    else:
        opening = _add_sum(traffic, study, number, step, costs)
    for member in study.members:
        traffic.received[member.name] += _WORDS_OF_A_STEP + opening + DIGEST_BYTES + published


def _add_computation(traffic: ExpectedTraffic, step: JointChoiceStep, costs: UnitCosts) -> None:
    """The sealed messages of a two-party computation, there and back and there."""
    ends = ((step.partner, step.party), (step.party, step.partner), (step.partner, step.party))
    for (sender, other), content in zip(ends, message_bytes(step.choice), strict=True):
        envelope = DIGEST_BYTES + costs.seed_bytes + content  # a seed is short
        traffic.sent[sender] += envelope + len(other)
        traffic.received[other] += envelope + len(sender)


def _add_sum(
    traffic: ExpectedTraffic,
    study: Study,
    number: int,
    step: SumStep | ReplaceStep,
    costs: UnitCosts,
) -> int:
    """The contributions of a sum; how long its opening is."""
    plan = sum_plan_of(study, number, step, costs.public_key, history=b"")
    lengths = [plan.cells_of(chunk) for chunk in range(plan.chunks)]
    chunks = [costs.units(plan, cells.stop - cells.start) for cells in lengths]
    for name in plan.parties:
        following, before = plan.successor(name), plan.predecessor(name)
        traffic.units[name] += sum(chunks)
        for units in chunks:
            payload = DIGEST_BYTES + costs.chunk_bytes + units * costs.unit_bytes
            traffic.sent[name] += payload
            if following is not None:
                traffic.sent[name] += costs.envelope_bytes + len(following)
            if before is not None:
                traffic.received[name] += payload + costs.envelope_bytes + len(before)
    return costs.opening_bytes * len(plan.parties) if plan.noise is Noise.ONE_SHARE else 0
