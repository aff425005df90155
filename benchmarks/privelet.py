"""The experiments of [Xiao11, Sec. 8] on census-like rows: python -m benchmarks.privelet [--full].

Square error against coverage and relative error against selectivity, for Basic, Privelet+ and
Privelet*, as tables (printed, and in results/privelet.json) and as a plot (results/privelet.png);
then time, memory and questions per second. The short run keeps Occupation and Income as they are
and has ten ages instead of 101: Age is left untransformed, so it does not move the crossover.
`--scaling` measures time against rows and cells instead.
"""

from __future__ import annotations

import argparse
import math
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.census_like import ADULT, Shape, coverage, random_boxes
from benchmarks.measuring import RESULTS, keep, show
from common.privacy.accountant import Accountant
from common.privacy.randomness import OsRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema import Codes, Schema
from common.schema.hierarchy import Hierarchy, Node, leaf
from common.wavelet import NoisyMatrix, plan_privelet, privelet
from common.wavelet.axis import Axis, HaarAxis, Reach
from common.wavelet.decisions import Method, WaveletDecisions, axes_of, make_plan
from common.wavelet.mechanism import count_cells, noisy_cells
from common.wavelet.noisy_matrix import NoiseMoments, prefix_sums, range_sums
from common.wavelet.nominal import ArrayTree, NominalAxis

METHODS: tuple[Method, ...] = ("basic", "privelet+", "privelet*")
QUERIES = 40_000
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """The queries of one quintile."""

    mean: float
    square_error: dict[str, float]
    absolute_error: dict[str, float]
    relative_error: dict[str, float]
    predicted_square_error: dict[str, float]


@dataclass(frozen=True)
class Workload:
    """Queries, and what is known of them without noise."""

    boxes: NDArray[np.intp]
    coverage: Floats
    truth: Floats
    rows: int

    @property
    def selectivity(self) -> Floats:
        """The share of rows in each box."""
        return self.truth / self.rows


def make_release(
    codes: Codes, schema: Schema, epsilon: Fraction, method: Method = "privelet+"
) -> NoisyMatrix:
    """Make a release of simulated rows, which have no budget to protect."""
    return privelet(
        codes,
        schema,
        epsilon=epsilon,
        source=OsRandomSource(),
        accountant=Accountant({"owner": None}),
        method=method,
    )


def reaches(plan: WaveletDecisions, boxes: NDArray[np.intp]) -> list[Reach]:
    """Return what the boxes touch along each stored axis."""
    return [
        axis.reach(boxes[:, i, 0], boxes[:, i, 1])
        for i, axis in zip(plan.order, plan.stored_axes, strict=True)
    ]


def make_workload(codes: Codes, schema: Schema, boxes: NDArray[np.intp]) -> Workload:
    """Queries and their true counts."""
    plan = plan_privelet(schema, 1, method="basic")
    sums = prefix_sums(count_cells(codes, plan).astype(np.float64))
    truth = range_sums(sums, reaches(plan, boxes))
    return Workload(boxes, coverage(boxes, schema.sizes), truth, codes.rows)


def grouped(
    by: Floats,
    parts: Sequence[NDArray[np.intp]],
    work: Workload,
    errors: dict[str, Floats],
    predicted: dict[str, Floats],
) -> list[Group]:
    """Mean errors of groups of queries."""
    floor = 0.001 * work.rows  # the paper's sanity bound
    return [
        Group(
            float(by[part].mean()),
            {m: float((e[:, part] ** 2).mean()) for m, e in errors.items()},
            {m: float(np.abs(e[:, part]).mean()) for m, e in errors.items()},
            {
                m: float((np.abs(e[:, part]) / np.maximum(work.truth[part], floor)).mean())
                for m, e in errors.items()
            },
            {m: float(v[part].mean()) for m, v in predicted.items()},
        )
        for part in parts
    ]


def quintiles(by: Floats) -> list[NDArray[np.intp]]:
    """Five groups of equally many queries."""
    return np.array_split(np.argsort(by, kind="stable"), 5)


def exact_crossover(work: Workload, predicted: dict[str, Floats]) -> float:
    """Return the largest coverage of a query that Basic answers with the smaller variance."""
    return float(work.coverage[predicted["basic"] < predicted["privelet+"]].max())


def crossover(work: Workload, errors: dict[str, Floats]) -> float:
    """Return the coverage beyond which Basic's mean square error stays above that of Privelet+."""
    edges = np.geomspace(1e-6, 1, 31)
    place = np.digitize(work.coverage, edges)
    last_win = 0.0
    for number in range(1, len(edges)):
        part = place == number
        if part.sum() >= 50:
            basic, plus = ((errors[m][:, part] ** 2).mean() for m in ("basic", "privelet+"))
            if basic < plus:
                last_win = float(edges[number])
    return last_win


