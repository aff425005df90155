"""What an analyst may conclude from a release, in ten lines: columns, pairs, and how exactly.

The width of a pair is about that of the interval of a correlation: by the noise of the published
table that tells most of the pair, and by what its groups hide (`common.analysis.direct`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist, median

from common.analysis.diagnostics import Diagnostics
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
        """Yield what may be concluded, for people."""
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
