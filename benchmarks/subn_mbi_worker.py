"""MST or AIM on one table, run by the Python of `.venv-mbi`: imports nothing of this project.

    python subn_mbi_worker.py MECHANISM INPUT.npz OUTPUT.npz RHO SEED

The package `mbi` is private-pgm's inference engine; its two mechanisms are not in the package. They
are written here from their papers [McKenna21, McKenna22] with the settings of the authors' own
code (3 standard deviations of domain compression, 10,000 steps of mirror descent for MST; 16 d
rounds, 90 % of the budget for measurements and 80 MB of model for AIM). RHO is the zCDP budget for
add/remove neighbours: who calls decides what that means for replaced rows.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import chain, combinations
from typing import Any

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
from mbi import (  # type: ignore[import-not-found]
    Dataset,
    Domain,
    LinearMeasurement,
    WeightedQuery,
    estimation,
    junction_tree,
)
from numpy.typing import NDArray

Vector = NDArray[np.float64]
_MODEL_MEGABYTES = 80
_WORKLOAD_CELLS = 10_000
_CONVERGED = 1e-6  # relative improvement of a block of steps below which a fit ends early


def measured(data: Any, clique: Any, sigma: float, noise: np.random.Generator) -> Any:  # noqa: ANN401
    """A marginal under Gaussian noise."""
    exact = np.asarray(data.project(clique).datavector(), dtype=float)
    return LinearMeasurement(exact + noise.normal(0, sigma, exact.size), clique, stddev=sigma)


def estimate(data: Any, log: list[Any], steps: int, start: Any = None) -> Any:  # noqa: ANN401
    """The maximum-entropy model of some measurements; with replaced rows the total is public."""
    rows = float(len(data.weights))
    return estimation.MirrorDescent().estimate(
        data.domain, log, known_total=rows, iters=steps, warm_start=start, tol=_CONVERGED
    )


def choose(scores: Vector, epsilon: float, noise: np.random.Generator) -> int:
    """The exponential mechanism, by the Gumbel maximum."""
    return int(np.argmax(0.5 * epsilon * scores + noise.gumbel(size=len(scores))))


def mst(data: Any, rho: float, noise: np.random.Generator) -> Any:  # noqa: ANN401
    """A third of the budget on 1-ways, a third on a spanning tree, a third on its edges."""
    names = data.domain.attributes
    sigma = float(np.sqrt(3 * len(names) / (2 * rho)))
    log = [measured(data, (name,), sigma, noise) for name in names]
    kept = {m.clique[0]: np.asarray(m.noisy_measurement) >= 3 * sigma for m in log}
    small = _compressed(data, kept)
    log = [_compressed_measurement(m, kept[m.clique[0]], sigma) for m in log]
    first = estimate(small, log, 2500)
    edges = _tree(small, first, rho / 3, noise)
    sigma = float(np.sqrt(3 * len(edges) / (2 * rho)))
    log += [measured(small, edge, sigma, noise) for edge in edges]
    made = estimate(small, log, 10_000).synthetic_data().to_dict()
    return {name: _restored(np.asarray(made[name]), kept[name], noise) for name in names}


def _tree(data: Any, model: Any, rho: float, noise: np.random.Generator) -> list[Any]:  # noqa: ANN401
    names = data.domain.attributes
    graph = nx.Graph()
    graph.add_nodes_from(names)
    pairs = list(combinations(names, 2))
    scores = {pair: _error(data, model, pair) for pair in pairs}
    epsilon = float(np.sqrt(8 * rho / (len(names) - 1)))
    for _ in range(len(names) - 1):
        label = {n: i for i, part in enumerate(nx.connected_components(graph)) for n in part}
        open_pairs = [pair for pair in pairs if label[pair[0]] != label[pair[1]]]
        best = choose(np.array([scores[pair] for pair in open_pairs]), epsilon, noise)
        graph.add_edge(*open_pairs[best])
    return [tuple(edge) for edge in graph.edges]


def _error(data: Any, model: Any, clique: Any) -> float:  # noqa: ANN401
    exact, fitted = (np.asarray(of.project(clique).datavector()) for of in (data, model))
    return float(np.abs(exact - fitted).sum())


def _compressed(data: Any, kept: dict[str, NDArray[np.bool_]]) -> Any:  # noqa: ANN401
    """Values below three standard deviations share one code, the last."""
    columns, sizes = {}, {}
    rows = data.to_dict()
    for name, mask in kept.items():
        codes = np.where(mask, np.cumsum(mask) - 1, mask.sum())
        columns[name] = codes[np.asarray(rows[name])]
        sizes[name] = int(mask.sum()) + (0 if mask.all() else 1)
    return Dataset(columns, Domain.fromdict(sizes))


def _compressed_measurement(old: Any, mask: NDArray[np.bool_], sigma: float) -> Any:  # noqa: ANN401
    if mask.all():
        return old
    values = np.asarray(old.noisy_measurement)
    merged = float(np.sqrt((~mask).sum()))  # the merged cell's noise is larger by this
    weights = np.append(np.ones(mask.sum()), 1 / merged)
    answer = np.append(values[mask], values[~mask].sum()) * weights
    return LinearMeasurement(answer, old.clique, stddev=sigma, query=WeightedQuery(weights))


def _restored(
    codes: NDArray[np.int64], mask: NDArray[np.bool_], noise: np.random.Generator
) -> NDArray[np.int64]:
    """Codes in the old domain; a merged value is drawn uniformly."""
    rare = np.flatnonzero(~mask)
    table = np.append(np.flatnonzero(mask), 0)
    restored = table[codes]
    merged = codes == mask.sum()
    if rare.size:
        restored[merged] = noise.choice(rare, int(merged.sum()))
    return restored


def aim(data: Any, rho: float, noise: np.random.Generator) -> Any:  # noqa: ANN401
    """Measures, round by round, the 2-way marginal that the model gets most wrong."""
    names, domain = data.domain.attributes, data.domain
    pairs = [p for p in combinations(names, 2) if domain.size(p) <= _WORKLOAD_CELLS]
    cliques = [*((name,) for name in names), *pairs]
    weights = {c: sum(len(set(c) & set(pair)) for pair in pairs) for c in cliques}
    rounds = 16 * len(names)
    sigma = float(np.sqrt(rounds / (2 * 0.9 * rho)))
    epsilon = float(np.sqrt(8 * 0.1 * rho / rounds))
    log = [measured(data, (name,), sigma, noise) for name in names]
    spent = len(names) * 0.5 / sigma**2
    model = estimate(data, log, 1000)
    last = False
    while not last:
        if rho - spent < 2 * (0.5 / sigma**2 + epsilon**2 / 8):
            sigma = float(np.sqrt(1 / (2 * 0.9 * (rho - spent))))
            epsilon = float(np.sqrt(8 * 0.1 * (rho - spent)))
            last = True
        spent += epsilon**2 / 8 + 0.5 / sigma**2
        limit = _MODEL_MEGABYTES * spent / rho
        small = [c for c in weights if _fits(model, c, limit)]
        bias = float(np.sqrt(2 / np.pi)) * sigma
        scores = [weights[c] * (_error(data, model, c) - bias * domain.size(c)) for c in small]
        largest = max(weights[c] for c in small)
        chosen = small[choose(np.array(scores) / largest, epsilon, noise)]
        before = np.asarray(model.project(chosen).datavector())
        log.append(measured(data, chosen, sigma, noise))
        model = estimate(data, log, 1000, model)
        moved = np.abs(np.asarray(model.project(chosen).datavector()) - before).sum()
        if moved <= bias * domain.size(chosen):
            sigma, epsilon = sigma / 2, epsilon * 2
    return model.synthetic_data(rows=len(data.weights)).to_dict()


def _fits(model: Any, clique: Any, megabytes: float) -> bool:  # noqa: ANN401
    known = set(
        chain.from_iterable(
            combinations(c, n) for c in model.cliques for n in (1, 2) if n <= len(c)
        )
    )
    if clique in known:
        return True
    cliques = [*model.cliques, clique]
    return bool(junction_tree.hypothetical_model_size(model.domain, cliques) <= megabytes)


def main() -> None:
    """Fit, write, and report."""
    mechanism, source, target, rho, seed = sys.argv[1:]
    stored = np.load(source)
    names = [f"c{place}" for place in range(len(stored["sizes"]))]
    domain = Domain(names, [int(size) for size in stored["sizes"]])
    data = Dataset({name: stored["rows"][place] for place, name in enumerate(names)}, domain)
    start = time.perf_counter()
    run = {"MST": mst, "AIM": aim}[mechanism]
    made = run(data, float(rho), np.random.default_rng(int(seed)))
    seconds = time.perf_counter() - start
    np.savez(target, rows=np.array([np.asarray(made[name]) for name in names], dtype=np.int64))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
