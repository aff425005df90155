"""What an analyst may conclude from a release: columns, pairs, and how exactly each is known.

The width of a pair is about that of the interval of a correlation: by the noise of the published
table that tells most of the pair, and by what its groups hide (`common.analysis.direct`).

Every pair is in one of three groups, which the report, its heat map and `parley describe` show
alike: told well, told roughly, not measured, where the published sums tell intervals by themselves;
elsewhere the verdicts of `common.analysis.diagnostics`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist, median

from common.analysis.diagnostics import Diagnostics, Pair, PairFacts, PairVerdict
from common.analysis.direct import DirectIntervals
from common.analysis.replicates import Replicates
from common.fitted.model import FittedModel
from common.schema import Codes
from common.wording import many

WELL = 0.1  # a correlation within this tells the size of a relation, not only that there is one
_MOST_NAMED = 5
_REACH = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Precision:
    """A column or a pair, and how exactly it is known."""

    name: str
    within: float  # half the width of a typical 95 % interval


@dataclass(frozen=True, slots=True)
class Conclusions:
    """What a release tells."""

    columns: tuple[Precision, ...]  # a proportion of their rows, by noise alone
    uncounted: tuple[str, ...]  # columns that no table counts value by value
    pairs: tuple[Precision, ...]  # a correlation; the most exact first
    unmeasured: tuple[str, ...]  # pairs that were never counted together

    def lines(self) -> Iterator[str]:
        yield "What may I conclude?"
        if self.columns:
            yield (
                f"One column: {many(len(self.columns), 'column')}; noise moves the proportion of a "
                f"value by up to {_typical(self.columns):.1%}, typically"
            )
        if self.uncounted:
            yield f"  only in groups: {_named(self.uncounted)}"
        useful = [pair for pair in self.pairs if pair.within <= WELL]
        coarse = [pair for pair in self.pairs if pair.within > WELL]
        every = len(self.pairs) + len(self.unmeasured)
        for words, pairs in (("told well", useful), ("told roughly", coarse)):
            if pairs:
                names = _named([f"{pair.name} (+-{pair.within:.2f})" for pair in pairs])
                yield (
                    f"Two columns, {words}: {len(pairs):,} of {many(every, 'pair')}; a correlation "
                    f"within +-{_typical(pairs):.2f}, typically"
                )
                yield f"  {names}"
        if self.unmeasured:
            yield (
                f"Two columns, not measured: {len(self.unmeasured):,} of {many(every, 'pair')}; an "
                "interval is the whole range that the columns alone allow"
            )
            yield f"  {_named(self.unmeasured)}"
        yield "Every estimate has its own interval: parley estimate. All pairs: --pairs"

    def as_json(self) -> dict[str, object]:
        return {
            "columns": [
                {"attribute": column.name, "within": column.within} for column in self.columns
            ],
            "pairs": [{"attributes": pair.name, "within": pair.within} for pair in self.pairs],
            "not_measured": list(self.unmeasured),
        }


def _typical(precisions: Sequence[Precision]) -> float:
    return median(precision.within for precision in precisions)


def _named(names: Sequence[str]) -> str:
    return "; ".join(names[:_MOST_NAMED]) + ("; ..." if len(names) > _MOST_NAMED else "")


def conclude(
    fitted: FittedModel, diagnostics: Diagnostics, rows: Codes | None = None
) -> Conclusions:
    """Return what a release tells of its columns and pairs, from published files alone.

    `rows` are its synthetic rows; those of `fitted` if None.
    """
    names, rows = fitted.schema.names, fitted.released if rows is None else rows
    columns = sorted(
        (
            Precision(error.named(names), min(1.0, _REACH * error.deviation / fitted.rows))
            for error in fitted.column_errors
        ),
        key=lambda precision: precision.within,
    )
    direct = DirectIntervals(diagnostics.measured, Replicates(fitted.schema, rows, rows, ()))
    known, unmeasured = list[Precision](), list[str]()
    for pair in combinations(range(len(names)), 2):
        name = " and ".join(names[a] for a in pair)
        if any(table.usable(pair) for table in diagnostics.measured):
            known.append(Precision(name, min(1.0, direct.table(pair).reach())))
        else:
            unmeasured.append(name)
    counted = {column.name for column in columns}
    return Conclusions(
        columns=tuple(columns),
        uncounted=tuple(name for name in names if name not in counted),
        pairs=tuple(sorted(known, key=lambda precision: precision.within)),
        unmeasured=tuple(unmeasured),
    )


@dataclass(frozen=True, slots=True)
class PairGroup:
    """Pairs that may be used alike; the best group comes first."""

    name: str
    meaning: str
    pairs: Mapping[Pair, PairFacts]
    within: Mapping[Pair, float]  # half the width of the interval of a correlation, where known

    def why(self, pair: Pair) -> str:
        """Say how exactly a pair is known, and what of."""
        reason = self.pairs[pair].reason
        if pair not in self.within:
            return reason
        return f"a correlation within +-{self.within[pair]:.2f}; {reason}"


_BY_VERDICT = {
    PairVerdict.SAFE: "A released sum contains the pair's table, by all values or by at least "
    "eight groups of each column, and the rows follow it. Proportions of values within a group "
    "follow from the model.",
    PairVerdict.CARE: "The pair was counted in few groups or with much noise, or the rows do not "
    "follow its table, or they show no relation. The relation in the rows may be wrong.",
    PairVerdict.ABSENT: "The two columns were never counted together. Their relation in the rows "
    "follows from other pairs, or from nothing.",
}
_BY_WIDTH = {
    "told well": "A published sum tells the pair: the size of a relation is known, within the "
    "interval that `parley estimate` prints.",
    "told roughly": "A published sum tells the pair in few groups or with much noise: a relation "
    "may be smaller or larger than the rows show, and an interval is wide.",
    "not measured": "The two columns were never counted together. An interval is the whole range "
    "that the columns alone allow.",
}


def pair_groups(diagnostics: Diagnostics, concluded: Conclusions | None) -> list[PairGroup]:
    """Return the three groups; empty ones, too."""
    if concluded is None:
        of = {pair: facts.verdict.value for pair, facts in diagnostics.pairs.items()}
        meanings, within = {str(key): words for key, words in _BY_VERDICT.items()}, {}
    else:
        known = {precision.name: precision.within for precision in concluded.pairs}
        names = {pair: " and ".join(facts.names) for pair, facts in diagnostics.pairs.items()}
        within = {pair: known[name] for pair, name in names.items() if name in known}
        meanings, of = _BY_WIDTH, dict.fromkeys(diagnostics.pairs, "not measured")
        of |= {p: "told well" if wide <= WELL else "told roughly" for p, wide in within.items()}
    return [
        PairGroup(
            name,
            meaning,
            {pair: facts for pair, facts in diagnostics.pairs.items() if of[pair] == name},
            {pair: wide for pair, wide in within.items() if of[pair] == name},
        )
        for name, meaning in meanings.items()
    ]
