"""Time against rows and cells, as in [Xiao11, Sec. 8.2]: python -m benchmarks.privelet_scaling.

Uniform rows over two ordered and two nominal attributes of the same size, the latter with a
hierarchy of three levels; every attribute is transformed, which is the most expensive choice. Time
should be linear in the rows and in the PADDED number of coefficients. The last columns are the
ratios to the line before.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from common.privacy.randomness import OsRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema import Codes
from common.wavelet.axis import Axis
from common.wavelet.decisions import Method, Plan, make_plan
from common.wavelet.haar import HaarAxis
from common.wavelet.mechanism import noisy_cells
from common.wavelet.nominal import NominalAxis, Tree

RESULTS = Path(__file__).parent / "results" / "privelet_scaling.json"
METHODS: tuple[Method, ...] = ("basic", "privelet+", "privelet*")


def axes_of_size(size: int) -> tuple[Axis, ...]:
    """Two ordered and two nominal attributes."""
    groups = math.isqrt(size)
    tree = Tree.from_nested([list(range(g, size, groups)) for g in range(groups)], size)
    return (HaarAxis(size), HaarAxis(size), NominalAxis(tree), NominalAxis(tree))


def seconds(codes: Codes, plan: Plan) -> float:
    """One release."""
    start = time.perf_counter()
    noisy_cells(codes, plan, discrete_laplace, OsRandomSource())
    return time.perf_counter() - start


def measure() -> Iterator[dict[str, float]]:
    """A line for each domain and number of rows, with its time under each method."""
    print(
        f"{'rows':>10} {'cells':>11} {'coefficients':>12} " + " ".join(f"{m:>10}" for m in METHODS)
    )
    before: dict[str, float] = {}
    for size, rows in (
        (32, 10**6),
        (32, 2 * 10**6),
        (32, 4 * 10**6),
        (36, 10**6),
        (45, 10**6),
        (54, 10**6),
    ):
        rng = np.random.default_rng(size)
        codes = Codes.from_columns([rng.integers(0, size, rows) for _ in range(4)], [size] * 4)
        plans = {m: make_plan(axes_of_size(size), Fraction(1), m, []) for m in METHODS}
        line: dict[str, float] = {
            "rows": rows,
            "cells": size**4,
            "coefficients": math.prod(plans["privelet+"].sub_matrix_shape),
        }
        line |= {method: seconds(codes, plan) for method, plan in plans.items()}
        times = " ".join(f"{line[m]:9.2f}s" for m in METHODS)
        ratios = " ".join(f"{key[:12]} x{line[key] / before[key]:.2f}" for key in line if before)
        print(f"{rows:10,} {size**4:11,} {int(line['coefficients']):12,} {times}  {ratios}")
        before = line
        yield line


def main() -> None:
    """Run and report."""
    lines = list(measure())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(lines, indent=2) + "\n")


if __name__ == "__main__":
    main()
