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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

_MEAN_OF_NORMAL = math.sqrt(2 / math.pi)  # E|x| of a standard normal x: a sum of many draws
GROUPS = 8  # of an attribute, from which on they are as good as its values
_CARE = 0.1  # noise moves more than this part of the rows of a pair's table
_DROWNED = 1 / 3  # noise moves more than this part of the rows of a column
_MOST_NAMED = 6
_DOUBT = 4.0  # deviations of the mean square of residuals beyond which rows do not follow

Pair = tuple[int, int]


class Verdict(StrEnum):
    """What an analyst may do with a pair of attributes."""

    SAFE = "safe to use"
    CARE = "use with care"
    ABSENT = "not in this release"


def noise_distance(deviations: float, rows: int) -> float:
    """Return the part of the rows that noise moves, by the sum of the deviations of all cells."""
    return min(1.0, _MEAN_OF_NORMAL * deviations / (2 * max(1, rows)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """A table that a released sum tells."""

    name: str  # of the step it belongs to
    attributes: tuple[int, ...]  # those that are counted together
    shape: tuple[int, ...]  # values or groups of each attribute
    deviation: float  # of the noise in one cell
    rows: int  # how many rows it counts
    # of each attribute, whether its values are counted in groups, or in bits
    grouped: tuple[bool, ...]
    # whether tables of fewer attributes can be summed out of it: not if its margins are known from
    # other tables only
    summable: bool = True
    in_bits: bool = False  # whether it counts by bits of its attributes
    # of each released number: released less synthetic, in rows; None if not compared
    residuals: NDArray[np.float64] | None = None
    # of each residual, by noise and the drawing of synthetic rows
    deviations: NDArray[np.float64] | None = None

    @property
    def cells(self) -> int:
        return prod(self.shape)

    def tells(self, own: Sequence[int]) -> bool:
        """Return whether the table of these attributes follows from it."""
        mine = set(self.attributes)
        return mine >= set(own) if self.summable else mine == set(own)

    def fine(self, own: Sequence[int]) -> bool:
        """Return whether these attributes are counted value by value, or in many groups."""
        return all(
            size >= GROUPS or not grouped
            for attribute, size, grouped in zip(
                self.attributes, self.shape, self.grouped, strict=True
            )
            if attribute in own
        )

    @cached_property
    def spread(self) -> float | None:
        """The root mean square of the residuals in units of noise: near 1 if the rows follow."""
        scores = self._scores(())
        return None if scores is None else float(np.sqrt(np.mean(scores**2)))

    def follows(self, own: Sequence[int] = ()) -> bool:
        """Return whether the synthetic rows follow the table, or its sums over other attributes."""
        scores = self._scores(own)
        if scores is None:
            return True
        return float(np.mean(scores**2)) <= 1 + _DOUBT * math.sqrt(2 / scores.size)

    def _scores(self, own: Sequence[int]) -> NDArray[np.float64] | None:
        """Return residuals in units of noise, of the table or summed over other attributes."""
        if self.residuals is None or self.deviations is None or not self.residuals.size:
            return None
        if not own or not self.summable:
            return self.residuals / self.deviations
        others = tuple(axis for axis, a in enumerate(self.attributes) if a not in own)
        residual = self.residuals.reshape(self.shape).sum(axis=others)
        variance = (self.deviations**2).reshape(self.shape).sum(axis=others)
        return np.asarray(residual / np.sqrt(variance), dtype=np.float64)

    def moved(self, own: Sequence[int]) -> float:
        """Return the part of the rows that noise moves in a table of few groups of these."""
        cells = prod(
            min(size, GROUPS)
            for a, size in zip(self.attributes, self.shape, strict=True)
            if a in own
        )
        return noise_distance(self.deviation * math.sqrt(self.cells * cells), self.rows)


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """What noise does to the distribution of a column, or of a pair of columns."""

    attributes: tuple[int, ...]  # one position in the schema, or two
    cells: int  # of their table
    deviation: float  # the standard deviation of the noise in a count, in rows
    distance: float  # the expected total variation distance to the exact distribution, at most 1
    grouped: bool = False  # whether values were counted in groups

    @property
    def rank(self) -> tuple[bool, float, float]:
        """A key that is less for the table that tells more."""
        return self.grouped, self.distance, self.deviation

    def named(self, names: Sequence[str]) -> str:
        return " and ".join(names[attribute] for attribute in self.attributes)


def expected_errors(tables: Iterable[Measured], order: int) -> list[ExpectedError]:
    """Return the least error of every column (order 1) or pair (order 2) that was counted.

    A method may count a column several times, in tables of its own and in tables with others. What
    is reported is the table that tells most: the table out of which the column, or the pair, can be
    summed with the least noise. A model that is fitted to all tables together is at least as close.
    A column that was only counted in groups of its values, or in bits, is left out: how its rows
    fall to the values of a group is no question of noise.
    """
    best: dict[tuple[int, ...], ExpectedError] = {}
    for table in tables:
        for error in _within(table, order):
            known = best.get(error.attributes)
            if known is None or error.rank < known.rank:
                best[error.attributes] = error
    found = (best[key] for key in sorted(best))
    return [error for error in found if order > 1 or not error.grouped]


def noise_by_name(tables: Iterable[Measured], names: Sequence[str]) -> dict[str, float]:
    """Return the deviation of a value's count, for each column counted value by value."""
    return {error.named(names): error.deviation for error in expected_errors(tables, 1)}


def _within(table: Measured, order: int) -> Iterator[ExpectedError]:
    """Yield the errors of all sets of so many attributes that can be summed out of a table."""
    if table.in_bits or (not table.summable and len(table.attributes) != order):
        return
    for axes in combinations(range(len(table.attributes)), order):
        cells = prod(table.shape[axis] for axis in axes)
        deviation = table.deviation * math.sqrt(table.cells / cells)
        distance = noise_distance(cells * deviation, table.rows)
        grouped = any(table.grouped[axis] for axis in axes)
        attributes = tuple(sorted(table.attributes[axis] for axis in axes))
        yield ExpectedError(attributes, cells, deviation, distance, grouped)


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
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Diagnostics:
    """What a release measured."""

    names: tuple[str, ...]  # of the attributes
    measured: tuple[Measured, ...]  # its tables and sums
    # the pairs that depend on each other in the synthetic rows, more than by chance
    related: frozenset[Pair]

    @cached_property
    def pairs(self) -> Mapping[Pair, PairFacts]:
        """Every pair of attributes, by position."""
        holders: dict[Pair, list[Measured]] = {}
        for each in self.measured:
            for pair in combinations(sorted(set(each.attributes)), 2):
                if each.tells(pair):
                    holders.setdefault(pair, []).append(each)
        return {
            pair: self._facts(pair, holders.get(pair, ()))
            for pair in combinations(range(len(self.names)), 2)
        }

    def _facts(self, pair: Pair, tables: Sequence[Measured]) -> PairFacts:
        names = (self.names[pair[0]], self.names[pair[1]])
        fine = [each for each in tables if each.fine(pair)]
        if not tables:
            return PairFacts(names, Verdict.ABSENT, "never counted together")
        best = min(fine or tables, key=lambda each: each.moved(pair))
        moved = best.moved(pair)
        words = f"noise moves {moved:.1%} of the rows of its table"
        if not fine:
            return PairFacts(names, Verdict.CARE, f"counted in few groups only; {words}")
        if not all(each.follows(pair) for each in tables):
            return PairFacts(names, Verdict.CARE, f"the rows do not follow its table; {words}")
        if pair not in self.related:
            unseen = "the rows show no relation, and noise may hide a weak one"
            return PairFacts(names, Verdict.CARE, f"{unseen}; {words}")
        return PairFacts(names, Verdict.CARE if moved > _CARE else Verdict.SAFE, words)

    def listed(self, verdict: Verdict) -> list[PairFacts]:
        return [facts for facts in self.pairs.values() if facts.verdict is verdict]

    @cached_property
    def triples(self) -> int:
        """How many triples of attributes are counted together in some table."""
        return len(
            {
                triple
                for each in self.measured
                for triple in combinations(sorted(set(each.attributes)), 3)
            }
        )

    @property
    def all_triples(self) -> int:
        return comb(len(self.names), 3)

    def concerns(self, attributes: Iterable[str], *, pairwise: bool = False) -> list[str]:
        """Return the reasons why a statistic of these attributes is flagged, if any.

        A linear regression rests on pairs only, and is `pairwise`.
        """
        asked = sorted(self.names.index(name) for name in set(attributes))
        found = [
            f"{' and '.join(facts.names)}: {facts.verdict} ({facts.reason})"
            for facts in (self.pairs[pair] for pair in combinations(asked, 2))
            if facts.verdict is not Verdict.SAFE
        ]
        together = any(set(asked) <= set(each.attributes) for each in self.measured)
        if len(asked) > 2 and not pairwise and not together:
            names = ", ".join(self.names[a] for a in asked)
            found.append(f"{names}: never counted together, only fewer of them at a time")
        return found

    def as_json(self) -> dict[str, object]:
        return {
            "pairs": [
                {"attributes": list(f.names), "verdict": str(f.verdict), "reason": f.reason}
                for f in self.pairs.values()
            ],
            "triples": {"counted_together": self.triples, "all": self.all_triples},
            "sums": [
                {
                    "step": each.name,
                    "attributes": [self.names[a] for a in each.attributes],
                    "cells": each.cells,
                    "noise_deviation": each.deviation,
                    "residual_spread": each.spread,
                    "follows": each.follows(),
                }
                for each in self.measured
            ],
        }
