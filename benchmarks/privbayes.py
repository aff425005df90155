"""PrivBayes: utility against the papers' setting, speed against public implementations.

`python -m benchmarks.privbayes` runs, on the research tables that are on this machine,

* the average total variation distance of all small marginals over epsilon 0.05 .. 1.6, with and
  without consistency, beside the reference figures of a plain implementation;
* four SVM misclassification rates per table, trained on synthetic and tested on real rows;
* the time of a fit with sampling, and that of peers that can be installed (not if `--no-peers`).

The peers live in an environment of their own, `.venv-peers`, with the versions of `peers.txt`,
installed without their declared dependencies because two of the three contradict each other there.
They are slow, so they get a sample of the rows of NLTCS, two parents, and a time limit; the table
says so. It prints tables and writes privbayes.json and plots into benchmarks/results. Distances to
the real table are for research: in a release they would have to be paid for.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from rich.console import Console

from benchmarks import peers
from benchmarks.measuring import RESULTS, distance, error_rate, keep, show
from benchmarks.research_tables import DATA, Dataset, available
from common.bayes.privbayes.decisions import PrivBayesOptions
from common.bayes.privbayes.mechanism import fit_privbayes
from common.bayes.privbayes.model import PrivBayesModel
from common.bayes.privbayes.parent_sets import Constraints
from common.privacy.accountant import Accountant
from common.privacy.randomness import RandomSource, SeededRandomSource
from common.schema.codes import Codes

PEERS = ("DataSynthesizer", "dpart", "dpmm")
PEER_ROWS = 2000
PARENTS = 2
PEER_EPSILON = Fraction(8, 5)
PEER_TARGETS = {"DataSynthesizer": 20.0}
EPSILONS = tuple(Fraction(n, 20) for n in (1, 2, 4, 8, 16, 32))
# Mean distances of a plain implementation (printed sensitivities, clipping at zero) over EPSILONS,
# for the lower and the higher order.
REFERENCE: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "NLTCS": (
        (0.193, 0.136, 0.101, 0.069, 0.055, 0.035),
        (0.252, 0.183, 0.136, 0.095, 0.075, 0.050),
    ),
    "ACS": ((0.102, 0.086, 0.060, 0.033, 0.021, 0.016), (0.132, 0.112, 0.079, 0.046, 0.031, 0.025)),
    "Adult": (
        (0.211, 0.136, 0.112, 0.098, 0.084, 0.074),
        (0.314, 0.226, 0.183, 0.164, 0.139, 0.118),
    ),
    "BR2000": (
        (0.140, 0.093, 0.081, 0.065, 0.054, 0.045),
        (0.214, 0.154, 0.136, 0.112, 0.091, 0.072),
    ),
}


@dataclass(frozen=True)
class Utility:
    """Average total variation distances of one table at one epsilon, over some runs."""

    dataset: str
    epsilon: float
    orders: tuple[int, int]
    plain: tuple[float, float]
    consistent: tuple[float, float]
    standard_error: tuple[float, float]
    reference: tuple[float, float]
    seconds: float

    def verdict(self, place: int) -> str:
        """Return whether the reference is reached; a gap below two standard errors is no miss."""
        gap = self.consistent[place] - self.reference[place]
        reached = "met" if gap <= 0 else "MISSED"
        if 0 < gap <= 2 * self.standard_error[place]:
            reached = "within noise"
        helps = self.consistent[place] <= self.plain[place]
        return reached if helps else f"{reached}, consistency hurts"


@dataclass(frozen=True)
class Classification:
    """Misclassification rates of SVMs on real rows."""

    dataset: str
    task: str
    epsilon: float
    synthetic: float
    no_privacy: float
    majority: float


def fit(dataset: Dataset, codes: Codes, epsilon: Fraction, source: RandomSource) -> PrivBayesModel:
    """Fit a model with the defaults, at the papers' encoding and cap for this table."""
    return fit_privbayes(
        codes,
        epsilon=epsilon,
        source=source,
        accountant=Accountant({"owner": None}),
        hierarchies=dataset.hierarchies,
        options=PrivBayesOptions(
            encoding=dataset.encoding, constraints=Constraints(max_parents=dataset.max_parents)
        ),
    )


