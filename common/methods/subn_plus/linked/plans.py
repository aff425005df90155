"""What subn+ asks of people and their events, from public facts alone.

How many groups, and whether pairs or consecutive events are asked for at all, follows from the
noise that public facts forecast. Where even two groups would show little but noise, the margins get
the budget. The kinds of pairs have shares of the budget by their numbers of tables. What analyses
need is measured first, as in a single table (`common.methods.subn_plus.declared`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb

from common.errors import InputError
from common.methods.subn_plus.declared import MARGINS as DECLARED_MARGINS
from common.methods.subn_plus.declared import (
    DeclaredTables,
    clearest_others,
    declared_sets,
    tables_for,
)
from common.methods.subn_plus.facts import PublicFacts, ordered_values, pair_groups, spans_of
from common.methods.subn_plus.requests import Groups
from common.privacy import sensitivity
from common.study.document import Study

PEOPLE, BOTH, EVENTS = "pairs", "pairs with events", "pairs of events"  # kinds of tables
NEXT = "next events"
MARGIN_NOISE = 0.02  # forecast of a margin, as a total variation distance
# Of the budget, if pairs are asked for: the least by which margins are as clear as that.
MARGINS = (Fraction(1, 10), Fraction(3, 20), Fraction(1, 5), Fraction(3, 10), Fraction(2, 5))
NOISE = 1.0  # forecast of a table of pairs, as a total variation distance: groups become fewer
WORTHLESS = 0.12  # the same for two groups of each column: above, pairs are not asked for
MOST_GROUPS = 32  # of a column


@dataclass(frozen=True)
class LinkedFacts:
    """What is public before the first sum: the facts of people, and the events' part."""

    people: PublicFacts
    sizes: tuple[int, ...]  # of the events' attributes
    ordered: tuple[int, ...]  # of each of them, how many of its first values are in an order
    most: int
    spans: tuple[Groups, ...] = ()  # of each of them, how wide the bins are: `PublicFacts.spans`

    @classmethod
    def of(cls, study: Study) -> LinkedFacts:
        """Return the facts of a study; InputError if it asks for what linked tables do not have."""
        events = study.schema.events
        refused = {
            "rows_per_person": study.rows_per_person,
            "criterion": study.criteria,
            "prior": study.prior,
        }
        for key, value in refused.items():
            if value:
                raise InputError(
                    f"{key}: it is not there for schemas with [events], whose promise is to a "
                    "person with all of her events. Leave it out"
                )
        if events is None:
            raise InputError("schema: it has no [events]")
        return cls(
            PublicFacts.of(study),
            study.schema.of_events.sizes,
            tuple(map(ordered_values, events.attributes)),
            events.most,
            tuple(map(spans_of, events.attributes)),
        )

    @property
    def width(self) -> int:
        """How many columns a person has: her attributes, and her number of events."""
        return len(self.people.sizes) + 1

    @property
    def every_size(self) -> tuple[int, ...]:
        """The sizes of all variables."""
        return (*self.people.sizes, self.most + 1, *self.sizes)

    @property
    def every_order(self) -> tuple[int, ...]:
        """Of all variables, how many of their first values are in an order."""
        alone = self.people.ordered or (0,) * len(self.people.sizes)
        return (*alone, self.most + 1, *self.ordered)

    @property
    def every(self) -> PublicFacts:
        """The facts of all variables, as if they were the attributes of a single table."""
        people = self.people
        alone = people.spans or ((),) * len(people.sizes)
        return replace(
            people,
            sizes=self.every_size,
            ordered=self.every_order,
            spans=(*alone, (), *(self.spans or ((),) * len(self.sizes))),
            events=self.width,
        )

    def with_budget(self, left: Fraction) -> LinkedFacts:
        """Return the facts with so much of the budget."""
        people = replace(self.people, promise=replace(self.people.promise, left=left))
        return replace(self, people=people)


@dataclass(frozen=True, slots=True)
class Budget:
    """The cost of the margins and of each kind of tables, and the groups of their columns.

    A kind that is not asked for is not among the costs.
    """

    margins: Fraction
    costs: Mapping[str, Fraction]
    pair_groups: int = 1
    next_groups: int = 1
    declared: Fraction = Fraction(0)  # what analyses need


def kinds_of(facts: LinkedFacts) -> dict[str, int]:
    """Return how many tables of each kind there are, by the names of their steps."""
    alone, events = len(facts.people.sizes), len(facts.sizes)
    kinds = {
        PEOPLE: comb(alone, 2),
        BOTH: alone + facts.width * events,  # the number of events is seen with people, too
        EVENTS: comb(events, 2),
        NEXT: events**2 if facts.most > 1 else 0,
    }
    return {name: tables for name, tables in kinds.items() if tables}


