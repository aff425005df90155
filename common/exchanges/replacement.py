"""One group of a party's turn in noise replacement [Su16, section VI-A].

The holder of the older shares takes them out, the party whose turn it is puts its counts and its
own shares in; both vectors carry their noise, so the sum itself adds none. The cost falls on every
party whose rows the marginals can cover, not only on those who contribute.

Which parties a marginal covers depends on earlier results, and a sum of costs that depend on
results bounds nothing. So the step costs every party that had a turn as much as if all its
marginals covered that party; `realised` has what the marginals of this run make of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.crypto.paillier.keys import PublicKey
from common.crypto.sums.plan import Noise, SumPlan, framed_law
from common.crypto.sums.replacement import Group, Marginal, PartyTurn, ShareKeeper
from common.exchanges.sums import AddedUp, aggregation_of
from common.privacy.randomness import RandomSource
from common.privacy.sensitivity import histograms
from common.study.requests import Counts, PartyRows, TableRequest, TableShape, rows_in_bits
from common.study.sides import ExchangeState
from common.study.steps import OnePlace, Result, Step, StepAtParty, StepContext


def replacement_step(
    *,
    name: str,
    phase: str,
    turn: PartyTurn,
    group: Group,
    request: TableRequest,
    turns: tuple[str, ...],
) -> Step:
    """Return the step of one group of a party's turn.

    The request is for the tables of the group; `turns` are the parties that had a turn, this one
    last.
    """
    law, moved = turn.law, histograms(len(group.marginals))
    coverages = turn.coverages.by_marginal
    covering = Counter(
        party for marginal in group.marginals for party in coverages[marginal].parties
    )
    return Step(
        name=name,
        phase=phase,
        parties=tuple(turn.limits(group)),  # the holder of older shares comes first
        exchange=Replacement(turn, group, request),
        mechanism=f"{law.name} with noise replacement",
        request=request,
        law=law,
        sensitivity=moved,
        payers=turns,
        # [Su16, Theorem 5]: a turn costs its party, and no other.
        claimed={turn.party: law.cost(moved)},
        realised={party: law.cost(histograms(count)) for party, count in covering.items()},
    )


@dataclass
class _Waiting:
    """The vectors of this party's turn that its later groups ask for. Secret."""

    vectors: list[NDArray[np.int64]]


@dataclass(frozen=True)
class Replacement(AddedUp):
    """A sum of the counts of the party whose turn it is, with its share for an older one."""

    turn: PartyTurn  # of one party, with all its groups
    group: Group  # the marginals that are summed in this step
    request: TableRequest  # for their tables

    def canonical(self, step: Step) -> bytes:
        return frame(
            (
                "replacement",
                step.name,
                frame(step.parties),
                self.request.canonical,
                framed_law(self.turn.law),
            )
        )

    def plan(
        self, context: StepContext, public_key: PublicKey | None, *, keyless: bool = False
    ) -> SumPlan:
        study = context.study
        return SumPlan(
            study=study.digest,
            step=context.number,
            context=context.digest,
            parties=context.step.parties,
            cells=context.step.cells,
            aggregation=aggregation_of(study, keyless=keyless),
            public_key=public_key,
            zero_sum_masks=study.profile == "sound",
            limits=tuple(self.turn.limits(self.group).values()),
            noise=Noise.NONE,
        )

    def vector(self, context: StepAtParty) -> NDArray[np.int64]:
        return self._vector(context.name, context.memory.state, context.data, context.source)

    def in_one_place(self, step: Step, place: OnePlace) -> Result:
        total = np.zeros(self.group.cells, np.int64)
        for name in (self.turn.party, self.group.holder):
            if name is not None:
                memory = place.states.setdefault(name, ExchangeState())
                total = total + self._vector(name, memory, place.rows(name), place.source)
        return total

    def _vector(
        self, name: str, memory: ExchangeState, data: PartyRows, source: RandomSource
    ) -> NDArray[np.int64]:
        """Return our counts with fresh shares on our own turn; else the shares that we give up."""
        keeper = memory.get(ShareKeeper) or ShareKeeper(name)
        memory.keep(keeper)
        if self.turn.party != name:
            return keeper.hand_over(self.group)
        waiting = memory.get(_Waiting)
        if waiting is None or self.group is self.turn.groups[0]:
            waiting = _Waiting(keeper.answer(self.turn, self.counts(data), source))
            memory.keep(waiting)
        return waiting.vectors.pop(0)

    def counts(self, data: PartyRows) -> dict[Marginal, Counts]:
        """Count the tables of the whole turn, exactly, for its party."""
        marginals = [marginal for group in self.turn.groups for marginal in group.marginals]
        rows = rows_in_bits(data) if self.request.in_bits else data
        return dict(zip(marginals, rows.count(marginals), strict=True))

    def owners_with(self, step: Step, party: str) -> int:
        """Return 1 for the party whose turn it is: the holder of older shares adds noise only."""
        return int(party == self.turn.party)

    def covered(self, step: Step, table: TableShape) -> Collection[str]:
        return self.turn.coverages.by_marginal[tuple(table.variables)].parties
