"""A small study, tables for it, and the shortest way through a plan: sums in the clear."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes
from common.study import script
from common.study.analyses import Analysis
from common.study.document import Study
from common.study.members import Member
from common.study.steps import OnePlace, Result, Step, step_digest
from parley.simulation.in_process import RowsInMemory

_IDENTITIES = {
    name: Identity.generate(SeededRandomSource(name)) for name in [f"p{i}" for i in range(10)]
}


def schema_of(sizes):
    attributes = [
        f'[[attribute]]\nname = "a{i}"\nkind = "categorical"\n'
        f"values = {[str(v) for v in range(size)]}\n"
        for i, size in enumerate(sizes)
    ]
    return Schema.from_toml("\n".join(attributes))


# What a study of method answers asks, where a test is about any method.
ANALYSES = (Analysis("relation", ("a0", "a1")), Analysis("share", ("a0 = 0",)))


def study_of(tables, **changes):
    """Make a study of these parties' tables."""
    sizes = next(iter(tables.values())).sizes
    fields = {
        "name": "test",
        "schema": schema_of(sizes),
        "members": tuple(
            Member(name=name, rows=table.rows, identity=_IDENTITIES[name].public)
            for name, table in tables.items()
        ),
        "epsilon": Fraction(1),
        "method": "dp-subn",
        "aggregation": Aggregation.MASKED,
        **({"analyses": ANALYSES} if changes.get("method") == "answers" else {}),
        **changes,
    }
    return Study(**fields)


def identities_of(tables):
    return {name: _IDENTITIES[name] for name in tables}


def random_tables(sizes, rows, seed=1):
    """Draw one table for each row count; the parties are p0, p1, ..."""
    rng = np.random.default_rng(seed)
    return {
        f"p{i}": Codes.from_columns([rng.integers(0, s, count) for s in sizes], sizes)
        for i, count in enumerate(rows)
    }


def with_settings(study, **settings):
    """Return the study with settings of its method."""
    return replace(study, settings=tuple(sorted(settings.items())))


def chain_tables(attributes, rows, seed=1, flip=0.1):
    """Binary chains a0 -> a1 -> ...: each attribute repeats the one before but for a few rows."""
    rng = np.random.default_rng(seed)
    tables = {}
    for i, count in enumerate(rows):
        columns = [rng.integers(0, 2, count)]
        for _ in range(attributes - 1):
            columns.append(columns[-1] ^ (rng.random(count) < flip))
        tables[f"p{i}"] = Codes.from_columns(columns, [2] * attributes)
    return tables


@dataclass
class Driven:
    """A plan that came to its end."""

    steps: list
    results: list
    digests: list
    model: Any

    def spent(self, party):
        return sum((step.costs.get(party, Fraction(0)) for step in self.steps), Fraction(0))

    def fed_to(self, copy):
        """Return the model of a copy that sees these results, and must ask for these steps."""
        for step, result in zip(self.steps, self.results, strict=True):
            assert (copy.step().canonical, copy.step().costs) == (step.canonical, step.costs)
            copy.advance(result)
        assert copy.step() is None
        return copy.model()


class Driver(OnePlace):
    """Answers the steps of plans as the roles would publish them, in one copy of the script.

    Sums are exact counts of all rows together, under one share of noise.
    """

    def __init__(self, study, tables, source) -> None:
        super().__init__(study, tables, source)
        self.steps, self.results = list[Step](), list[Result]()
        self._pooled = dict[tuple[str, ...], RowsInMemory]()

    def run(self, plan) -> Driven:
        """Take a plan to its end."""
        self.steps, self.results, digests = [], [], []

        def answer(step):
            result = self.answer(step)
            digests.append(step_digest(self.study.digest, len(self.steps), step))
            self.steps.append(step)
            self.results.append(result)
            return result

        script.drive(plan, answer)
        return Driven(self.steps, self.results, digests, plan.model())

    def rows(self, *parties):
        if parties not in self._pooled:
            self._pooled[parties] = super().rows(*parties)
        return self._pooled[parties]

    def noise(self, step, plan):
        """Draw one share."""
        return step.law.draw(step.cells, self.source)


def drive(plan, study, tables, seed="drive"):
    return Driver(study, tables, SeededRandomSource(seed)).run(plan)


def feed(plan, table, source):
    """Feed a plan of sums the noisy sums of a table; return the names of its steps."""
    names = []

    def answer(step):
        names.append(step.name)
        exact = step.request.answer(RowsInMemory(table))
        return exact + step.law.draw(len(exact), source)

    script.drive(plan, answer)
    return names
