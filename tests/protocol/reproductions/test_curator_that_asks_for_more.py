"""A curator that asks a real method's party for more than the approved study implies."""

import dataclasses
from fractions import Fraction

import pytest

from common.errors import RemoteProtocolError
from common.methods.dp_subn.updates import PHASE as UPDATE
from common.methods.registry import run_of
from common.study.requests import TableRequest
from tests.harness.consortium import Consortium
from tests.harness.run_script import chain_tables, schema_of

NAMES = ("north", "east")


class Greedy:
    """The study's own plan, but for one step."""

    def __init__(self, study):
        self.plan = run_of(study)

    def step(self):
        step = self.plan.step()
        return self.other(step) if step is not None and step.phase == self.phase else step

    def step_without(self, missing):
        return self.step()

    def leave_out(self, missing):
        self.plan.leave_out(missing)

    @property
    def made(self):
        return self.plan.steps

    def advance(self, result):
        self.plan.advance(result)

    def model(self):
        return self.plan.model()


class UnapprovedMarginal(Greedy):
    """Another table in the place of a view, with no more cells than it."""

    phase = "correlations"

    def other(self, step):
        sets = (*step.request.sets[:-1], (0, 1))
        assert sets != step.request.sets
        return dataclasses.replace(step, request=TableRequest(sets, step.request.sizes))


class LargerFrontier(Greedy):
    """One more family in the search of the structure, at the scale of fewer."""

    phase = UPDATE

    def other(self, step):
        sets = step.request.sets
        spare = [(a, b) for a in range(4) for b in range(a + 1, 4) if (a, b) not in sets]
        more = spare[0] if spare else (0, 1, 2, 3)
        return dataclasses.replace(step, request=TableRequest((*sets, more), step.request.sizes))


class SmallerScale(Greedy):
    """The frontier with a little less noise."""

    phase = UPDATE

    def other(self, step):
        return dataclasses.replace(step, law=step.law.times(Fraction(99, 100)))


class RepeatedPhase(Greedy):
    """The views a second time, in the place of the search."""

    phase = UPDATE
    views = None

    def step(self):
        step = self.plan.step()
        if step is not None and step.phase == "correlations":
            self.views = step
        return super().step()

    def other(self, step):
        return self.views


class TruerChoice(Greedy):
    """A choice drawn with more of the budget than the study gives it."""

    phase = "initial structure"

    def other(self, step):
        own = step.exchange.choice
        choice = dataclasses.replace(own, epsilon=2 * own.epsilon)
        return dataclasses.replace(step, exchange=dataclasses.replace(step.exchange, choice=choice))


@pytest.mark.parametrize(
    "plan", [UnapprovedMarginal, LargerFrontier, SmallerScale, RepeatedPhase, TruerChoice]
)
def test_it_gets_no_answer_and_the_step_costs_nothing(tmp_path, plan):
    tables = dict(zip(NAMES, chain_tables(4, [300, 300]).values(), strict=True))
    consortium = Consortium(
        tmp_path, NAMES, tables=tables, schema=schema_of([2] * 4), method="dp-subn",
        epsilon=Fraction(8),
    )  # fmt: skip
    consortium.curator.begin = plan
    for party in consortium.parties.values():
        party.begin = run_of
    consortium.curator.start()
    try:
        consortium.curator.studies.propose(consortium.study)
        with pytest.raises(RemoteProtocolError, match="is not what the approved study"):
            consortium.attend_all()
    finally:
        consortium.curator.stop()
    for party in consortium.parties.values():
        with party.context() as context:
            charged = [entry.charge.step for entry in context.ledger.entries()]
            assert not any(plan.phase in step for step in charged)
            left = [departure.kind for departure in context.journal.sent_log()]
            answered = [kind for kind in left if kind != "PartyRefused"]
            assert len(answered) == len(charged), "only what was charged was answered"
