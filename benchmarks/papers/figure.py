"""A figure of a paper: what it shows, what the paper finds, and the function that measures it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.measuring import Row

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
