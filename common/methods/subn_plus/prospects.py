"""What subn+ tells of a study before anything is spent: its analyses' intervals, and what helps.

An interval's forecast is the `reach` of the analysis' sets (`declared`), which is in units of
deviations: of a correlation, of a column, of a proportion (whose deviation is at most a half).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import inf, sqrt
from typing import TypeAlias, TypeVar

from common.methods.subn_plus import facts as settings
from common.methods.subn_plus import plans
from common.methods.subn_plus.declared import (
    DECLARED,
    SINGLE,
    DeclaredTables,
    declared_plan,
    of_margin,
    of_views,
)
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.linked.plans import LinkedFacts, declared_budget
from common.methods.subn_plus.plans import Ask, Plan
from common.study.document import Study
from common.study.method import Prospect, PublicDecision
from common.study.requests import Attributes

_T = TypeVar("_T")
Planned: TypeAlias = tuple[PublicFacts, Plan, DeclaredTables | None]
Planner: TypeAlias = Callable[[Study], Planned]
_WITH_DELTA = "delta: with a delta of 1e-9 in place of 0,"
DELTA = Fraction(1, 10**9)  # that is advised where it helps
BETTER = 0.8  # times the forecast without it, from which on it is worth to say so
_UNITS = {
    "relation": ("a correlation", 1.0),
    "mean": ("a mean, in deviations of its column", 1.0),
    "share": ("a proportion", 0.5),
    "regression": ("a coefficient, in deviations of its columns", 1.0),
    "survival": ("a proportion", 0.5),
}


@dataclass(frozen=True)
class Prospects:
    """What a method tells of a study beforehand: its public facts, and the plan they lead to."""

    plan: Planner

    def of(self, study: Study) -> list[Prospect]:
        """Forecast the interval of each analysis of a study."""
        if not study.analyses:
            return []
        facts, plan, declared = self.plan(study)
        prospects = []
        for analysis in study.analyses:
            by = tuple(study.schema.joined.position(name) for name in analysis.by)
            sets = analysis.sets(study.schema)
            unit, scale = _UNITS[analysis.kind]
            within = min(
                1.0, scale * max(_reach(facts, plan, declared, columns, by) for columns in sets)
            )
            prospects.append(Prospect(analysis.words, within, unit, _how(sets, declared)))
        return prospects

    def decisions(self, study: Study) -> list[PublicDecision]:
        """Tell what is measured for the analyses."""
        return [PublicDecision(prospect.analysis, prospect.words) for prospect in self.of(study)]

    def widest(self, study: Study) -> float:
        """Forecast the widest of the intervals of a study's analyses, in deviations."""
        return max(prospect.within for prospect in self.of(study))

    def advice(self, study: Study) -> list[str]:
        """Say so where a small delta is forecast to make analyses clearer by a fifth or more."""
        if not study.analyses or not could_have_delta(study):
            return []
        now, then = self.widest(study), self.widest(replace(study, delta=DELTA, signature=None))
        words = f"the widest interval of an analysis is forecast at +-{then:.2g}, not +-{now:.2g}"
        return [f"{_WITH_DELTA} {words}"] if then <= BETTER * now else []

    def clearest(self, study: Study) -> Study:
        """Return a new study under pure epsilon, if that is forecast to make analyses clearer."""
        if not study.analyses or not study.delta or study.criteria:
            return study
        pure = replace(study, delta=Fraction(0))
        return pure if self.widest(pure) < self.widest(study) else study

    def halving(self, study: Study) -> list[tuple[Fraction | None, int | None]]:
        """Return, for each analysis, the epsilon and the rows that would halve its interval.

        None where nothing up to 64 times as large would. Other pairs keep their part.
        """
        _, _, declared = self.plan(study)
        if declared is not None and declared.others is not None:
            study = replace(study, others=declared.others, signature=None)
        goals = [prospect.within / 2 for prospect in self.of(study)]
        epsilons: list[Fraction | None] = [None] * len(goals)
        rows: list[int | None] = [None] * len(goals)
        for factor in _FACTORS:
            dearer = replace(study, epsilon=study.epsilon * factor, signature=None)
            members = tuple(replace(m, rows=int(m.rows * factor)) for m in study.members)
            larger = replace(study, members=members, signature=None)
            _note(epsilons, goals, self.of(dearer), dearer.epsilon)
            _note(rows, goals, self.of(larger), larger.rows)
        return list(zip(epsilons, rows, strict=True))


