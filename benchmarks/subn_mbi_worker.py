"""MST or AIM on one table, run by the Python of `.venv-mbi`: imports nothing of this project.

    python subn_mbi_worker.py MECHANISM INPUT.npz OUTPUT.npz gaussian|laplace BUDGET SEED

The package `mbi` is private-pgm's inference engine; its two mechanisms are not in the package. They
are written here from their papers [McKenna21, McKenna22] with the settings of the authors' own
code (3 standard deviations of domain compression, 10,000 steps of mirror descent for MST; 16 d
rounds, 90 % of the budget for measurements and 80 MB of model for AIM). With Gaussian noise the
budget is rho of zCDP for add/remove neighbours, as in the papers: who calls decides what that means
for replaced rows. With Laplace noise it is a pure epsilon for replaced rows.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
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
_MEASURED = 0.9  # of a round's budget in AIM; the rest chooses
_CONVERGED = 1e-6  # relative improvement of a block of steps below which a fit ends early


@dataclass
class Noise:
    """What a budget buys: noise for a marginal, and a choice by the exponential mechanism.

    Attributes:
        random: the only source of chance here.
        laplace: pure epsilon and one row replaced, which moves a marginal by 2 in the L1 norm, and
            a score by 2; else rho of zCDP and a row more or less, which moves both by 1.
    """

    random: np.random.Generator
    laplace: bool

    def deviation(self, budget: float) -> float:
        """Return the deviation of the noise in a marginal that costs this much."""
        return float(np.sqrt(8) / budget if self.laplace else np.sqrt(1 / (2 * budget)))

    def absolute(self, budget: float) -> float:
        """Return the mean absolute value of that noise."""
        share = np.sqrt(1 / 2) if self.laplace else np.sqrt(2 / np.pi)
        return float(share) * self.deviation(budget)

    def draw(self, budget: float, count: int) -> Vector:
        """Draw noise for a marginal."""
        if self.laplace:
            return self.random.laplace(0, self.absolute(budget), count)
        return self.random.normal(0, self.deviation(budget), count)

    def choose(self, scores: Vector, budget: float) -> int:
        """Choose by the exponential mechanism, as the Gumbel maximum."""
        epsilon = budget / 2 if self.laplace else float(np.sqrt(8 * budget))
        return int(np.argmax(epsilon / 2 * scores + self.random.gumbel(size=len(scores))))

    def next_round(self, budget: float) -> float:
        """Return the price of half of the deviation."""
        return (2 if self.laplace else 4) * budget


def measured(data: Any, clique: Any, budget: float, noise: Noise) -> Any:  # noqa: ANN401
    """Measure a marginal under noise."""
    exact = np.asarray(data.project(clique).datavector(), dtype=float)
    noisy = exact + noise.draw(budget, exact.size)
    return LinearMeasurement(noisy, clique, stddev=noise.deviation(budget))


def estimate(data: Any, log: list[Any], steps: int, start: Any = None) -> Any:  # noqa: ANN401
    """Fit the maximum-entropy model of measurements; with replaced rows the total is public."""
    rows = float(len(data.weights))
    return estimation.MirrorDescent().estimate(
        data.domain, log, known_total=rows, iters=steps, warm_start=start, tol=_CONVERGED
    )


def mst(data: Any, budget: float, noise: Noise) -> Any:  # noqa: ANN401
    """Spend a third of the budget on 1-ways, one on a spanning tree, one on its edges."""
    names = data.domain.attributes
    each = budget / 3 / len(names)
    log = [measured(data, (name,), each, noise) for name in names]
    rare = 3 * noise.deviation(each)
    kept = {m.clique[0]: np.asarray(m.noisy_measurement) >= rare for m in log}
    small = _compressed(data, kept)
    log = [_compressed_measurement(m, kept[m.clique[0]]) for m in log]
    first = estimate(small, log, 2500)
    edges = _tree(small, first, budget / 3, noise)
    log += [measured(small, edge, budget / 3 / len(edges), noise) for edge in edges]
    made = estimate(small, log, 10_000).synthetic_data().to_dict()
    return {name: _restored(np.asarray(made[name]), kept[name], noise) for name in names}


def _tree(data: Any, model: Any, budget: float, noise: Noise) -> list[Any]:  # noqa: ANN401
    names = data.domain.attributes
    graph = nx.Graph()
    graph.add_nodes_from(names)
    pairs = list(combinations(names, 2))
    scores = errors(exact_marginals(data, pairs), model)
    for _ in range(len(names) - 1):
        label = {n: i for i, part in enumerate(nx.connected_components(graph)) for n in part}
        open_pairs = [pair for pair in pairs if label[pair[0]] != label[pair[1]]]
        wrong = np.array([scores[pair] for pair in open_pairs])
        graph.add_edge(*open_pairs[noise.choose(wrong, budget / (len(names) - 1))])
    return [tuple(edge) for edge in graph.edges]


def errors(exact: dict[Any, Vector], model: Any) -> dict[Any, float]:  # noqa: ANN401
    """Return the L1 distance of each of these marginals from the model's."""
    return {c: float(np.abs(values - fitted(model, c)).sum()) for c, values in exact.items()}


def exact_marginals(data: Any, cliques: list[Any]) -> dict[Any, Vector]:  # noqa: ANN401
    """Count once what the mechanisms compare a model with."""
    return {c: np.asarray(data.project(c).datavector(), dtype=float) for c in cliques}


