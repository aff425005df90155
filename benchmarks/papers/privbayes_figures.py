"""PrivBayes [Zhang17], Figs 4 to 19; [Zhang14]'s Figs 2 to 5 are among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from statistics import fmean

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.papers import classifiers, marginal_methods
from benchmarks.papers.figure import Figure, Options, Row
from benchmarks.papers.marginal_methods import MarginalMethod, average_distance
from benchmarks.privbayes import distance, error_rate, one_hot
from benchmarks.privbayes_data import Dataset, available
from common.bayes.privbayes.constraints import Constraints
from common.bayes.privbayes.decisions import Encoding, PrivBayesOptions
from common.bayes.privbayes.mechanism import ExpandedRows, fit_privbayes
from common.bayes.privbayes.model import PrivBayesModel
from common.bayes.privbayes.scores import Score, mutual_information
from common.errors import InputError
from common.privacy.accountant import Accountant
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.schema.encodings import binarise

BETAS = tuple(Fraction(b, 100) for b in (1, 5, 10, 30, 50, 70, 90))
THETAS = tuple(Fraction(t) for t in ("1/2", "1", "2", "4", "8", "16"))
NO_NOISE = Fraction(10**7)
BASELINES: Mapping[str, MarginalMethod] = {
    "Laplace": marginal_methods.laplace,
    "Fourier": marginal_methods.fourier,
    "Contingency": marginal_methods.contingency,
    "MWEM": marginal_methods.mwem,
    "Uniform": marginal_methods.uniform,
}
LARGEST_MWEM = 1 << 18


def table(name: str) -> Dataset:
    """One research table.

    Raises:
        InputError: it is not on this machine.
    """
    found = {dataset.name: dataset for dataset in available()[0]}
    if name not in found:
        raise InputError(
            f"{name}: the table is not on this machine. Make it with `python -m "
            "benchmarks.research_tables`, and name its folder in RESEARCH_TABLES"
        )
    return found[name]


def fitted(
    data: Dataset, codes: Codes, epsilon: Fraction, seed: str, **wishes: object
) -> PrivBayesModel:
    """A model as printed: no consistency between tables, the printed sensitivity of R."""
    options: dict[str, object] = {
        "encoding": data.encoding,
        "constraints": Constraints(max_parents=data.max_parents),
        "consistency": False,
        "printed_sensitivity": True,
    }
    return fit_privbayes(
        codes,
        epsilon=epsilon,
        source=SeededRandomSource(seed),
        accountant=Accountant({"owner": None}),
        hierarchies=data.hierarchies,
        options=PrivBayesOptions(**{**options, **wishes}),  # type: ignore[arg-type]
    )


def _mean_distances(data: Dataset, models: Iterable[PrivBayesModel]) -> Iterator[float]:
    """Of the two orders of the table."""
    drawn = [
        model.sample(data.codes.rows, SeededRandomSource(f"rows {number}"))
        for number, model in enumerate(models)
    ]
    for order in data.orders:
        yield fmean(distance(data.codes, rows, order) for rows in drawn)


def quality(data: Dataset, model: PrivBayesModel) -> float:
    """The sum of the mutual information of every attribute and its parents, on the real rows."""
    codes = binarise(data.codes) if model.plan.encoding.in_bits else data.codes
    rows = ExpandedRows(model.plan.domain, codes)
    total = 0.0
    for pair in model.network.pairs:
        if pair.parents:
            (counted,) = rows.count([pair.family])
            shaped = counted.reshape(1, counted.shape[0], -1)
            total += float(mutual_information(shaped)[0]) / data.codes.rows
    return total


def scores(options: Options) -> list[Row]:
    """Fig. 4: which score finds the better network."""
    lines = []
    for name, encoding, kinds in (
        ("NLTCS", Encoding.BINARY, Score),
        ("ACS", Encoding.BINARY, Score),
        ("Adult", Encoding.VANILLA, (Score.MUTUAL_INFORMATION, Score.INDEPENDENCE)),
        ("BR2000", Encoding.VANILLA, (Score.MUTUAL_INFORMATION, Score.INDEPENDENCE)),
    ):
        data = table(name)
        for score in kinds:
            line: Row = {"table": name, "score": str(score)}
            for epsilon in options.epsilons:
                models = (
                    fitted(data, data.codes, epsilon, f"{name}{score}{epsilon}{run}",
                           encoding=encoding, score=score)
                    for run in range(options.runs)
                )  # fmt: skip
                line[f"{float(epsilon):g}"] = fmean(quality(data, model) for model in models)
            lines.append(line)
    return lines


def encodings(options: Options, *, name: str) -> list[Row]:
    """Figs 5 and 6: which encoding gives the better marginals."""
    data = table(name)
    lines: list[Row] = []
    for encoding in Encoding:
        found = {}
        for epsilon in options.epsilons:
            models = [
                fitted(data, data.codes, epsilon, f"{name}{encoding}{epsilon}{run}",
                       encoding=encoding)
                for run in range(options.runs)
            ]  # fmt: skip
            found[epsilon] = list(_mean_distances(data, models))
        for place, order in enumerate(data.orders):
            sweep = {f"{float(e):g}": each[place] for e, each in found.items()}
            lines.append({"encoding": str(encoding), "marginals": f"{order}-way", **sweep})
    return lines


def _split(data: Dataset) -> tuple[Codes, Codes]:
    order = np.random.default_rng(80).permutation(data.codes.rows)
    cut = data.codes.rows * 4 // 5
    return data.codes.take(order[:cut]), data.codes.take(order[cut:])


def encodings_svm(options: Options, *, name: str) -> list[Row]:
    """Figs 7 and 8: which encoding gives the better classifiers."""
    data = table(name)
    train, test = _split(data)
    lines: list[Row] = []
    for encoding in Encoding:
        rates: dict[str, Row] = {
            task: {"encoding": str(encoding), "task": task} for task, *_ in data.targets
        }
        for epsilon in options.epsilons:
            drawn = [
                fitted(data, train, epsilon, f"s{encoding}{epsilon}{run}", encoding=encoding)
                .sample(train.rows, SeededRandomSource(f"rows {run}"))
                for run in range(options.runs)
            ]  # fmt: skip
            for target in data.targets:
                rate = fmean(error_rate(rows, test, target) for rows in drawn)
                rates[target[0]][f"{float(epsilon):g}"] = rate
        lines += rates.values()
    return lines


def parameter(options: Options, *, key: str, values: tuple[Fraction, ...]) -> list[Row]:
    """Figs 9 and 10: beta and theta."""
    lines: list[Row] = []
    for name in ("NLTCS", "Adult"):
        data = table(name)
        for epsilon in options.epsilons:
            line: Row = {"table": name, "epsilon": float(epsilon)}
            for value in values:
                models = [
                    fitted(data, data.codes, epsilon, f"{name}{key}{value}{epsilon}{run}",
                           **{key: value})
                    for run in range(options.runs)
                ]  # fmt: skip
                line[f"{key} {float(value):g}"] = next(_mean_distances(data, models))
            lines.append(line)
    return lines


def source_of_error(options: Options) -> list[Row]:
    """Fig. 11: exact network with noisy tables, and noisy network with exact tables."""
    lines: list[Row] = []
    for name in ("NLTCS", "Adult"):
        data = table(name)
        found: dict[str, Row] = {}
        for epsilon in options.epsilons:
            private = [
                fitted(data, data.codes, epsilon, f"{name}{epsilon}{run}")
                for run in range(options.runs)
            ]
            for label, models in (
                ("PrivBayes", private),
                ("BestNetwork", [_best_network(data, model) for model in private]),
                ("BestMarginal", [_best_marginal(data, model) for model in private]),
            ):
                line = found.setdefault(label, {"table": name, "method": label})
                line[f"{float(epsilon):g}"] = next(_mean_distances(data, models))
        lines += found.values()
    return lines


def _best_network(data: Dataset, model: PrivBayesModel) -> PrivBayesModel:
    """The network that is best without noise among those of the plan's size, tables as noisy."""
    plan = model.plan
    if plan.network is not None:
        return model
    limits: dict[str, object] = {}
    if plan.degree is not None:
        limits["constraints"] = Constraints(max_parents=plan.degree)
    else:  # usefulness at no noise that gives the same largest table
        rows, width = data.codes.rows, data.codes.width
        share = Fraction(7, 10) * NO_NOISE
        limits["theta"] = Fraction(rows) * share / (2 * width * max(plan.cells or 1, 1))
    best = fitted(data, data.codes, NO_NOISE, "best network", **limits)
    return fitted(data, data.codes, plan.table_epsilon, "noisy tables", network=best.network)