def measure_utility(dataset: Dataset, runs: int) -> list[Utility]:
    """Distances with and without consistency, from the same noisy tables."""
    results = []
    for place, epsilon in enumerate(EPSILONS):
        found, seconds = [], []
        for run in range(runs):
            source = SeededRandomSource(f"{dataset.name} {epsilon} {run}")
            start = time.perf_counter()
            model = fit(dataset, dataset.codes, epsilon, source)
            synthetic = model.sample(dataset.codes.rows, source)
            seconds.append(time.perf_counter() - start)
            plain = replace(model, consistency=False).sample(dataset.codes.rows, source)
            found.append(
                [distance(dataset.codes, s, o) for s in (plain, synthetic) for o in dataset.orders]
            )
        mean = np.mean(found, axis=0)
        error = np.std(found, axis=0) / max(runs - 1, 1) ** 0.5
        results.append(
            Utility(
                dataset=dataset.name,
                epsilon=float(epsilon),
                orders=dataset.orders,
                plain=(float(mean[0]), float(mean[1])),
                consistent=(float(mean[2]), float(mean[3])),
                standard_error=(float(error[2]), float(error[3])),
                reference=(REFERENCE[dataset.name][0][place], REFERENCE[dataset.name][1][place]),
                seconds=min(seconds),
            )
        )
    return results


def measure_classification(dataset: Dataset, runs: int) -> list[Classification]:
    """Four SVMs from one synthetic table: fitted on 80 % of the rows, tested on the rest."""
    order = np.random.default_rng(80).permutation(dataset.codes.rows)
    cut = dataset.codes.rows * 4 // 5
    train, test = dataset.codes.take(order[:cut]), dataset.codes.take(order[cut:])
    limits = {task[0]: error_rate(train, test, task) for task in dataset.targets}
    results = []
    for epsilon in EPSILONS:
        rates: dict[str, list[float]] = {task[0]: [] for task in dataset.targets}
        for run in range(runs):
            source = SeededRandomSource(f"svm {dataset.name} {epsilon} {run}")
            synthetic = fit(dataset, train, epsilon, source).sample(train.rows, source)
            for task in dataset.targets:
                rates[task[0]].append(error_rate(synthetic, test, task))
        for name, column, positive in dataset.targets:
            share = float(positive(test.columns[column]).mean())
            results.append(
                Classification(
                    dataset=dataset.name,
                    task=name,
                    epsilon=float(epsilon),
                    synthetic=float(np.mean(rates[name])),
                    no_privacy=limits[name],
                    majority=min(share, 1 - share),
                )
            )
    return results


def show_utility(results: Sequence[Utility]) -> None:
    """Print one line per table and epsilon."""
    show(
        [
            {
                "table": each.dataset,
                "eps": each.epsilon,
                "order": order,
                "plain": each.plain[place],
                "consistent": each.consistent[place],
                "±": each.standard_error[place],
                "reference": each.reference[place],
                "verdict": each.verdict(place),
                "fit + sample, s": each.seconds,
            }
            for each in results
            for place, order in enumerate(each.orders)
        ]
    )


def show_classification(results: Sequence[Classification]) -> None:
    """Print one line per task, a column per epsilon."""
    lines: dict[tuple[str, str], dict[str, object]] = {}
    for each in results:
        known: dict[str, object] = {
            "table": each.dataset,
            "task": each.task,
            "real rows": each.no_privacy,
            "majority": each.majority,
        }
        line = lines.setdefault((each.dataset, each.task), known)
        line[f"eps {each.epsilon:g}"] = each.synthetic
    show(list(lines.values()))


def plot(utility: Sequence[Utility], classification: Sequence[Classification]) -> None:
    """Draw a picture of distances and one of error rates, a panel per table."""
    names = list(dict.fromkeys(each.dataset for each in utility))
    for title, draw in (("distance", _draw_distances), ("misclassification", _draw_rates)):
        figure, axes = plt.subplots(1, len(names), figsize=(4.5 * len(names), 4), squeeze=False)
        for name, panel in zip(names, axes[0], strict=True):
            mine = [e for e in utility if e.dataset == name]
            draw(panel, mine, [e for e in classification if e.dataset == name])
            panel.set(title=name, xscale="log", xlabel="epsilon", ylabel=title, ylim=(0, None))
            panel.legend(fontsize=7)
        figure.tight_layout()
        figure.savefig(RESULTS / f"privbayes-{title}.png", dpi=120)
        plt.close(figure)


