"""PrivBayes [Zhang17], Figs 4 to 19; [Zhang14]'s Figs 2 to 5 are among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.measuring import Measured, Row, distance, error_rate, one_hot, sweep
from benchmarks.papers import classifiers, marginal_methods
from benchmarks.papers.classifiers import Floats
from benchmarks.papers.figure import Figure, Options
from benchmarks.papers.marginal_methods import MarginalMethod, average_distance
from benchmarks.research_tables import Dataset, Target, available
from benchmarks.subn_data import Setting
from common.bayes.privbayes.decisions import Encoding, PrivBayesOptions
from common.bayes.privbayes.mechanism import ExpandedRows, fit_privbayes
from common.bayes.privbayes.model import PrivBayesModel
from common.bayes.privbayes.parent_sets import Constraints
from common.bayes.privbayes.scores import Score, mutual_information
from common.errors import InputError
from common.privacy.accountant import Accountant
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes, binarise

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


@cache
def table(name: str) -> Dataset:
    """Load one research table.

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
    """Fit a model as printed: no consistency between tables, the printed sensitivity of R."""
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


def _distances(data: Dataset, model: PrivBayesModel, run: int) -> Measured:
    """Yield the distances of the two orders of the table."""
    drawn = model.sample(data.codes.rows, SeededRandomSource(f"rows {run}"))
    for order in data.orders:
        yield {"marginals": f"{order}-way"}, distance(data.codes, drawn, order)


def quality(data: Dataset, model: PrivBayesModel) -> float:
    """Add up the mutual information of every attribute and its parents, on the real rows."""
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
    both = (Score.MUTUAL_INFORMATION, Score.INDEPENDENCE)

    def measure(epsilon: Fraction, run: int) -> Measured:
        for name, encoding, kinds in (
            ("NLTCS", Encoding.BINARY, tuple(Score)),
            ("ACS", Encoding.BINARY, tuple(Score)),
            ("Adult", Encoding.VANILLA, both),
            ("BR2000", Encoding.VANILLA, both),
        ):
            data = table(name)
            for score in kinds:
                seed = f"{name}{score}{epsilon}{run}"
                model = fitted(data, data.codes, epsilon, seed, encoding=encoding, score=score)
                yield {"table": name, "score": str(score)}, quality(data, model)

    return sweep(options.by_epsilon, options.runs, measure)


def encodings(options: Options, *, name: str) -> list[Row]:
    """Figs 5 and 6: which encoding gives the better marginals."""
    data = table(name)

    def measure(epsilon: Fraction, run: int) -> Measured:
        for encoding in Encoding:
            seed = f"{name}{encoding}{epsilon}{run}"
            model = fitted(data, data.codes, epsilon, seed, encoding=encoding)
            for labels, found in _distances(data, model, run):
                yield {"encoding": str(encoding), **labels}, found

    return sweep(options.by_epsilon, options.runs, measure)


def encodings_svm(options: Options, *, name: str) -> list[Row]:
    """Figs 7 and 8: which encoding gives the better classifiers."""
    data = table(name)
    train, test = Setting(name, data).halves

    def measure(epsilon: Fraction, run: int) -> Measured:
        for encoding in Encoding:
            model = fitted(data, train, epsilon, f"s{encoding}{epsilon}{run}", encoding=encoding)
            drawn = model.sample(train.rows, SeededRandomSource(f"rows {run}"))
            for target in data.targets:
                labels = {"encoding": str(encoding), "task": target[0]}
                yield labels, error_rate(drawn, test, target)

    return sweep(options.by_epsilon, options.runs, measure)


def parameter(options: Options, *, key: str, values: tuple[Fraction, ...]) -> list[Row]:
    """Figs 9 and 10: beta and theta."""

    def measure(value: Fraction, run: int) -> Measured:
        for data in map(table, ("NLTCS", "Adult")):
            for epsilon in options.epsilons:
                seed = f"{data.name}{key}{value}{epsilon}{run}"
                model = fitted(data, data.codes, epsilon, seed, **{key: value})
                _, found = next(_distances(data, model, run))
                yield {"table": data.name, "epsilon": float(epsilon)}, found

    return sweep({f"{key} {float(each):g}": each for each in values}, options.runs, measure)


def theta_on_adult(options: Options) -> list[Row]:
    """Fig. 10 on Adult in its parts: with exact tables only the network errs."""
    data = table("Adult")

    def measure(value: Fraction, run: int) -> Measured:
        for epsilon in options.epsilons:
            model = fitted(data, data.codes, epsilon, f"theta{value}{epsilon}{run}", theta=value)
            for label, each in (
                ("as printed", model),
                ("consistent tables", replace(model, consistency=True)),
                ("exact tables", _best_marginal(data, model)),
            ):
                for labels, found in _distances(data, each, run):
                    yield {"epsilon": float(epsilon), "tables": label, **labels}, found

    return sweep({f"theta {float(each):g}": each for each in THETAS}, options.runs, measure)


