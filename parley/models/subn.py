"""SUBN+ for a table of one owner: a study with one party, run on this machine.

>>> fitted = parley.Subn(epsilon=1).fit(table, "schema.toml")
>>> fitted.sample(1000)                     # a table like the input
>>> fitted.count("age in 20..39")           # by the model
>>> fitted.save("release")                  # a folder that may be published
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from common.release.fitted_study import FittedStudy
from common.release.progress import Reporter, silent
from common.release.single_owner import OWNER, Table
from common.schema import Schema
from parley.simulation.study import run_in_process


@dataclass(frozen=True, kw_only=True)
class Subn:
    """How to make a model; `fit` makes it.

    Args:
        epsilon: the budget, spent exactly. Text and fractions are taken as written.
        delta: the probability outside of which epsilon holds; 0 is pure epsilon.
        seed: makes the run repeatable and NOT PRIVATE: for experiments only.
    """

    epsilon: str | Fraction | int | float = 1.0
    delta: str | Fraction | int | float = 0
    seed: int | None = None

    def fit(
        self, table: Table, schema: Schema | Path | str, *, tell: Reporter = silent
    ) -> FittedStudy:
        """Learn a model of the rows at a cost of exactly `epsilon`.

        The schema is the public domains, or the file that holds them; `tell` is told how far the
        work is.

        Raises:
            InputError: a table that does not fit the schema, or an option that cannot be had.
        """
        terms = {"epsilon": self.epsilon, "delta": self.delta, "aggregation": "masked"}
        return run_in_process({OWNER: table}, schema, terms, seed=self.seed, tell=tell)
