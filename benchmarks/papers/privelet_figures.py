"""Privelet [Xiao11], Figs 9 to 14, and why Privelet* loses on wide queries."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np

from benchmarks.census_like import Shape, coverage, random_boxes
from benchmarks.measuring import Row
from benchmarks.papers.figure import Figure, Options
from benchmarks.privelet import make_release, make_workload
from common.wavelet.decisions import Method, axes_of

AGES = (2, 8, 32)
ROWS_OF_A_SUB_MATRIX = 25_000
WIDE = 0.1
_QUERIES = 4_000


def _elsewhere(module: str, *words: str) -> list[Row]:
    """Run a benchmark of its own, which prints its tables itself."""
    subprocess.run([sys.executable, "-m", module, *words], check=True)
    return [{"command": " ".join((f"python -m {module}", *words))}]


def census(options: Options) -> list[Row]:
    """Measure Figs 9 to 12."""
    return _elsewhere("benchmarks.privelet", "--full")


def scaling(options: Options) -> list[Row]:
    """Measure Figs 13 and 14."""
    return _elsewhere("benchmarks.privelet", "--scaling")


def wide(options: Options) -> list[Row]:
    """Ask wide queries over all ages and genders, by the number of sub-matrices that they add up.

    Age and gender are not transformed, so every pair of them is a sub-matrix that is shrunk by
    itself. Rows per sub-matrix and noise are the same throughout.
    """
    lines: list[Row] = []
    for ages in AGES:
        shape, matrices = Shape(ages=ages), 2 * ages
        schema, codes = shape.schema(), shape.rows(ROWS_OF_A_SUB_MATRIX * matrices, seed=1)
        boxes = random_boxes(axes_of(schema), _QUERIES, seed=2)
        boxes[:, :2] = [[0, ages], [0, 2]]
        boxes = boxes[coverage(boxes, schema.sizes) > WIDE]
        truth = make_workload(codes, schema, boxes).truth
        line: Row = {"sub-matrices": matrices, "queries": len(boxes)}
        methods: tuple[Method, ...] = ("privelet+", "privelet*")
        for method in methods:
            errors = np.array(
                [
                    make_release(codes, schema, Fraction(1), method).box_counts(boxes).values
                    - truth
                    for _ in range(options.runs)
                ]
            )
            square = float((errors**2).mean())
            line[f"{method}: square error / sub-matrices"] = square / matrices
            if options.runs > 1:  # the mean of a query's errors, less what noise adds to its square
                noise = errors.var(axis=0, ddof=1) / options.runs
                bias = float((errors.mean(axis=0) ** 2 - noise).mean())
                line[f"{method}: of it bias"] = bias / square
        lines.append(line)
    return lines


FIGURES = (
    Figure(
        name="privelet-9", paper="[Xiao11] Figs 9 to 12",
        shows="absolute and relative error by coverage and selectivity, full census shape",
        trend="Privelet+ and Privelet* beat Basic on wide queries, Privelet* is the best",
        run=census,
    ),
    Figure(
        name="privelet-wide", paper="not in a paper", run=wide,
        shows="square error of wide queries by the number of sub-matrices, Privelet+, Privelet*",
    ),
    Figure(
        name="privelet-13", paper="[Xiao11] Figs 13, 14", shows="time by rows and by cells",
        trend="linear; Basic < Privelet+ < Privelet*", run=scaling,
    ),
)  # fmt: skip
