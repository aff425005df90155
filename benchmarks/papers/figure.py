"""A figure of a paper: what it shows, what the paper finds, and the function that measures it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, stdev
from typing import TypeVar

Row = dict[str, object]
Measured = Iterator[tuple[Mapping[str, object], float]]  # labels of a line, and one measurement
T = TypeVar("T")
EPSILONS = tuple(Fraction(e) for e in ("1/20", "1/10", "1/5", "2/5", "4/5", "8/5"))


@dataclass(frozen=True, slots=True)
class Options:
    """How much is run: repetitions, and the epsilons of the sweeps."""

    runs: int
    epsilons: Sequence[Fraction] = EPSILONS

    @property
    def by_epsilon(self) -> dict[str, Fraction]:
        """A column of the printed table for every epsilon."""
        return {f"{float(epsilon):g}": epsilon for epsilon in self.epsilons}


def sweep(
    columns: Mapping[str, T],
    runs: int,
    measure: Callable[[T, int], Measured],
) -> list[Row]:
    """Return a line for every set of labels, with the mean over the runs in every column.

    Args:
        columns: the values that are swept, by the heading of their column.
        runs: repetitions.
        measure: takes a value and the number of a run; yields labels, and what was measured.

    Returns:
        Lines in the order in which their labels first came. With more than one run, the last column
        is the largest standard error of a mean in the line.
    """
    found: dict[tuple[tuple[str, object], ...], dict[str, list[float]]] = {}
    for heading, value in columns.items():
        for run in range(runs):
            for labels, number in measure(value, run):
                line = found.setdefault(tuple(labels.items()), {})
                line.setdefault(heading, []).append(number)
    return [
        dict(labels) | {heading: fmean(each) for heading, each in line.items()} | _spread(line)
        for labels, line in found.items()
    ]


def _spread(line: Mapping[str, Sequence[float]]) -> Row:
    errors = [stdev(each) / len(each) ** 0.5 for each in line.values() if len(each) > 1]
    return {"± at most": max(errors)} if errors else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure or table.

    Attributes:
        name: how the command calls it.
        paper: where it is.
        shows: what is measured.
        trend: what the paper finds.
        run: measures it; one row per line of the printed table. None for a figure that shows no
            measurement (an example, a drawing), which the tests or the pages show.
        where: for those, what shows it.
    """

    name: str
    paper: str
    shows: str
    trend: str = ""
    run: Callable[[Options], list[Row]] | None = None
    where: str = ""
