"""Phase 1 by halves: the sum that the structure is taken from also says whether one is wanted.

A network costs its owners noise, whether its attributes depend or not. So phase 1 counts, for all
pairs, the rows in which both attributes are in the same half (`Agreements` of subn+): the dimmest
and cheapest sum that shows every pair. If it shows no dependence, a structure chosen from it would
be a structure of noise. Then all of the budget that is left buys margins, and the release is that
of independent blocks of columns, which are no worse than the histograms of `floor`.

Everything here follows from published sums, in integers and fractions: curator and parties come to
the same steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from common.methods import floor
from common.methods.designs.nocd import Pair
from common.methods.dp_subn.estimation import NoisyTable
from common.methods.dp_subn.information import on_grid
from common.methods.subn_plus.dependence import Departure, depends
from common.methods.subn_plus.facts import PublicFacts, margin_blocks
from common.methods.subn_plus.requests import GroupedTables
from common.methods.subn_plus.sums import (
    Tables,
    agreements,
    every_value,
    margins_alone,
    one_way,
    tables_of,
)
from common.privacy.noise_law import NoiseLaw
from common.study.document import Study
from common.study.script import Fit, Script

FIRST_MARGINS = Fraction(3, 11)  # of the look: they say where its halves are cut


def as_floor(study: Study) -> Study:
    """Return a study with the settings of single columns, which are none."""
    return replace(study, method=floor.METHOD.name, settings=(), method_version=0, signature=None)


def facts_of(study: Study) -> PublicFacts:
    return PublicFacts.of(as_floor(study))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What phase 1 shows of every pair.

    Attributes:
        cost: of the look.
        margins: the first, noisy margins, in blocks.
        pairs: how far each pair is from independence.
        law: of the noise in them.
    """

    facts: PublicFacts
    cost: Fraction
    margins: Tables
    pairs: Mapping[Pair, Departure]
    law: NoiseLaw

    @property
    def sees_dependence(self) -> bool:
        return depends(self.pairs, self.facts.rows, self.law)

    @property
    def information(self) -> NDArray[np.float64]:
        """The symmetric matrix of the pairs' squared departures, in place of mutual information."""
        width = len(self.facts.sizes)
        matrix = np.zeros((width, width))
        for (a, b), pair in self.pairs.items():
            matrix[a, b] = matrix[b, a] = max(float(pair.squares / self.facts.rows**2), 0.0)
        return on_grid(matrix)

    @property
    def measured(self) -> list[NoisyTable]:
        """The margins, to be combined with the network's tables."""
        tables = self.margins
        return [
            NoisyTable(variables=block, table=table, variance=self.facts.variance(law))
            for block, table, law in zip(
                tables.request.sets, tables.tables, tables.laws, strict=True
            )
        ]

    def independent_columns(self, *, reserve: Fraction) -> Script[Fit]:
        """Spend all that is left on the margins, but for the reserve."""
        cost = self.facts.budget - self.cost - reserve
        return (yield from margins_alone(self.facts, "margins", cost, self.margins))


def look(facts: PublicFacts, cost: Fraction) -> Script[Look]:
    """Ask for first margins, and for the agreement of halves that these cut."""
    blocks = GroupedTables(margin_blocks(facts), every_value(facts))
    margins = yield from tables_of(facts, "first margins", cost * FIRST_MARGINS, blocks)
    rest = cost * (1 - FIRST_MARGINS)
    agreed = yield from agreements(facts, rest, one_way(margins), alone=True)
    weights = agreed.request.weights(agreed.agreed, facts.rows)
    pairs = agreed.departures(facts, weights)
    return Look(facts=facts, cost=cost, margins=margins, pairs=pairs, law=agreed.law)