def _draw_distances(panel: Axes, lines: list[Utility], _: list[Classification]) -> None:
    for place in range(2):
        for kind, style in (("consistent", "-"), ("plain", "--"), ("reference", ":")):
            values = [getattr(each, kind)[place] for each in lines]
            label = f"{lines[0].orders[place]}-way, {kind}"
            panel.plot([e.epsilon for e in lines], values, style, color=f"C{place}", label=label)


def _draw_rates(panel: Axes, _: list[Utility], lines: list[Classification]) -> None:
    for place, task in enumerate(dict.fromkeys(each.task for each in lines)):
        mine = [each for each in lines if each.task == task]
        panel.plot(
            [e.epsilon for e in mine], [e.synthetic for e in mine], color=f"C{place}", label=task
        )
        panel.axhline(mine[0].no_privacy, linestyle=":", color=f"C{place}")


@dataclass(frozen=True)
class PeerResult:
    """One implementation on the sample; no seconds means that it did not finish."""

    name: str
    seconds: float | None
    distance: float | None
    times_ours: float | None
    note: str


def compare_with_peers(
    console: Console, datasets: Sequence[Dataset], limit_s: float
) -> list[PeerResult]:
    """Fit and sample the same rows with ours and with every peer that runs here."""
    nltcs = next((each for each in datasets if each.name == "NLTCS"), None)
    if nltcs is None:
        console.print("skipped: the peers are compared on NLTCS, which is not here")
        return []
    # The file is sorted: its first rows are all alike.
    some = nltcs.codes.take(np.random.default_rng(1).permutation(nltcs.codes.rows)[:PEER_ROWS])
    ours = _ours(nltcs, some)
    results = [ours, *(_peer(name, some, ours.seconds or 0.0, limit_s) for name in PEERS)]
    title = f"NLTCS, {PEER_ROWS:,} random rows, epsilon {float(PEER_EPSILON):g}, {PARENTS} parents"
    show([asdict(each) | {"target": PEER_TARGETS.get(each.name, "")} for each in results], title)
    return results


def _ours(dataset: Dataset, codes: Codes) -> PeerResult:
    two_parents = replace(dataset, max_parents=PARENTS)
    for _ in range(2):  # the first run translates the kernels
        source = SeededRandomSource("peers")
        start = time.perf_counter()
        synthetic = fit(two_parents, codes, PEER_EPSILON, source).sample(codes.rows, source)
        seconds = time.perf_counter() - start
    return PeerResult("parley", seconds, distance(codes, synthetic, 3), 1.0, "")


def _peer(name: str, codes: Codes, ours: float, limit_s: float) -> PeerResult:
    with tempfile.TemporaryDirectory() as folder:
        rows, made = Path(folder, "rows.csv"), Path(folder, "made.csv")
        columns = {f"c{j}": column for j, column in enumerate(codes.columns)}
        pd.DataFrame(columns).to_csv(rows, index=False)
        words = (name, rows, made, float(PEER_EPSILON), PARENTS)
        try:
            printed = peers.PRIVBAYES.run(*words, most_seconds=limit_s)
        except peers.PeerTimeoutError as error:
            return PeerResult(name, None, None, limit_s / ours, str(error))
        except peers.PeerError as error:
            return PeerResult(name, None, None, None, str(error))
        seconds = float(json.loads(printed.splitlines()[-1])["seconds"])
        frame = pd.read_csv(made)
        drawn = [frame[f"c{j}"].to_numpy() for j in range(codes.width)]
    synthetic = Codes.from_columns(drawn, codes.sizes)
    return PeerResult(name, seconds, distance(codes, synthetic, 3), seconds / ours, "")


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=5, help="runs per table and epsilon (papers: 100)"
    )
    parser.add_argument("--no-peers", action="store_true", help="do not install and time the peers")
    parser.add_argument("--peer-limit", type=float, default=200, help="seconds a peer may take")
    arguments = parser.parse_args()
    console = Console(width=120)
    datasets, absent = available()
    for name in absent:
        console.print(f"skipped: {name}.csv is not in {DATA}")
    utility = [each for dataset in datasets for each in measure_utility(dataset, arguments.runs)]
    show_utility(utility)
    classification = [each for dataset in datasets for each in measure_classification(dataset, 1)]
    show_classification(classification)
    found = {"runs": arguments.runs, "utility": utility, "classification": classification}
    if not arguments.no_peers:
        found["peers"] = compare_with_peers(console, datasets, arguments.peer_limit)
    keep("privbayes", found)
    if utility:
        mpl.use("Agg")
        plot(utility, classification)


if __name__ == "__main__":
    main()
