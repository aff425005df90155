"""NOCD against PriView's covering design and direct pairs: the error of all 2-way marginals.

Each design's views are published together at the same epsilon, one share of noise, and every pair
is read off them. The distance is that of the noisy pair tables themselves, projected to the
non-negative tables of the right total, so that the designs alone make the difference.
"""

from __future__ import annotations

import json
from itertools import combinations
from math import exp

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.covering import covering_design
from benchmarks.measuring import RESULTS
from benchmarks.subn_data import Setting
from common.bayes.simplex import onto_simplex
from common.marginals import count
from common.methods.designs.nocd import Design, optimal_design, pairs_design, printed_design
from common.methods.dp_subn.correlation import pair_tables
from common.schema.codes import Codes
from common.schema.encodings import binarise

EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


def pair_error(codes: Codes, design: Design, epsilon: float, seed: int) -> float:
    """The mean total variation distance of all noisy 2-way marginals."""
    generator = np.random.default_rng(seed)
    stop = 1 - exp(-epsilon / (2 * len(design.views)))
    noisy = []
    for table in count(codes, design.views):
        noise = generator.geometric(stop, table.shape) - generator.geometric(stop, table.shape)
        noisy.append((table + noise).astype(np.float64))
    found = pair_tables(design.views, noisy)
    pairs = list(combinations(range(codes.width), 2))
    return float(
        np.mean(
            [
                np.abs(onto_simplex(found[pair], total=codes.rows) - real).sum() / (2 * codes.rows)
                for pair, real in zip(pairs, count(codes, pairs), strict=True)
            ]
        )
    )


def compare_views(console: Console, setting: Setting, runs: int) -> str:
    """A row for each design, a column for each epsilon; also as Markdown."""
    codes = binarise(setting.dataset.codes)
    designs = {
        "NOCD, prime powers": optimal_design(codes.sizes),
        "NOCD, primes": optimal_design(codes.sizes, orders="primes"),
        "NOCD as printed": printed_design(codes.width),
        "PriView, blocks of 8": covering_design(codes.sizes),
        "direct pairs": pairs_design(codes.sizes),
    }
    title = f"{setting.name}: mean distance of all {codes.width * (codes.width - 1) // 2:,} pairs"
    header = ["views", "number", *(f"eps {epsilon:g}" for epsilon in EPSILONS)]
    lines, document = [], {}
    for name, design in designs.items():
        errors = [[pair_error(codes, design, e, run) for run in range(runs)] for e in EPSILONS]
        cells = [f"{np.mean(e):.4f} ±{np.std(e):.4f}" for e in errors]
        lines.append([name, str(len(design.views)), *cells])
        document[name] = errors
    table = Table(*header, title=f"{title}, {runs} runs")
    for line in lines:
        table.add_row(*line)
    console.print(table)
    (RESULTS / "subn-views.json").write_text(json.dumps(document, indent=1))
    rows = [header, ["---"] * len(header), *lines]
    return f"**{title}**\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