def decide_budget(facts: LinkedFacts) -> Budget:
    """Forecast, from public facts, what can be seen; what analyses need comes first."""
    return declared_budget(facts)[0]


def declared_budget(facts: LinkedFacts) -> tuple[Budget, DeclaredTables | None]:
    """Return the budget, and what of it is for the analyses: the plan of `subn_plus.declared`."""
    every = facts.every
    if not declared_sets(every):
        return undeclared_budget(facts), None
    whole, share = facts.people.budget, min(_margin_fraction(facts), DECLARED_MARGINS)

    def trial(others: Fraction) -> tuple[Budget, DeclaredTables, bool]:
        cost = whole * (1 - share) * (1 - others)
        left = facts.with_budget(whole - cost)
        rest = undeclared_budget(left) if others else margins_only(left)
        tables = replace(tables_for(every, cost), others=others)
        return replace(rest, declared=cost), tables, bool(rest.costs)

    if every.others is not None:
        return trial(every.others)[:2]
    return clearest_others(every, trial)


def undeclared_budget(facts: LinkedFacts) -> Budget:
    """Divide the budget among margins and pairs; without pairs all goes to the margins.

    Every kind of tables is worth the same. The noise of T tables at a fraction x of the budget is
    sqrt(T / x) in the L2 norm and T / x in the L1 norm, so its sum over kinds is least where x
    grows with the cube root of T, or with the square root.
    """
    whole, kinds, share = facts.people.budget, kinds_of(facts), _margin_fraction(facts)
    left = (1 - share) * whole
    if NEXT in kinds and _noise(facts, _costs(facts, kinds, left)[NEXT], kinds[NEXT]) > WORTHLESS:
        del kinds[NEXT]
    costs = _costs(facts, kinds, left)
    if _noise(facts, costs[BOTH], kinds[BOTH]) > WORTHLESS:
        return margins_only(facts)
    groups = {
        kind: min(pair_groups(facts.people, costs[kind], kinds[kind], NOISE), MOST_GROUPS)
        for kind in (BOTH, NEXT)
        if kind in costs
    }
    return Budget(share * whole, costs, groups[BOTH], groups.get(NEXT, 1))


def _margin_fraction(facts: LinkedFacts) -> Fraction:
    """Return the margins' part of the budget, if pairs are asked for."""
    sizes = facts.every_size
    for share in MARGINS:
        moved = sensitivity.histograms(len(sizes))
        noise = facts.people.absolute(share * facts.people.budget, moved) / (2 * facts.people.rows)
        if noise * sum(sizes) / len(sizes) <= MARGIN_NOISE:
            return share
    return MARGINS[-1]


def _costs(facts: LinkedFacts, kinds: Mapping[str, int], left: Fraction) -> dict[str, Fraction]:
    """Divide what margins leave among kinds of tables."""
    degree = facts.people.norm + 1
    roots = {name: _root(tables, degree) for name, tables in kinds.items()}
    return {name: left * Fraction(root, sum(roots.values())) for name, root in roots.items()}


def _root(number: int, degree: int) -> int:
    """Return a thousand times the root of a number, rounded down."""
    most = number * 1000**degree
    return bisect_right(range(1000 * number + 1), most, key=lambda root: root**degree) - 1


def _noise(facts: LinkedFacts, cost: Fraction, tables: int) -> float:
    """Forecast the noise in a table of two times two groups, as a total variation distance."""
    return 2 * facts.people.deviation(cost, sensitivity.histograms(tables)) / facts.people.rows


def margins_only(facts: LinkedFacts) -> Budget:
    """Leave all of the budget to the margins: columns that have nothing to do with each other."""
    return Budget(facts.people.budget, {})


def clearest_linked(study: Study) -> Study:
    """Return a new study under pure epsilon, if that is forecast to show more than its delta does.

    `common.methods.subn_plus.plans` has the reason.
    """
    pure = replace(study, delta=Fraction(0))
    one, other = (_clearness(LinkedFacts.of(own)) for own in (study, pure))
    return pure if study.delta and other < one else study


def _clearness(facts: LinkedFacts) -> tuple[bool, float]:
    """Return whether there are only margins, and the noise of the tables that show most."""
    budget = decide_budget(facts)
    if not budget.costs:
        return True, _noise(facts, budget.margins, len(facts.every_size))
    return False, _noise(facts, budget.costs[BOTH], kinds_of(facts)[BOTH])
