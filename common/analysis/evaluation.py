"""How close is a synthetic table to the real table? For an owner, who may see the real rows.

Four comparisons: total variation distance of all 1-, 2- and 3-way marginals (half the L1 distance
of the two distributions: 0 is perfect, 1 is disjoint), pairwise dependence side by side, the error
of classifiers trained on the synthetic rows and tested on real rows, and, given tables and not
codes, means and medians of numbers. Marginals are compared bin by bin, and within a bin numbers are
drawn evenly: where most of a bin's numbers are at one end of it, as with amounts that are mostly
zero, the marginal is right and the mean is not. The figures are computed from the real rows without
noise: they are for the owner's eyes and not part of a release.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.analysis.diagnostics import dependence
from common.analysis.distances import Distances, LinkedDistances, distances_of, evaluate_linked
from common.errors import InputError
from common.fitted.single_owner import AnySchema, AnyTable, as_arrow, as_schema, encode
from common.marginals import count
from common.marginals.threads import map_in_threads, worker_count
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema import Codes, Schema
from common.schema.binning import Binning
from common.schema.columns import arrow_column, real_numbers
from common.schema.events import PERSON
from common.schema.linked import LinkedCodes, encode_linked
from common.wording import many

TwoTables: TypeAlias = tuple[AnyTable, AnyTable]  # people and events
LOSSES = ("squared-hinge", "hinge")
_MOST_TARGETS = 4
_MOST_TRAINING_ROWS = 20_000
_DRAWS = 1_000
_BINS = (
    "within a bin numbers are drawn uniformly; list edges where most of them are, and give a "
    "number that many rows have, such as 0, a bin of its own"
)
_NOISE = (
    "a few rows of noise in extreme bins move it; a smaller range with clip = true, or fewer bins "
    "there, would help"
)
_FAR = 0.2  # of a standard deviation: no analysis of the mean would come out the same


@dataclass(frozen=True, slots=True)
class Classification:
    """Misclassification rates on held-out real rows when predicting `target`."""

    target: str  # what is predicted
    trained_on_real: float  # by a classifier of real rows
    trained_on_synthetic: float  # by a classifier of synthetic rows
    majority: float  # by always saying the most frequent value of the held-out rows
    # by always saying what a noisy histogram of the other rows has most often [Zhang17, Sec.
    # 6.1], expected over the noise; None if no epsilon was given.
    noisy_majority: float | None = None


@dataclass(frozen=True, slots=True)
class NumberSummary:
    """The numbers of one column in one table."""

    mean: float
    deviation: float
    median: float


@dataclass(frozen=True, slots=True)
class NumberComparison:
    """One column of numbers."""

    name: str
    real: NumberSummary
    synthetic: NumberSummary
    binned_mean: float  # of the real numbers, each drawn evenly from its bin: the best to expect

    @property
    def misfit(self) -> float:
        """The distance that bins alone move the mean, in standard deviations of real numbers."""
        return self._apart(self.binned_mean)

    @property
    def shift(self) -> float:
        return self._apart(self.synthetic.mean)

    def _apart(self, mean: float) -> float:
        deviation = self.real.deviation
        return abs(mean - self.real.mean) / deviation if deviation > 0 else 0.0

    def words(self) -> str:
        """Say what is wrong, and what would help."""
        return (
            f"{self.name}: mean {self.synthetic.mean:,.5g}, real {self.real.mean:,.5g}; median "
            f"{self.synthetic.median:,.5g}, real {self.real.median:,.5g}: "
            f"{_BINS if self.misfit > _FAR else _NOISE}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """Everything `parley evaluate` reports."""

    rows_real: int
    rows_synthetic: int
    schema: Schema
    shares_real: tuple[NDArray[np.float64], ...]
    shares_synthetic: tuple[NDArray[np.float64], ...]
    distances: tuple[Distances, ...]
    dependence_real: NDArray[np.float64]
    dependence_synthetic: NDArray[np.float64]
    classifications: tuple[Classification, ...]
    numbers: tuple[NumberComparison, ...]
    linked: LinkedDistances | None = None  # of events, where the rest is of their people

    def __repr__(self) -> str:
        lines = [self.sizes]
        lines += [
            f"{d.order}-way distance {d.average:.4f}, worst {d.worst:.4f} "
            f"({', '.join(d.worst_attributes)})"
            for d in self.distances
        ]
        return "\n".join([*lines, *(() if self.linked is None else self.linked.lines())])

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def sizes(self) -> str:
        """How many rows, or people, are compared."""
        row = "row" if self.linked is None else "person"
        synthetic = many(self.rows_synthetic, f"synthetic {row}")
        return f"{synthetic} against {many(self.rows_real, f'real {row}')}"

    def as_json(self) -> dict[str, object]:
        """Return plain values; `tvd_1`, `tvd_2`, `tvd_3` are the averages scripts rely on."""
        result: dict[str, object] = {
            "private": False,
            "rows_real": self.rows_real,
            "rows_synthetic": self.rows_synthetic,
        }
        for one in self.distances:
            result[f"tvd_{one.order}"] = one.average
            result[f"tvd_{one.order}_worst"] = one.worst
            result[f"tvd_{one.order}_worst_attributes"] = list(one.worst_attributes)
            result[f"tvd_{one.order}_marginals"] = one.compared
        result["dependence_difference"] = float(
            np.abs(self.dependence_real - self.dependence_synthetic).mean()
        )
        result["classification"] = {
            c.target: {
                name: rate
                for name, rate in asdict(c).items()
                if name != "target" and rate is not None
            }
            for c in self.classifications
        }
        result["numbers"] = {
            n.name: {key: value for key, value in asdict(n).items() if key != "name"}
            for n in self.numbers
        }
        return result if self.linked is None else result | {"linked": self.linked.as_json()}


def evaluate(
    real: Codes | AnyTable | TwoTables,
    synthetic: Codes | AnyTable | TwoTables,
    schema: AnySchema,
    targets: Sequence[str] | None = None,
    *,
    person: str = "",
    loss: str = LOSSES[0],
    majority_epsilon: Fraction | None = None,
) -> Evaluation:
    """Compare two tables of the same schema.

    Args:
        real: the owner's rows, as a table or encoded; with a linked schema, (people, events).
        synthetic: the released rows; their number may differ. With a linked schema, what `sample`
            returns: (people, events), with events in order.
        schema: what both follow.
        targets: attributes to predict; by default up to four with the fewest values.
        person: with a linked schema, the real tables' column that says whose row it is.
        loss: of the support vector machine: "squared-hinge", or "hinge" as in the papers.
        majority_epsilon: report the noisy majority at this epsilon, too.
    """
    if loss not in LOSSES:
        raise InputError(f"loss {loss!r}: choose one of {', '.join(LOSSES)}")
    schema = as_schema(schema)
    if schema.events is not None:
        two = _two_tables(real, where="real"), _two_tables(synthetic, where="synthetic")
        distances = evaluate_linked(*_encoded(*two, schema, person), schema)
        of_people = evaluate(
            two[0][0], two[1][0], schema.people, targets,
            loss=loss, majority_epsilon=majority_epsilon,
        )  # fmt: skip
        return replace(of_people, linked=distances)
    if isinstance(real, tuple) or isinstance(synthetic, tuple):
        raise InputError("schema: it has no [events]. Declare them, or hand over one table each")
    ours = real if isinstance(real, Codes) else encode(real, schema)[0]
    theirs = synthetic if isinstance(synthetic, Codes) else encode(synthetic, schema)[0]
    if ours.rows < 10 or theirs.rows < 10:
        raise InputError("an evaluation needs at least 10 rows in each table")
    coded = isinstance(real, Codes) or isinstance(synthetic, Codes)
    orders = [order for order in (1, 2, 3) if order <= ours.width]
    return Evaluation(
        rows_real=ours.rows,
        rows_synthetic=theirs.rows,
        schema=schema,
        shares_real=_shares(ours),
        shares_synthetic=_shares(theirs),
        distances=tuple(
            distances_of(ours, theirs, schema.names, list(combinations(range(ours.width), order)))
            for order in orders
        ),
        dependence_real=dependence(ours),
        dependence_synthetic=dependence(theirs),
        classifications=_classifications(
            ours, theirs, schema, _targets(schema, targets), loss, majority_epsilon
        ),
        numbers=() if coded else compare_numbers(real, synthetic, schema),
    )


def _two_tables(tables: Codes | AnyTable | TwoTables, *, where: str) -> TwoTables:
    if not isinstance(tables, tuple) or len(tables) != 2:
        raise InputError(f"{where}: the schema has [events]. Hand over (people, events)")
    return tables


def _encoded(
    real: TwoTables, synthetic: TwoTables, schema: Schema, person: str
) -> tuple[LinkedCodes, LinkedCodes]:
    """Return the codes of real and of synthetic people, whose events are in order as they are."""
    if not person:
        raise InputError('person: name the column that joins people and events, as person="id"')
    declared = schema.events and replace(schema.events, order="")
    in_order = replace(schema, events=declared)
    ours, theirs = ([as_arrow(table).to_pandas() for table in pair] for pair in (real, synthetic))
    return (
        encode_linked(schema, *ours, person=person),
        encode_linked(in_order, *theirs, person=PERSON),
    )


def _shares(codes: Codes) -> tuple[NDArray[np.float64], ...]:
    return tuple(table / codes.rows for table in count(codes, [[a] for a in range(codes.width)]))


def _targets(schema: Schema, names: Sequence[str] | None) -> list[str]:
    if names is not None:
        return [schema.names[schema.position(name)] for name in names]
    if len(schema.names) < 2:
        return []
    by_size = sorted(zip(schema.sizes, schema.names, strict=True), key=lambda pair: pair[0])
    return [name for size, name in by_size if size <= 10][:_MOST_TARGETS]


def _classifications(
    real: Codes,
    synthetic: Codes,
    schema: Schema,
    targets: Sequence[str],
    loss: str,
    majority_epsilon: Fraction | None,
) -> tuple[Classification, ...]:
    """Train on real and on synthetic rows, target by target; test on every fifth real row."""
    from sklearn.exceptions import ConvergenceWarning

    held_out = np.arange(real.rows) % 5 == 4
    test = real.take(np.flatnonzero(held_out))
    train = real.take(np.flatnonzero(~held_out))

    def classify(target: str) -> Classification:
        position = schema.position(target)
        majority = np.bincount(test.columns[position]).max() / test.rows
        noisy = None
        if majority_epsilon is not None:
            noisy = noisy_majority(train, test, position, majority_epsilon)
        return Classification(
            target=target,
            trained_on_real=_error(train, test, position, loss),
            trained_on_synthetic=_error(synthetic, test, position, loss),
            majority=1 - float(majority),
            noisy_majority=noisy,
        )

    # liblinear leaves the interpreter lock to others. The solver of the hinge loss draws from one
    # random generator of the whole process, so it repeats its results in one thread only.
    workers = 1 if loss == "hinge" else worker_count(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a rough boundary is good enough here
        return tuple(map_in_threads(classify, targets, workers))


def noisy_majority(train: Codes, test: Codes, position: int, epsilon: Fraction) -> float:
    """Return the error of always saying what a noisy histogram has most often.

    It is expected over `_DRAWS` draws. A replaced row moves two counts by one, so the noise has
    scale 2 / epsilon.
    """
    size = train.sizes[position]
    counts = np.bincount(train.columns[position], minlength=size)
    shares = np.bincount(test.columns[position], minlength=size) / test.rows
    # Seeded, so that figures repeat: nothing is released here, the noise protects no row.
    source = SeededRandomSource("noisy majority")
    noise = discrete_laplace(2 / epsilon, _DRAWS * size, source).reshape(_DRAWS, size)
    return float(1 - shares[(counts + noise).argmax(axis=1)].mean())


def _error(train: Codes, test: Codes, position: int, loss: str) -> float:
    """Return the share of test rows that a linear support vector machine gets wrong."""
    from sklearn.svm import LinearSVC

    step = -(-train.rows // _MOST_TRAINING_ROWS)
    train = train.take(slice(None, None, step))
    answers, truth = train.columns[position], test.columns[position]
    if len(np.unique(answers)) < 2:
        return float((truth != answers[0]).mean())
    hinge = loss == "hinge"
    model = LinearSVC(
        loss="hinge" if hinge else "squared_hinge", dual=hinge, max_iter=300, random_state=0
    )
    model.fit(_one_hot(train, position), answers)
    return float((model.predict(_one_hot(test, position)) != truth).mean())


def _one_hot(codes: Codes, without: int) -> NDArray[np.float32]:
    blocks = [
        np.eye(size, dtype=np.float32)[column]
        for j, (column, size) in enumerate(zip(codes.columns, codes.sizes, strict=True))
        if j != without
    ]
    return np.hstack(blocks)


def compare_numbers(
    real: AnyTable, synthetic: AnyTable, schema: Schema
) -> tuple[NumberComparison, ...]:
    """Compare every column of numbers that has some in both tables."""
    comparisons = []
    for attribute in schema.attributes:
        bins = attribute.domain
        if not isinstance(bins, Binning) or attribute.kind not in ("integer", "real"):
            continue
        ours, theirs = (_numbers(table, attribute.name) for table in (real, synthetic))
        if len(ours) and len(theirs):
            places, _ = bins.assign(ours.astype(np.int64) if bins.whole else ours)
            evenly = float(bins.centre(places).mean())
            comparisons.append(
                NumberComparison(attribute.name, _summary(ours), _summary(theirs), evenly)
            )
    return tuple(comparisons)


def far_off(compared: Sequence[NumberComparison]) -> list[NumberComparison]:
    """Return the columns whose mean is spoilt, or would be but for luck; worst first."""
    return sorted(
        (column for column in compared if max(column.misfit, column.shift) > _FAR),
        key=lambda column: -column.shift,
    )


def _numbers(table: AnyTable, name: str) -> NDArray[np.float64]:
    numbers, _, wrong = real_numbers(arrow_column(as_arrow(table)[name]).drop_null(), None)
    numbers = numbers if wrong is None else numbers[~wrong]
    return numbers[np.isfinite(numbers)]


def _summary(numbers: NDArray[np.float64]) -> NumberSummary:
    return NumberSummary(float(numbers.mean()), float(numbers.std()), float(np.median(numbers)))