def run_epsilon(
    codes: Codes, schema: Schema, work: Workload, epsilon: Fraction, releases: int
) -> tuple[dict[str, Any], dict[str, float]]:
    """Make some releases by each method; return their errors."""
    errors: dict[str, Floats] = {}
    predicted: dict[str, Floats] = {}
    seconds: dict[str, float] = {}
    for method in METHODS:
        found = []
        for _ in range(releases):
            start = time.perf_counter()
            release = make_release(codes, schema, epsilon, method)
            seconds[method] = time.perf_counter() - start
            found.append(release.box_counts(work.boxes).values - work.truth)
        errors[method] = np.array(found)
        if method != "privelet*":
            touched = reaches(release.plan, work.boxes)
            predicted[method] = NoiseMoments(release.plan).variances(touched)
    report = {
        "epsilon": str(epsilon),
        "by_coverage": grouped(work.coverage, quintiles(work.coverage), work, errors, predicted),
        "by_selectivity": grouped(
            work.selectivity, quintiles(work.selectivity), work, errors, predicted
        ),
        "crossover_coverage": crossover(work, errors),
        "largest_coverage_basic_wins": exact_crossover(work, predicted),
    }
    return report, seconds


def print_report(report: dict[str, Any]) -> None:
    """Print the two tables of one epsilon."""
    by_coverage = []
    for group in report["by_coverage"]:
        found, theory = group.square_error, group.predicted_square_error
        by_coverage.append(
            {
                "coverage": group.mean,
                **found,
                "basic / privelet+": found["basic"] / found["privelet+"],
            }
            | {f"theory {method}": error for method, error in theory.items()}
        )
    show(by_coverage, f"epsilon {report['epsilon']}: mean square error by coverage quintile")
    print(
        f"mean square errors cross at a coverage of {report['crossover_coverage']:.2%}; no query "
        f"beyond {report['largest_coverage_basic_wins']:.2%} has the smaller variance under Basic"
    )
    show(
        [{"selectivity": each.mean, **each.relative_error} for each in report["by_selectivity"]],
        f"epsilon {report['epsilon']}: mean relative error by selectivity quintile",
    )


def plot(reports: list[dict[str, Any]], path: Path) -> None:
    """Draw both figures for each epsilon."""
    figure = Figure(figsize=(4.2 * len(reports), 7.5), layout="constrained")
    axes = figure.subplots(2, len(reports), squeeze=False)
    looks = {
        "basic": ("Basic", "s--"),
        "privelet+": ("Privelet+", "o-"),
        "privelet*": ("Privelet*", "^-"),
    }
    for column, report in enumerate(reports):
        upper, lower = axes[0, column], axes[1, column]
        for method, (name, style) in looks.items():
            by_coverage, by_selectivity = report["by_coverage"], report["by_selectivity"]
            upper.loglog(
                [g.mean for g in by_coverage],
                [g.square_error[method] for g in by_coverage],
                style,
                label=name,
            )
            lower.loglog(
                [max(g.mean, 1e-8) for g in by_selectivity],
                [g.relative_error[method] for g in by_selectivity],
                style,
                label=name,
            )
        upper.axvline(0.01, color="grey", linewidth=0.8, linestyle=":")
        upper.set(title=f"epsilon {report['epsilon']}", xlabel="coverage", ylabel="square error")
        lower.set(xlabel="selectivity", ylabel="relative error")
        upper.legend()
    figure.savefig(path, dpi=110)


def memory(codes: Codes, schema: Schema) -> dict[str, float]:
    """Peak memory of a Privelet+ release and of its first answer, in copies of the matrix."""
    start = time.perf_counter()
    tracemalloc.start()
    release = make_release(codes, schema, Fraction(1))
    seconds = time.perf_counter() - start
    to_release = tracemalloc.get_traced_memory()[1]
    release.count("")
    to_answer = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    one = 8 * release.plan.cells
    return {
        "cells": release.plan.cells,
        "seconds": seconds,
        "copies_to_release": to_release / one,
        "copies_to_answer": to_answer / one,
    }


def questions(release: NoisyMatrix, schema: Schema) -> dict[str, float]:
    """10,000 written questions at once, against adding up slices of the matrix one by one."""
    rng = np.random.default_rng(5)
    ages = np.sort(rng.integers(0, schema.sizes[0], (10_000, 2)), axis=1)
    incomes = np.sort(rng.integers(0, schema.sizes[3], (10_000, 2)), axis=1)
    jobs = schema.attributes[2].labels
    queries = [
        f"age in {a}..{b} and gender = {'Male' if a % 2 else 'Female'} and "
        f"occupation = '{jobs[int(j)]}' and income in {c}..{d}"
        for (a, b), (c, d), j in zip(ages, incomes, rng.integers(0, len(jobs), 10_000), strict=True)
    ]
    release.counts(queries[:1])  # the prefix sums are made once, here
    start = time.perf_counter()
    release.counts(queries)
    seconds = time.perf_counter() - start
    few = release.plan.stored_axes
    order = release.plan.order
    boxes = random_boxes(axes_of(schema), 40, seed=6)
    start = time.perf_counter()
    for box in boxes:
        release.cells[tuple(slice(*box[i]) for i, _ in zip(order, few, strict=True))].sum()
    naive = (time.perf_counter() - start) / len(boxes) * len(queries)
    return {"seconds_for_10000": seconds, "seconds_by_slicing": naive, "ratio": naive / seconds}