def source_of_error(options: Options) -> list[Row]:
    """Fig. 11: exact network with noisy tables, and noisy network with exact tables."""

    def measure(epsilon: Fraction, run: int) -> Measured:
        for data in map(table, ("NLTCS", "Adult")):
            private = fitted(data, data.codes, epsilon, f"{data.name}{epsilon}{run}")
            for label, model in (
                ("PrivBayes", private),
                ("BestNetwork", _best_network(data, private, run)),
                ("BestMarginal", _best_marginal(data, private)),
            ):
                _, found = next(_distances(data, model, run))
                yield {"table": data.name, "method": label}, found

    return sweep(options.by_epsilon, options.runs, measure)


def _best_network(data: Dataset, model: PrivBayesModel, run: int) -> PrivBayesModel:
    """Find the best network of the plan's size without noise, with tables as noisy."""
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
    return fitted(data, data.codes, plan.table_epsilon, f"tables {run}", network=best.network)


def _best_marginal(data: Dataset, model: PrivBayesModel) -> PrivBayesModel:
    """Return the private network with exact tables."""
    codes = binarise(data.codes) if model.plan.encoding.in_bits else data.codes
    families = list(model.tables)
    exact = ExpandedRows(model.plan.domain, codes).count(families)
    return replace(model, tables=dict(zip(families, exact, strict=True)))


def baselines(options: Options, *, name: str) -> list[Row]:
    """Figs 12 to 15: marginals against the baselines."""
    data = table(name)
    cells = float(np.prod(np.array(data.codes.sizes, dtype=np.float64)))
    methods = dict(BASELINES)
    if set(data.codes.sizes) != {2}:
        del methods["Fourier"], methods["Contingency"]
    if cells > LARGEST_MWEM:
        del methods["MWEM"]

    def measure(epsilon: Fraction, run: int) -> Measured:
        model = fitted(data, data.codes, epsilon, f"{name}{epsilon}{run}")
        for labels, found in _distances(data, model, run):
            yield {"method": "PrivBayes", **labels}, found
        for label, method in methods.items():
            for order in data.orders:
                tables = method(data.codes, order, epsilon, SeededRandomSource(f"{label}{run}"))
                labels = {"method": label, "marginals": f"{order}-way"}
                yield labels, average_distance(data.codes, tables, order)

    return sweep(options.by_epsilon, options.runs, measure)


def baselines_svm(options: Options, *, name: str) -> list[Row]:
    """Figs 16 to 19: classifiers against the baselines; the four tasks share epsilon."""
    data = table(name)
    train, test = Setting(name, data).halves
    tasks = {target[0]: _Task.of(target, train, test) for target in data.targets}

    def measure(epsilon: Fraction, run: int) -> Measured:
        source = SeededRandomSource(f"{epsilon}{run}")
        synthetic = fitted(data, train, epsilon, f"b{epsilon}{run}").sample(train.rows, source)
        for name, task in tasks.items():
            rates = task.baselines(epsilon, len(tasks), run, source)
            rates |= {"PrivBayes": error_rate(synthetic, test, task.target)}
            for label, rate in rates.items():
                yield {"task": name, "method": label}, rate

    return sweep(options.by_epsilon, options.runs, measure)


@dataclass(frozen=True)
class _Task:
    """One classification task: rows as unit vectors, and what they are."""

    target: Target
    train: csr_matrix
    test: csr_matrix
    signs: Floats
    truth: Floats
    limit: float

    @classmethod
    def of(cls, target: Target, train: Codes, test: Codes) -> _Task:
        _, column, positive = target
        ours, theirs = (_unit(one_hot(part, column)) for part in (train, test))
        signs, truth = (
            np.where(positive(np.asarray(part.columns[column])), 1.0, -1.0)
            for part in (train, test)
        )
        return cls(target, ours, theirs, signs, truth, error_rate(train, test, target))

    def baselines(
        self, epsilon: Fraction, tasks: int, run: int, source: SeededRandomSource
    ) -> dict[str, float]:
        """Return the error of every comparator; all but one get a part of epsilon for the task."""
        whole, part = float(epsilon), float(epsilon) / tasks
        rng = np.random.default_rng(run)
        learned = {
            "PrivateERM": classifiers.private_erm(self.train, self.signs, part, rng),
            "PrivateERM (single)": classifiers.private_erm(self.train, self.signs, whole, rng),
            "PrivGene": classifiers.priv_gene(self.train, self.signs, part, rng, source),
        }
        said = classifiers.noisy_majority_says(self.signs, part, source)
        return {
            label: classifiers.error_of(weights, self.test, self.truth)
            for label, weights in learned.items()
        } | {"Majority": float((self.truth != said).mean()), "NoPrivacy": self.limit}


def _unit(rows: csr_matrix) -> csr_matrix:
    """Scale one-hot rows to length one; every row has the same number of ones."""
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
        name="privbayes-10-adult", paper="not in a paper",
        shows="Fig. 10 on Adult with tables as printed, consistent, and exact", run=theta_on_adult,
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
