"""The sweeps as tables for the console, as Markdown, and as plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measuring import RESULTS
from benchmarks.subn_methods import CENTRAL, FLOOR
from benchmarks.subn_sweep import Point, Results, worse


@dataclass(frozen=True)
class Grid:
    """One table: methods down, a public value across.

    Attributes:
        title: what it shows.
        across: the name of what changes from column to column.
        columns: its values.
        methods: the labels.
        measures: what stands in a cell, separated by a slash.
        point: the point of a label and a column.
    """

    title: str
    across: str
    columns: tuple[str, ...]
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    point: Callable[[str, str], Point]


def show(console: Console, grid: Grid, results: Results) -> None:
    """Means with standard deviations; `!` where a method is worse than the floor beyond noise."""
    table = Table("method", *(f"{grid.across} {c}" for c in grid.columns), title=_title(grid))
    for line in _lines(grid, results):
        table.add_row(*line)
    console.print(table)


def markdown(grid: Grid, results: Results) -> str:
    """The same, for a document."""
    header = ["", *(f"{grid.across} {column}" for column in grid.columns)]
    lines = [header, ["---"] * len(header), *_lines(grid, results)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"**{_title(grid)}**\n\n{text}\n"


def _title(grid: Grid) -> str:
    return f"{grid.title}: {' / '.join(grid.measures)}"


def _lines(grid: Grid, results: Results) -> list[list[str]]:
    lines = []
    for label in grid.methods:
        cells = [_cell(grid, label, column, results) for column in grid.columns]
        if any(cells):
            lines.append([label, *(cell or "-" for cell in cells)])
    return lines


def _cell(grid: Grid, label: str, column: str, results: Results) -> str:
    parts, flagged, runs = [], False, 0
    for measure in grid.measures:
        values = results.values(grid.point(label, column), measure)
        if not values:
            return ""
        runs = len(values)
        floor = results.values(grid.point(FLOOR, column), measure)
        flagged |= label != FLOOR and worse(values, floor)
        parts.append(_short(float(np.mean(values))) + _spread(values))
    return " / ".join(parts) + f" ({runs})" + (" !" if flagged else "")


def _spread(values: Sequence[float]) -> str:
    return f"±{_short(float(np.std(values, ddof=1)))}" if len(values) > 1 else ""


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def plot(name: str, grids: Sequence[Grid], results: Results) -> None:
    """One picture, a panel for each table and measure; bars are standard deviations."""
    mpl.use("Agg")
    panels = [(grid, measure) for grid in grids for measure in grid.measures]
    figure, axes = plt.subplots(1, len(panels), figsize=(4.5 * len(panels), 4), squeeze=False)
    for (grid, measure), panel in zip(panels, axes[0], strict=True):
        for place, label in enumerate(grid.methods):
            runs = [results.values(grid.point(label, column), measure) for column in grid.columns]
            drawn = [(float(c), v) for c, v in zip(grid.columns, runs, strict=True) if v]
            if not drawn:
                continue
            panel.errorbar(
                [column for column, _ in drawn],
                [np.mean(values) for _, values in drawn],
                yerr=[np.std(values) for _, values in drawn],
                linestyle=":" if label in (FLOOR, CENTRAL) else "-",
                color=f"C{place}",
                label=label,
            )
        panel.set(title=grid.title, xlabel=grid.across, ylabel=measure, ylim=(0, None))
        if panel.has_data():
            panel.set_xscale("log" if grid.across == "eps" else "linear")
            panel.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=110)
    plt.close(figure)