def experiment(
    codes: Codes, schema: Schema, epsilons: Sequence[Fraction], releases: int
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Measure all tables, and the seconds of the last releases."""
    work = make_workload(codes, schema, random_boxes(axes_of(schema), QUERIES, seed=2))
    reports: list[dict[str, Any]] = []
    seconds: dict[str, float] = {}
    for epsilon in epsilons:
        report, seconds = run_epsilon(codes, schema, work, epsilon, releases)
        print_report(report)
        reports.append(report)
    print("\nseconds for a release: " + ", ".join(f"{m} {s:.1f}" for m, s in seconds.items()))
    return reports, seconds


def run_census_like(*, full: bool) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run the experiment on simulated rows, with memory and speed."""
    shape = Shape() if full else Shape(ages=10)
    rows = 10_000_000 if full else 1_000_000
    epsilons = [Fraction(e) for e in (("1/2", "3/4", "1", "5/4") if full else ("1/2", "1"))]
    schema, codes = shape.schema(), shape.rows(rows, seed=1)
    print(f"{rows:,} rows, {' x '.join(map(str, shape.sizes))} cells")
    size = memory(codes, schema)
    print(
        f"Privelet+: {size['cells']:,} cells in {size['seconds']:.1f} s, peak memory "
        f"{size['copies_to_release']:.2f} copies of the matrix, {size['copies_to_answer']:.2f} "
        "with the prefix sums"
    )
    reports, seconds = experiment(codes, schema, epsilons, 1 if full else 3)
    speed = questions(make_release(codes, schema, Fraction(1)), schema)
    print(
        f"10,000 written questions in {speed['seconds_for_10000']:.2f} s; adding up slices would "
        f"take {speed['seconds_by_slicing']:.0f} s, {speed['ratio']:.0f} times as long"
    )
    return reports, {"memory": size, "seconds": seconds, "questions": speed, "reports": reports}


def run_adult(table: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run the experiment on four attributes of the Adult census table."""
    schema = ADULT
    codes = schema.encode(pd.read_csv(table)[list(schema.names)])
    print(f"{codes.rows:,} rows, {' x '.join(map(str, schema.sizes))} cells")
    reports, seconds = experiment(codes, schema, [Fraction(1, 2), Fraction(1)], 5)
    return reports, {"seconds": seconds, "reports": reports}


def axes_of_size(size: int) -> tuple[Axis, ...]:
    """Return two ordered and two nominal attributes."""
    groups = math.isqrt(size)
    leaves = [[leaf(str(code), code) for code in range(g, size, groups)] for g in range(groups)]
    root = Node("", tuple(Node(str(g), tuple(own)) for g, own in enumerate(leaves)))
    tree = ArrayTree.of(Hierarchy(root))
    return (HaarAxis(size), HaarAxis(size), NominalAxis(tree), NominalAxis(tree))


def release_seconds(codes: Codes, plan: WaveletDecisions) -> float:
    """Time one release."""
    start = time.perf_counter()
    noisy_cells(codes, plan, discrete_laplace, OsRandomSource())
    return time.perf_counter() - start


def scaling() -> Iterator[dict[str, float]]:
    """Measure time against rows and cells, with the ratios to the line before [Sec. 8.2].

    Uniform rows over two ordered and two nominal attributes of the same size, the latter with a
    hierarchy of three levels; every attribute is transformed, which is the most expensive choice.
    Time should be linear in the rows and in the padded number of coefficients.
    """
    before: dict[str, float] = {}
    million = 10**6
    for size, rows in (
        (32, million), (32, 2 * million), (32, 4 * million), (36, million), (45, million),
        (54, million),
    ):  # fmt: skip
        rng = np.random.default_rng(size)
        codes = Codes.from_columns([rng.integers(0, size, rows) for _ in range(4)], [size] * 4)
        plans = {m: make_plan(axes_of_size(size), Fraction(1), m, []) for m in METHODS}
        coefficients = math.prod(plans["privelet+"].sub_matrix_shape)
        line: dict[str, float] = {"rows": rows, "cells": size**4, "coefficients": coefficients}
        line |= {method: release_seconds(codes, plan) for method, plan in plans.items()}
        yield line | {f"{key} x": line[key] / before.get(key, line[key]) for key in line}
        before = line


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="101 ages, 10 million rows, 4 epsilons")
    parser.add_argument("--scaling", action="store_true", help="time against rows and cells only")
    parser.add_argument("--adult", type=Path, help="the Adult census table (CSV) instead")
    chosen = parser.parse_args()
    if chosen.scaling:
        lines = list(scaling())
        show(lines, "seconds of a release; ratios are to the line before")
        keep("privelet_scaling", lines)
        return
    if chosen.adult:
        name = "privelet-adult"
        reports, outcome = run_adult(chosen.adult)
    else:
        name = "privelet"
        reports, outcome = run_census_like(full=chosen.full)
    keep(name, outcome)
    plot(reports, RESULTS / f"{name}.png")
    print(f"written: benchmarks/results/{name}.json and .png")


if __name__ == "__main__":
    main()
