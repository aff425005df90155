"""Replicates: how they scatter, and the intervals that follow."""

import math

import numpy as np
import pytest

import common.release.refit as refit
import common.release.replicates as replicates_module
import parley
from common.errors import InputError
from common.release import statistics as kinds
from common.release.estimates import estimate, pool, t_quantile
from common.release.replicates import Replicates, Replicator
from common.release.statistics import CodedTable
from common.schema import Codes
from tests.unit.release.estimated import SCHEMA, people, value


def small_study(rows, seed):
    return parley.simulate(
        [rows.iloc[::2], rows.iloc[1::2]], SCHEMA,
        epsilon="0.3", method="floor", aggregation="clear", seed=seed,
    )  # fmt: skip


def covered(studies, replicates=12):
    """How often intervals of shares and a mean hold the population's values."""
    truth = CodedTable(SCHEMA, SCHEMA.encode(people(200_000, seed=0)))
    asked = [
        kinds.share(SCHEMA, "letter = c"),
        kinds.share(SCHEMA, "ill = true"),
        kinds.mean(SCHEMA, "age"),
        kinds.mean(SCHEMA, "ill", by=None),
    ]
    held = []
    for seed in range(studies):
        made = small_study(people(900, seed=100 + seed), seed)
        repeated = Replicator(made, made.released, seed, processes=1).run(replicates)
        for statistic in asked:
            (found,) = estimate(statistic, repeated)
            held.append(found.low <= value(statistic, truth) <= found.high)
    return np.mean(held)


def test_intervals_hold_the_truth_and_would_not_without_noise_in_the_replicates(monkeypatch):
    """Seeds are fixed: 25 studies, 100 intervals of nominal 95 %."""
    assert 0.9 <= covered(25) <= 1.0
    monkeypatch.setattr(refit, "draw_noise", lambda plan, _: np.zeros(plan.cells, dtype=np.int64))
    assert covered(10) < 0.85


PAIR = parley.Schema.from_toml(
    """
attribute = [
  { name = "smokes", kind = "boolean" },
  { name = "ill", kind = "boolean" },
]
"""
)


def related_rows(excess, rows=40_000):
    """Half of the rows smoke, half are ill; both are true in a quarter of them and the excess."""
    both = round(rows * (0.25 + excess))
    smokes = np.repeat([0, 1], rows // 2)
    ill = np.concatenate([np.arange(rows // 2) < both, np.arange(rows // 2) >= both])
    return Codes.from_columns([smokes, ill.astype(np.int64)], PAIR.sizes)


@pytest.mark.parametrize(("kept", "expected"), [(0.5, 0.1), (1.0, 0.05), (0.1, 0.15)])
def test_a_relation_that_replicates_weaken_is_taken_to_be_weakened_before(kept, expected):
    """The release shows an excess of 0.05; a correction by more than three times is a guess."""
    scatter = np.array([-2, -1, 0, 1, 2]) * 1e-3
    repeated = Replicates(
        PAIR, related_rows(-0.05), related_rows(-0.05),
        tuple(related_rows(-0.05 * kept + each) for each in scatter),
    )  # fmt: skip
    (found,) = estimate(kinds.share(PAIR, "smokes = true and ill = true"), repeated)
    assert found.estimate == pytest.approx(0.25 + expected, abs=0.01)
    assert found.standard_error >= abs(found.estimate - 0.3)
    (alone,) = estimate(kinds.share(PAIR, "ill = true"), repeated)
    assert alone.estimate == pytest.approx(0.5)


def test_replicates_are_the_same_in_several_processes(monkeypatch):
    made = small_study(people(300), 1)
    told = []
    alone = Replicator(made, made.released, 3, processes=1).run(7)
    monkeypatch.setattr(replicates_module, "_WORTH_S", 1e-9)
    shared = Replicator(made, made.released, 3, processes=2)
    found = shared.run(7, tell=lambda fraction, doing: told.append(fraction))
    for one, other in zip(alone.tables, found.tables, strict=True):
        assert all(map(np.array_equal, one.columns, other.columns))
    assert told == sorted(told)
    assert told[-1] == 1


def test_replicates_scatter_as_samples_of_people_do_where_a_model_draws_in_strata():
    rows = people(1_000)[["ill"]]
    schema = parley.Schema(tuple(a for a in SCHEMA.attributes if a.name in rows.columns))
    made = parley.simulate(
        [rows[::2], rows[1::2]], schema, epsilon=1_000, method="subn+", aggregation="clear", seed=1
    )
    asked = kinds.share(schema, "ill = true")
    (found,) = estimate(asked, Replicator(made, made.released, 1, processes=1).run(60))
    sampling = math.sqrt(found.estimate * (1 - found.estimate) / 1_000)
    assert 0.75 < found.standard_error / sampling < 1.35  # in strata it would be a hundredth


def test_pooling_is_the_rule_for_fully_synthetic_tables():
    estimates, variances = [1.0, 2.0, 4.0, 5.0], [0.5, 0.5, 0.5, 0.5]
    found = pool(estimates, variances)
    between = np.var(estimates, ddof=1)
    assert found.estimate == 3.0
    assert found.standard_error == pytest.approx(math.sqrt(1.25 * between - 0.5))
    assert found.degrees_of_freedom == pytest.approx(3 * (1 - 0.5 / (1.25 * between)) ** 2)
    assert found.high - 3 == pytest.approx(
        t_quantile(found.degrees_of_freedom, 0.95) * found.standard_error
    )
    assert pool(estimates).standard_error == pytest.approx(math.sqrt(1.25 * between))
    assert pool([1.0, 1.0], [0.5, 0.5]).standard_error == pytest.approx(math.sqrt(0.5))
    for wrong in (([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, 2.0], [1.0, -1.0])):
        with pytest.raises(InputError):
            pool(*wrong)


def test_pooled_intervals_hold_the_truth_where_the_rule_for_partly_synthetic_tables_does_not():
    """The model's error has variance 4, the drawing of a table 1; the truth is 0."""
    rng = np.random.default_rng(2)
    tables, held, other = 20, 0, 0
    for _ in range(1_000):
        model = rng.normal(0, 2)
        estimates = model + rng.normal(0, 2, tables) + rng.normal(0, 1, tables)
        found = pool(estimates, np.ones(tables))
        held += found.low <= 0 <= found.high
        half = t_quantile(tables - 1, 0.95) * math.sqrt(1 + np.var(estimates, ddof=1) / tables)
        other += abs(estimates.mean()) <= half
    assert 930 <= held <= 985
    assert other < 800