def _best_marginal(data: Dataset, model: PrivBayesModel) -> PrivBayesModel:
    """The private network with exact tables."""
    codes = binarise(data.codes) if model.plan.encoding.in_bits else data.codes
    families = list(model.tables)
    exact = ExpandedRows(model.plan.domain, codes).count(families)
    return replace(model, tables=dict(zip(families, exact, strict=True)))


def baselines(options: Options, *, name: str) -> list[Row]:
    """Figs 12 to 15: marginals against the baselines."""
    data = table(name)
    binary = set(data.codes.sizes) == {2}
    cells = float(np.prod(np.array(data.codes.sizes, dtype=np.float64)))
    lines: list[Row] = []
    for place, order in enumerate(data.orders):
        bayes: Row = {"method": "PrivBayes", "marginals": f"{order}-way"}
        for epsilon in options.epsilons:
            models = [
                fitted(data, data.codes, epsilon, f"{name}{epsilon}{run}")
                for run in range(options.runs)
            ]
            bayes[f"{float(epsilon):g}"] = list(_mean_distances(data, models))[place]
        lines.append(bayes)
        for label, method in BASELINES.items():
            if (label in ("Fourier", "Contingency") and not binary) or (
                label == "MWEM" and cells > LARGEST_MWEM
            ):
                continue
            line: Row = {"method": label, "marginals": f"{order}-way"}
            for epsilon in options.epsilons:
                line[f"{float(epsilon):g}"] = fmean(
                    average_distance(
                        data.codes,
                        method(data.codes, order, epsilon, SeededRandomSource(f"{label}{run}")),
                        order,
                    )
                    for run in range(options.runs)
                )
            lines.append(line)
    return lines


