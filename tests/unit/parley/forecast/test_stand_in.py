"""Made-up rows that stand in for the owners'."""

from itertools import combinations

import numpy as np

from common.marginals import count
from common.release.evaluation import total_variation
from common.release.report.relations import cramers_v
from common.schema import Schema
from parley.forecast.stand_in import simulated
from parley.simulation.population import demo_schema_toml


def test_simulated_rows_repeat_fit_the_schema_and_depend_as_asked():
    schema = Schema.from_toml(demo_schema_toml())
    first = simulated(schema, 5000, seed=4)
    again, other = simulated(schema, 5000, seed=4), simulated(schema, 5000, seed=5)
    assert all(np.array_equal(a, b) for a, b in zip(first.columns, again.columns, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first.columns, other.columns, strict=True))
    assert first.sizes == schema.sizes
    pairs = list(combinations(range(first.width), 2))
    strength = {}
    for dependence in (0.0, 0.5, 0.95):
        rows = simulated(schema, 5000, seed=4, dependence=dependence)
        strength[dependence] = np.sort([cramers_v(table) for table in count(rows, pairs)])
    assert strength[0.0].max() < 0.12, "independent but for chance"
    assert strength[0.0][-10:].mean() < strength[0.5][-10:].mean() < strength[0.95][-10:].mean()


def test_simulated_marginals_do_not_depend_on_the_dependence():
    schema = Schema.from_toml(demo_schema_toml())
    loose = simulated(schema, 20_000, seed=4, dependence=0.1)
    tight = simulated(schema, 20_000, seed=4, dependence=0.9)
    alone = [(i,) for i in range(loose.width)]
    assert max(total_variation(loose, tight, alone)) < 0.15