def fitted(model: Any, clique: Any) -> Vector:  # noqa: ANN401
    """Return a marginal of a model.

    The engine's own way for a clique that is not in the model translates a program for every clique
    and every model: half a minute for 120 pairs of bits. This is the same elimination in numpy.
    """
    if model.marginals.supports(clique):
        return np.asarray(model.project(clique).datavector(), dtype=float)
    factors = [(c, np.asarray(f.values, float)) for c, f in model.potentials.tables.items()]
    order, _ = junction_tree.greedy_order(
        model.domain, [*model.cliques, clique], elim=model.domain.invert(clique)
    )
    for gone in order:
        touched = [factor for factor in factors if gone in factor[0]]
        factors = [factor for factor in factors if gone not in factor[0]]
        if touched:
            names, values = _log_product(touched, ())
            factors.append((tuple(n for n in names if n != gone), _summed(values, names, gone)))
    _, values = _log_product(factors, clique)
    shares = np.exp(values - values.max())
    return np.asarray(shares.ravel() / shares.sum() * float(model.total))


def _log_product(factors: list[Any], first: tuple[str, ...]) -> tuple[tuple[str, ...], Vector]:
    """Add up log potentials over all their names, `first` in front."""
    names = tuple(dict.fromkeys([*first, *chain.from_iterable(f[0] for f in factors)]))
    total: Any = 0.0
    for own, values in factors:
        ordered = sorted(own, key=names.index)
        turned = np.transpose(values, [own.index(name) for name in ordered])
        total = total + turned.reshape(
            [turned.shape[ordered.index(n)] if n in own else 1 for n in names]
        )
    return names, total


def _summed(values: Vector, names: tuple[str, ...], gone: str) -> Vector:
    """Return the logarithm of the sum over one name."""
    axis = names.index(gone)
    most = values.max(axis=axis, keepdims=True)
    return np.asarray(np.log(np.exp(values - most).sum(axis=axis)) + most.squeeze(axis))


def _compressed(data: Any, kept: dict[str, NDArray[np.bool_]]) -> Any:  # noqa: ANN401
    """Values below three standard deviations share one code, the last."""
    columns, sizes = {}, {}
    rows = data.to_dict()
    for name, mask in kept.items():
        codes = np.where(mask, np.cumsum(mask) - 1, mask.sum())
        columns[name] = codes[np.asarray(rows[name])]
        sizes[name] = int(mask.sum()) + (0 if mask.all() else 1)
    return Dataset(columns, Domain.fromdict(sizes))


def _compressed_measurement(old: Any, mask: NDArray[np.bool_]) -> Any:  # noqa: ANN401
    if mask.all():
        return old
    values = np.asarray(old.noisy_measurement)
    merged = float(np.sqrt((~mask).sum()))  # the merged cell's noise is larger by this
    weights = np.append(np.ones(mask.sum()), 1 / merged)
    answer = np.append(values[mask], values[~mask].sum()) * weights
    return LinearMeasurement(answer, old.clique, stddev=old.stddev, query=WeightedQuery(weights))


def _restored(codes: NDArray[np.int64], mask: NDArray[np.bool_], noise: Noise) -> NDArray[np.int64]:
    """Return codes in the old domain; a merged value is drawn uniformly."""
    rare = np.flatnonzero(~mask)
    table = np.append(np.flatnonzero(mask), 0)
    restored = table[codes]
    merged = codes == mask.sum()
    if rare.size:
        restored[merged] = noise.random.choice(rare, int(merged.sum()))
    return restored


def aim(data: Any, budget: float, noise: Noise) -> Any:  # noqa: ANN401
    """Measures, round by round, the 2-way marginal that the model gets most wrong."""
    names, domain = data.domain.attributes, data.domain
    pairs = [p for p in combinations(names, 2) if domain.size(p) <= _WORKLOAD_CELLS]
    cliques = [*((name,) for name in names), *pairs]
    weights = {c: sum(len(set(c) & set(pair)) for pair in pairs) for c in cliques}
    exact = exact_marginals(data, cliques)
    a_round = budget / (16 * len(names))
    log = [measured(data, (name,), _MEASURED * a_round, noise) for name in names]
    spent = len(names) * _MEASURED * a_round
    model = estimate(data, log, 1000)
    last = False
    while not last:
        if last := budget - spent < 2 * a_round:
            a_round = budget - spent
        spent += a_round
        small = [c for c in weights if _fits(model, c, _MODEL_MEGABYTES * spent / budget)]
        bias = noise.absolute(_MEASURED * a_round)
        wrong = errors({c: exact[c] for c in small}, model)
        scores = [weights[c] * (wrong[c] - bias * domain.size(c)) for c in small]
        largest = max(weights[c] for c in small)
        chosen = small[noise.choose(np.array(scores) / largest, (1 - _MEASURED) * a_round)]
        before = fitted(model, chosen)
        log.append(measured(data, chosen, _MEASURED * a_round, noise))
        model = estimate(data, log, 1000, model)
        if np.abs(fitted(model, chosen) - before).sum() <= bias * domain.size(chosen):
            a_round = noise.next_round(a_round)
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
    """Fit, and write rows."""
    mechanism, source, target, kind, budget, seed = sys.argv[1:]
    stored = np.load(source)
    names = [f"c{place}" for place in range(len(stored["sizes"]))]
    domain = Domain(names, [int(size) for size in stored["sizes"]])
    data = Dataset({name: stored["rows"][place] for place, name in enumerate(names)}, domain)
    np.random.seed(int(seed))  # noqa: NPY002 (the engine draws its rows from there)
    noise = Noise(np.random.default_rng(int(seed)), laplace=kind == "laplace")
    made = {"MST": mst, "AIM": aim}[mechanism](data, float(budget), noise)
    np.savez(target, rows=np.array([np.asarray(made[name]) for name in names], dtype=np.int64))


if __name__ == "__main__":
    main()