def baselines_svm(options: Options, *, name: str) -> list[Row]:
    """Figs 16 to 19: classifiers against the baselines; the four tasks share epsilon."""
    data = table(name)
    train, test = _split(data)
    lines: list[Row] = []
    for target in data.targets:
        task, column, positive = target
        ours, theirs = (_unit(one_hot(part, column)) for part in (train, test))
        signs, truth = (
            np.where(positive(np.asarray(part.columns[column])), 1.0, -1.0)
            for part in (train, test)
        )
        found: dict[str, Row] = {}
        for epsilon in options.epsilons:
            quarter = float(epsilon) / len(data.targets)
            for run in range(options.runs):
                rng, source = np.random.default_rng(run), SeededRandomSource(f"{task}{run}")
                synthetic = fitted(data, train, epsilon, f"b{epsilon}{run}").sample(
                    train.rows, source
                )
                said = classifiers.noisy_majority_says(signs, quarter, source)
                rates = {
                    "PrivBayes": error_rate(synthetic, test, target),
                    "PrivateERM": classifiers.error_of(
                        classifiers.private_erm(ours, signs, quarter, rng), theirs, truth
                    ),
                    "PrivateERM (single)": classifiers.error_of(
                        classifiers.private_erm(ours, signs, float(epsilon), rng), theirs, truth
                    ),
                    "PrivGene": classifiers.error_of(
                        classifiers.priv_gene(ours, signs, quarter, rng, source), theirs, truth
                    ),
                    "Majority": float((truth != said).mean()),
                }
                for label, rate in rates.items():
                    line = found.setdefault(label, {"task": task, "method": label})
                    key = f"{float(epsilon):g}"
                    line[key] = float(line.get(key, 0.0)) + rate / options.runs  # type: ignore[arg-type]
        limit = error_rate(train, test, target)
        found["NoPrivacy"] = {"task": task, "method": "NoPrivacy"} | {
            f"{float(e):g}": limit for e in options.epsilons
        }
        lines += found.values()
    return lines


def _unit(rows: csr_matrix) -> csr_matrix:
    """One-hot rows at length one: all have as many ones."""
    return csr_matrix(rows / np.sqrt(rows[0].sum()))


FIGURES = (
    Figure(
        name="privbayes-4", paper="[Zhang17] Fig. 4, [Zhang14] Fig. 2",
        shows="sum of mutual information of the network, by score and epsilon",
        trend="F and R beat I on bits; R beats I on Adult and BR2000; all rise with epsilon",
        run=scores,
    ),
    *(
        Figure(
            name=f"privbayes-{number}", paper=f"[Zhang17] Fig. {number}",
            shows=f"distance of marginals of {name}, by encoding",
            trend="vanilla and hierarchical beat binary and Gray at small epsilon",
            run=partial(encodings, name=name),
        )
        for number, name in ((5, "Adult"), (6, "BR2000"))
    ),
    *(
        Figure(
            name=f"privbayes-{number}", paper=f"[Zhang17] Fig. {number}",
            shows=f"error of four SVMs of {name}, by encoding",
            trend="hierarchical is best and steadiest",
            run=partial(encodings_svm, name=name),
        )
        for number, name in ((7, "Adult"), (8, "BR2000"))
    ),
    Figure(
        name="privbayes-9", paper="[Zhang17] Fig. 9", shows="distance of marginals by beta",
        trend="bad at both ends, good from 0.2 to 0.5",
        run=partial(parameter, key="beta", values=BETAS),
    ),
    Figure(
        name="privbayes-10", paper="[Zhang17] Fig. 10, [Zhang14] Fig. 3",
        shows="distance of marginals by theta", trend="good from 3 to 6",
        run=partial(parameter, key="theta", values=THETAS),
    ),
    Figure(
        name="privbayes-11", paper="[Zhang17] Fig. 11",
        shows="distance of marginals with the best network, and with exact tables",
        trend="most of the error of marginals is noise in tables",
        run=source_of_error,
    ),
    *(
        Figure(
            name=f"privbayes-{number}", paper=f"[Zhang17] Fig. {number}, [Zhang14] Fig. 4",
            shows=f"distance of marginals of {name}, against the baselines",
            trend="PrivBayes is best everywhere",
            run=partial(baselines, name=name),
        )
        for number, name in ((12, "NLTCS"), (13, "ACS"), (14, "Adult"), (15, "BR2000"))
    ),
    *(
        Figure(
            name=f"privbayes-{number}", paper=f"[Zhang17] Fig. {number}, [Zhang14] Fig. 5",
            shows=f"error of four SVMs of {name}, against the baselines",
            trend="PrivBayes beats PrivateERM and PrivGene nearly everywhere",
            run=partial(baselines_svm, name=name),
        )
        for number, name in ((16, "NLTCS"), (17, "ACS"), (18, "Adult"), (19, "BR2000"))
    ),
)  # fmt: skip
