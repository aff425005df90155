"""Every figure and table of the five papers: python -m benchmarks.papers list | run NAME ...

`list` prints each figure with its state: measured (and when, with how many repetitions), not run,
or that it shows no measurement. `run` measures some figures, prints a table for each, and writes
benchmarks/results/papers-NAME.json. `run all` takes hours at the papers' repetitions.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from fractions import Fraction

from benchmarks.measuring import RESULTS, keep, show
from benchmarks.papers import caps, privbayes_figures, privelet_figures, subn_figures
from benchmarks.papers.figure import EPSILONS, Figure, Options
from common.errors import ParleyError

DRAWN = (
    ("privelet-1", "[Xiao11] Fig. 1", "a hierarchy of countries", "docs/your-table.md"),
    ("privelet-2", "[Xiao11] Figs 2 to 4", "worked transforms", "tests/unit/wavelet"),
    ("privelet-5", "[Xiao11] Fig. 5", "the algorithm Privelet+", "common/wavelet/mechanism.py"),
    ("privelet-6", "[Xiao11] Figs 6 to 8", "Privelet*: thresholds", "common/wavelet"),
    ("privbayes-1", "[Zhang17] Figs 1 to 3", "a network, encodings", "docs/privbayes.md"),
    ("privbayes-20", "[Zhang17] Fig. 20", "the change of I", "tests/unit/privacy"),
    ("subn-1", "[Su16] Figs 1 to 3", "the frontier, NOCD", "tests/unit/methods"),
    ("pathak", "[Pathak10] Figs 1, 2", "the protocol, its error", "benchmarks/subn.py"),
)
FIGURES: tuple[Figure, ...] = (
    *privbayes_figures.FIGURES,
    *subn_figures.FIGURES,
    *caps.FIGURES,
    *privelet_figures.FIGURES,
    *(Figure(name=n, paper=p, shows=s, where=w) for n, p, s, w in DRAWN),
)


def state_of(figure: Figure) -> str:
    """Say whether it was measured here, and how."""
    if figure.run is None:
        return f"no measurement; see {figure.where}"
    path = RESULTS / f"{_kept(figure)}.json"
    if not path.is_file():
        return "not run"
    found = json.loads(path.read_text())
    return f"measured {found['at']}, {found['runs']} runs, {found['seconds']:.0f} s"


def _kept(figure: Figure) -> str:
    return f"papers-{figure.name}"


def run(figure: Figure, options: Options) -> None:
    """Measure one figure, print it, and keep it."""
    if figure.run is None:
        print(f"{figure.name}: {state_of(figure)}")
        return
    started = time.perf_counter()
    rows = figure.run(options)
    seconds = time.perf_counter() - started
    show(rows, f"{figure.paper}: {figure.shows} ({options.runs} runs)")
    print(f"the paper finds: {figure.trend}")
    found = {"figure": figure.name, "paper": figure.paper, "runs": options.runs}
    found |= {"at": time.strftime("%Y-%m-%d"), "seconds": seconds, "rows": rows}
    keep(_kept(figure), found)


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("what", choices=["list", "run"], nargs="?", default="list")
    parser.add_argument("names", nargs="*", help="figures, or all")
    parser.add_argument(
        "--runs", type=int, default=3, help="repetitions; the papers have 20 to 100"
    )
    parser.add_argument(
        "--epsilons", type=Fraction, nargs="+", default=EPSILONS, help="of the sweeps: 0.1 1/5"
    )
    given = parser.parse_args(words)
    if given.what == "list":
        show(
            [
                {"name": each.name, "paper": each.paper, "shows": each.shows,
                 "the paper finds": each.trend, "state": state_of(each)}
                for each in FIGURES
            ]
        )  # fmt: skip
        return 0
    known = {figure.name: figure for figure in FIGURES}
    names = list(known) if given.names == ["all"] else given.names
    if unknown := [name for name in names if name not in known] or not names:
        parser.error(f"no figure {unknown}; `list` prints them")
    failed = 0
    for name in names:
        try:
            run(known[name], Options(given.runs, tuple(given.epsilons)))
        except ParleyError as error:  # a table that is not here: the others can still be run
            print(f"{name}: {error}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
