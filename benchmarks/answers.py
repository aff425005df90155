"""What declared analyses gain: errors of declared and of other relations, and their intervals.

Studies of three owners on rows of research tables, whose columns are codes and count as numbers.
Five pairs, drawn from the twenty of the largest correlations, are declared as relations. For each
setting the table has the mean absolute error of a correlation in the synthetic rows, of declared
and of all other pairs, in the plan without declarations and with them (`others` by forecast, and
0); how many of the 95 % intervals of the declared correlations hold what the real rows say; and
the same of the mean of every column.

    make bench-answers
    python -m benchmarks.answers --tables br2000 --rows 5000 --epsilons 1 --repeats 1
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import parley
from benchmarks.coverage_tables import table_of
from benchmarks.measuring import Row, keep, show
from common.analysis.means import known_means
from common.privacy.randomness import SeededRandomSource
from common.schema import Codes, Schema
from parley.reader.fitted import FittedStudy

Pairs = Sequence[tuple[int, int]]
_OWNERS = 3
_DECLARED = 5
_STRONGEST = 20
_PLANS: dict[str, dict[str, object]] = {"without": {}, "forecast": {}, "others 0": {"others": 0}}


def correlations(codes: Codes, pairs: Pairs) -> NDArray[np.float64]:
    """Return the correlations of pairs of columns; 0 where one does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        every = np.corrcoef([column.astype(np.float64) for column in codes.columns])
    return np.asarray(np.nan_to_num([every[pair] for pair in pairs]), np.float64)


def declared_pairs(codes: Codes) -> tuple[Pairs, Pairs]:
    """Return the pairs that are declared, and all others."""
    every = list(combinations(range(codes.width), 2))
    strongest = np.argsort(-np.abs(correlations(codes, every)), kind="stable")[:_STRONGEST]
    chosen = np.random.default_rng(3).choice(strongest, _DECLARED, replace=False)
    declared = [every[place] for place in sorted(chosen.tolist())]
    return declared, [pair for pair in every if pair not in declared]


def study(
    table: pd.DataFrame, schema: Schema, declared: Pairs, plan: str, seed: int, **terms: object
) -> FittedStudy:
    """Run one study."""
    asked = [{"relation": [schema.names[a] for a in pair]} for pair in declared]
    return parley.simulate(
        [table.iloc[place::_OWNERS] for place in range(_OWNERS)],
        schema,
        aggregation="clear",
        seed=seed,
        analyses=[] if plan == "without" else asked,
        **{**_PLANS[plan], **terms},  # type: ignore[arg-type]
    )


def held(fitted: FittedStudy, codes: Codes, schema: Schema, declared: Pairs) -> Iterator[Row]:
    """Say of each interval whether it holds what the real rows say."""
    truths = correlations(codes, declared).tolist()
    for answer, truth in zip(fitted.answers(), truths, strict=bool(fitted.analyses)):
        (own,) = answer.estimates
        if own.low is not None and own.high is not None:
            yield {"of": "declared", "held": own.low <= truth <= own.high,
                   "width": own.high - own.low}  # fmt: skip
    for mean in known_means(fitted):
        truth = float(codes.columns[schema.position(mean.name)].mean())
        yield {"of": "means", "held": mean.low <= truth <= mean.high, "width": mean.high - mean.low}


def measured(name: str, rows: int, epsilon: str, delta: str, repeats: int) -> Iterator[Row]:
    """Measure one setting."""
    schema, codes = table_of(name, rows)
    table = schema.decode(codes, SeededRandomSource("values"))
    declared, others = declared_pairs(codes)
    for plan in _PLANS:
        errors: dict[str, list[float]] = {"declared": [], "others": []}
        intervals: list[Row] = []
        for seed in range(repeats):
            fitted = study(
                table, schema, declared, plan, seed, epsilon=Fraction(epsilon), delta=delta
            )
            for kind, pairs in (("declared", declared), ("others", others)):
                off = correlations(fitted.released, pairs) - correlations(codes, pairs)
                errors[kind].append(float(np.abs(off).mean()))
            intervals += held(fitted, codes, schema, declared)
        yield {
            "table": name, "rows": codes.rows, "epsilon": epsilon, "delta": delta, "plan": plan,
            **{kind: round(float(np.mean(values)), 3) for kind, values in errors.items()},
            **_coverage(intervals, "declared"), **_coverage(intervals, "means"),
        }  # fmt: skip


def _coverage(intervals: Sequence[Row], of: str) -> Row:
    own = [each for each in intervals if each["of"] == of]
    if not own:
        return {f"{of} held": "", f"{of} width": ""}
    return {
        f"{of} held": f"{sum(bool(each['held']) for each in own)} of {len(own)}",
        f"{of} width": round(float(np.median([float(str(each["width"])) for each in own])), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["adult", "br2000"])
    parser.add_argument("--rows", nargs="+", type=int, default=[2000, 5000, 15000, 45000])
    parser.add_argument("--epsilons", nargs="+", default=["0.3", "1", "3"])
    parser.add_argument("--deltas", nargs="+", default=["0", "1e-9"])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    found: list[Row] = []
    for setting in product(given.tables, given.rows, given.epsilons, given.deltas):
        found += measured(*setting, given.repeats)
        show(found[-len(_PLANS) :])
    keep("answers", found)


if __name__ == "__main__":
    main()
