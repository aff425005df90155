"""A small study, tables for it, and the shortest way through a plan: sums in the clear."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.crypto.sums.replacement import ShareKeeper
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes, concatenate
from common.study.document import Member, Study
from common.study.steps import ChoiceStep, ReplaceStep, SumStep, step_digest
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
    model: object

    def spent(self, party):
        return sum((step.costs.get(party, Fraction(0)) for step in self.steps), Fraction(0))


class Driver:
    """Answers the steps of plans over the same tables, one share of noise in every sum."""

    def __init__(self, study, tables, source):
        self.study = study
        self.data = {name: RowsInMemory(table) for name, table in tables.items()}
        self.source = source
        self.keepers = {name: ShareKeeper(name) for name in tables}
        self.vectors = []

    def run(self, plan):
        driven = Driven([], [], [], None)
        while (step := plan.step()) is not None:
            result = self.answer(step)
            driven.steps.append(step)
            driven.results.append(result)
            digest = step_digest(self.study.digest, len(driven.digests), step)
            driven.digests.append(digest)
            plan.advance(result)
        driven.model = plan.model()
        return driven

    def answer(self, step):
        if isinstance(step, ChoiceStep):
            rows = concatenate([self.data[name].codes() for name in step.parties])
            return step.choice.run(RowsInMemory(rows), self.source)
        if isinstance(step, SumStep):
            exact = sum(step.request.answer(self.data[name]) for name in step.parties)
            return exact + step.law.draw(step.request.cells, self.source)
        assert isinstance(step, ReplaceStep)
        name = step.release.party
        if step.group is step.release.groups[0]:
            counts = step.counts(self.data[name])
            self.vectors = self.keepers[name].answer(step.release, counts, self.source)
        total = self.vectors.pop(0)
        if step.group.holder is not None:
            total = total + self.keepers[step.group.holder].hand_over(step.group)
        return total


def drive(plan, study, tables, seed="drive"):
    return Driver(study, tables, SeededRandomSource(seed)).run(plan)


def feed(plan, table, source):
    """Feed a plan of sums the noisy sums of a table; the names of its steps."""
    names = []
    while (step := plan.step()) is not None:
        exact = step.request.answer(RowsInMemory(table))
        plan.advance(exact + step.law.draw(len(exact), source))
        names.append(step.name)
    return names
