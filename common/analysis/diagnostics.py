"""What a release measured, how far noise moves it, and how well its rows follow: all public.

A replicate cannot show what the model leaves out. These facts can:

* every pair of attributes: in which released table both are counted, and how far noise alone moves
  that pair's table;
* every released sum: how far the synthetic rows are from it, in units of its noise.

A pair is *safe to use* if a released sum tells its table, with all values of both attributes or in
at least eight groups of each, noise moves less than a tenth of its rows, and the synthetic rows
follow the table and show the relation. Noise is judged in eight groups of an attribute at most:
more groups are noisier one by one, and what is asked of several of them together is not. A pair is
to be *used with care* if its groups are fewer, or bits, if noise moves more, if the rows do not
follow, or if they show no relation: a model drops weak relations. Other pairs are *not in this
release*: what the rows show of them comes from other pairs, or from nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from common.bayes.contingency import cramers_v, significant
from common.fitted.model import FittedModel
from common.marginals import count
from common.methods.subn_plus.requests import GroupedTables, even_groups
from common.release.measured import GROUPS, ExpectedError, MeasuredTable
from common.schema import Codes
from common.schema.linked import LinkedCodes
from common.study.requests import RowsInMemory, split_tables

_CARE = 0.1  # noise moves more than this part of the rows of a pair's table
_DROWNED = 1 / 3  # noise moves more than this part of the rows of a column
_MOST_NAMED = 6

Pair = tuple[int, int]


class PairVerdict(StrEnum):
    """What an analyst may do with a pair of attributes."""

    SAFE = "safe to use"
    CARE = "use with care"
    ABSENT = "not in this release"


def noise_caution(errors: Sequence[ExpectedError], names: Sequence[str]) -> str | None:
    """Warn of columns that are mostly noise: it moves over a third of their rows."""
    drowned = [error.named(names) for error in errors if error.distance > _DROWNED]
    if not drowned:
        return None
    named = "; ".join(drowned[:_MOST_NAMED]) + ("; ..." if len(drowned) > _MOST_NAMED else "")
    return (
        f"Mostly noise: in {len(drowned)} of {len(errors)} columns ({named}), noise alone is "
        "expected to change more than a third of the rows. More rows, a larger epsilon, or fewer "
        "bins and values would help."
    )


@dataclass(frozen=True, slots=True)
class PairFacts:
    """What is known of one pair."""

    names: tuple[str, str]
    verdict: PairVerdict
    reason: str


@dataclass(frozen=True)
class Diagnostics:
    """What a release measured."""

    names: tuple[str, ...]  # of the attributes
    measured: tuple[MeasuredTable, ...]  # its tables and sums
    # the pairs that depend on each other in the synthetic rows, more than by chance
    related: frozenset[Pair]

    @cached_property
    def pairs(self) -> Mapping[Pair, PairFacts]:
        """Every pair of attributes, by position."""
        holders: dict[Pair, list[MeasuredTable]] = {}
        for table in self.measured:
            for pair in combinations(sorted(set(table.attributes)), 2):
                if table.tells(pair):
                    holders.setdefault(pair, []).append(table)
        return {
            pair: self._facts(pair, holders.get(pair, ()))
            for pair in combinations(range(len(self.names)), 2)
        }

    def _facts(self, pair: Pair, tables: Sequence[MeasuredTable]) -> PairFacts:
        names = (self.names[pair[0]], self.names[pair[1]])
        fine = [table for table in tables if table.fine(pair)]
        if not tables:
            return PairFacts(names, PairVerdict.ABSENT, "never counted together")
        best = min(fine or tables, key=lambda table: table.moved(pair))
        moved = best.moved(pair)
        words = f"noise moves {moved:.1%} of the rows of its table"
        if not fine:
            return PairFacts(names, PairVerdict.CARE, f"counted in few groups only; {words}")
        if not all(table.follows(pair) for table in tables):
            return PairFacts(names, PairVerdict.CARE, f"the rows do not follow its table; {words}")
        if pair not in self.related:
            unseen = "the rows show no relation, and noise may hide a weak one"
            return PairFacts(names, PairVerdict.CARE, f"{unseen}; {words}")
        return PairFacts(names, PairVerdict.CARE if moved > _CARE else PairVerdict.SAFE, words)

    @property
    def direct(self) -> bool:
        """Whether intervals cover what the published tables say, and not only the model."""
        return any(table.usable(table.attributes) for table in self.measured)

    def listed(self, verdict: PairVerdict) -> list[PairFacts]:
        return [facts for facts in self.pairs.values() if facts.verdict is verdict]

    @cached_property
    def triples(self) -> int:
        """How many triples of attributes are counted together in some table."""
        return len(
            {
                triple
                for table in self.measured
                for triple in combinations(sorted(set(table.attributes)), 3)
            }
        )

    @property
    def all_triples(self) -> int:
        return comb(len(self.names), 3)

    def concerns(self, attributes: Iterable[str], *, pairwise: bool = False) -> list[str]:
        """Return the reasons why a statistic of these attributes is flagged, if any.

        Its interval is wide, because something was not measured. Where the noise of no table is
        known, an interval rests on the model alone, and so every pair that is not safe is a reason.
        A linear regression rests on pairs only, and is `pairwise`.
        """
        positions = sorted(self.names.index(name) for name in set(attributes))
        trusted = (PairVerdict.SAFE, PairVerdict.CARE) if self.direct else (PairVerdict.SAFE,)
        reasons = [
            f"{' and '.join(facts.names)}: {facts.verdict} ({facts.reason})"
            for facts in (self.pairs[pair] for pair in combinations(positions, 2))
            if facts.verdict not in trusted
        ]
        together = any(set(positions) <= set(table.attributes) for table in self.measured)
        if len(positions) > 2 and not pairwise and not together:
            names = ", ".join(self.names[a] for a in positions)
            reasons.append(f"{names}: never counted together, only fewer of them at a time")
        return reasons

    def as_json(self) -> dict[str, object]:
        return {
            "pairs": [
                {"attributes": list(f.names), "verdict": str(f.verdict), "reason": f.reason}
                for f in self.pairs.values()
            ],
            "triples": {"counted_together": self.triples, "all": self.all_triples},
            "sums": [
                {
                    "step": table.name,
                    "attributes": [self.names[a] for a in table.attributes],
                    "cells": table.cells,
                    "noise_deviation": table.deviation,
                    "residual_spread": table.spread,
                    "follows": table.follows(),
                }
                for table in self.measured
            ],
        }


def diagnose(fitted: FittedModel, synthetic: Codes) -> Diagnostics:
    """Return what was measured, and how well these rows follow.

    Where every cell was counted, rows can show every relation.
    """
    names = fitted.schema.names
    every = fitted.every_cell
    related = frozenset(combinations(range(len(names)), 2)) if every else related_pairs(synthetic)
    return Diagnostics(names, tuple(fitted.compared(synthetic)), related)


def related_pairs(codes: Codes) -> frozenset[tuple[int, int]]:
    """Return the pairs whose dependence in these rows is significant.

    Each is tested in all values, and in few groups, where a weak but steady relation shows.
    """
    pairs = tuple(combinations(range(codes.width), 2))
    if not pairs:
        return frozenset()
    rows = RowsInMemory(codes)
    margins = rows.count([(a,) for a in range(codes.width)])
    groups = tuple(even_groups(margin, codes.rows, groups=GROUPS) for margin in margins)
    coarse = GroupedTables(pairs, groups)
    in_groups = split_tables(coarse.tables, coarse.answer(rows))
    return frozenset(
        pair
        for pair, *tables in zip(pairs, rows.count(pairs), in_groups, strict=True)
        if any(significant(table, among=2 * len(pairs)) for table in tables)
    )


_FEW = 3  # with fewer attributes it is nothing unusual that they are independent


@dataclass(frozen=True, slots=True)
class Relations:
    """What the rows show."""

    strength: NDArray[np.float64]  # Cramer's V where it is significant; 0 for other pairs
    pairs: int
    related: int  # how many of them are significant
    alone: tuple[str, ...]  # the attributes that are related to no other
    of_people: bool = False  # whether the rows are people, whose events are not in it

    def caution(self) -> str | None:
        """Say which attributes the rows relate to no other."""
        width = len(self.strength)
        if width < _FEW or not self.alone:
            return None
        names, whose = ", ".join(self.alone), " of people" if self.of_people else ""
        return (
            f"No relations: {len(self.alone)} of {width} columns{whose} ({names}) without a "
            f"significant relation to any other column{whose} in these rows. Either noise hid such "
            "relations, or there are none. Use these columns one at a time. More rows, a larger "
            "epsilon or fewer columns would help."
        )


def relations(names: Sequence[str], codes: Codes) -> Relations:
    strength = dependence(codes, significant_only=True)
    partners = (strength > 0).sum(axis=1) - 1
    return Relations(
        strength=strength,
        pairs=math.comb(codes.width, 2),
        related=int(partners.sum()) // 2,
        alone=tuple(name for name, others in zip(names, partners, strict=True) if others == 0),
        of_people=isinstance(codes, LinkedCodes),
    )


def dependence(codes: Codes, *, significant_only: bool = False) -> NDArray[np.float64]:
    """Compute Cramer's V of every pair: 0 where independent, 1 where one determines the other."""
    pairs = list(combinations(range(codes.width), 2))
    result = np.eye(codes.width)
    for (i, j), counts in zip(pairs, count(codes, pairs), strict=True):
        if not significant_only or significant(counts, among=len(pairs)):
            result[i, j] = result[j, i] = cramers_v(counts)
    return result