def could_have_delta(study: Study) -> bool:
    """Return whether a study without a delta may have the one that is advised."""
    return not study.delta and study.profile == "sound" and DELTA * study.rows <= 1


_FACTORS = tuple(Fraction(round(100 * 2 ** (step / 4)), 100) for step in range(1, 25))


def _note(
    known: list[_T | None], goals: Sequence[float], prospects: Sequence[Prospect], value: _T
) -> None:
    for place, (goal, prospect) in enumerate(zip(goals, prospects, strict=True)):
        if known[place] is None and prospect.within <= goal:
            known[place] = value


def _reach(
    facts: PublicFacts,
    plan: Plan,
    declared: DeclaredTables | None,
    columns: Attributes,
    by: Attributes,
) -> float:
    """Forecast the reach of a set: that of its table, and that of the columns that are not `by`."""
    varied = tuple(a for a in columns if facts.sizes[a] > 1)
    alone = max((of_margin(facts, plan, a) for a in varied if a not in by), default=0.0)
    if len(varied) < 2:
        return alone
    if declared is None:
        joint = min(1.0, of_views(replace(facts, declared=(columns,)), plan))
    elif any(set(varied) <= set(drowned) for drowned in declared.by_pairs):
        joint = max(declared.reach(facts, pair, by) for pair in combinations(varied, 2))
    else:
        joint = declared.reach(facts, varied, by)
    return sqrt(joint * joint + alone * alone) if by else joint


def _how(sets: Sequence[Attributes], declared: DeclaredTables | None) -> str:
    """Say which tables an analysis rests on."""
    several = [columns for columns in sets if len(columns) > 1]
    if not several:
        return "from single columns"
    if declared is None:
        return "from the tables of all columns, which show it as well"
    if any(set(columns) <= set(joint) for columns in several for joint in declared.by_pairs):
        return "from tables of pairs: a joint table would be mostly noise"
    return "from a joint table" if len(several) == 1 else "from tables of pairs"


def planned(study: Study) -> Planned:
    """Return the facts of a study of one table or of two, and its plan."""
    if study.schema.events is None:
        facts = PublicFacts.of(study)
        return facts, *declared_plan(facts)
    linked = LinkedFacts.of(study)
    budget, declared = declared_budget(linked)
    asks = (Ask(plans.MARGINS, budget.margins), Ask(DECLARED, budget.declared))
    others = tuple(Ask(kind, cost) for kind, cost in budget.costs.items())
    plan = Plan(name="linked", asks=(*asks, *others), blocks=linked.every.alone)
    return linked.every, plan, declared


OF_SUBN = Prospects(planned)


def decisions(study: Study) -> list[PublicDecision]:
    """Tell the settings, and what is measured for the analyses."""
    return [*settings.decisions(study), *OF_SUBN.decisions(study)]


def advice(study: Study) -> list[str]:
    """Say so where a small delta is forecast to show more by a fifth or more."""
    if study.analyses:
        return OF_SUBN.advice(study)
    if not could_have_delta(study) or study.schema.events is not None:
        return []
    other = replace(study, delta=DELTA, signature=None)
    now, then = (
        plans.best_plan(PublicFacts.of(candidate)).cell_noise for candidate in (study, other)
    )
    before = f"{now:.2%}" if now < inf else "so large that few pairs are seen"
    words = f"noise in a cell of a pair's table is forecast at {then:.2%} of the rows, not {before}"
    return [f"{_WITH_DELTA} {words}"] if then <= BETTER * now and then < inf else []


def clearest(study: Study) -> Study:
    """Return a new study under pure epsilon, if that is forecast to show more than its delta does.

    With analyses, what counts is the width of their intervals, unless the delta lets more kinds of
    pairs be seen that no analysis names.
    """
    if not study.analyses or not study.delta or study.criteria:
        return plans.clearest(study)
    pure = OF_SUBN.clearest(study)
    return study if others_seen(study) > others_seen(pure) else pure


def others_seen(study: Study) -> int:
    """Return how many kinds of pairs have sums beside the analyses'; a single table has one."""
    kinds = {ask.what for ask in planned(study)[1].asks if ask.what not in SINGLE}
    return min(len(kinds), 1) if study.schema.events is None else len(kinds)
