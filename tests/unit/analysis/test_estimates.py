"""Estimates and counts: intervals hold the truth, weakened relations are corrected."""

import math

import numpy as np
import pytest

import common.study.steps as steps
import parley
from common.analysis import statistics as kinds
from common.analysis.combining import quantile
from common.analysis.estimates import (
    _corrected,
    estimate,
    pool,
    related,
)
from common.analysis.replicates import Replicates, Replicator, shuffled
from common.analysis.statistics import CodedTable
from common.errors import InputError
from common.schema import Codes
from tests.unit.analysis.estimated import SCHEMA, TABLE, people, small_study, value


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
    monkeypatch.setattr(steps, "draw_noise", lambda plan, _: np.zeros(plan.cells, dtype=np.int64))
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


def test_a_function_rests_on_the_columns_whose_shuffling_changes_it():
    frame = TABLE.frame.assign(age=TABLE.numbers("age"))
    assert related(lambda t: t["age"].mean(), frame) == frozenset()
    assert related(lambda t: t.groupby("letter")["age"].mean(), frame) == {"letter", "age"}


def test_pooling_is_the_rule_for_fully_synthetic_tables():
    estimates, variances = [1.0, 2.0, 4.0, 5.0], [0.5, 0.5, 0.5, 0.5]
    found = pool(estimates, variances)
    between = np.var(estimates, ddof=1)
    assert found.estimate == 3.0
    assert found.standard_error == pytest.approx(math.sqrt(1.25 * between - 0.5))
    assert found.degrees_of_freedom == pytest.approx(3 * (1 - 0.5 / (1.25 * between)) ** 2)
    assert found.high - 3 == pytest.approx(
        quantile(found.degrees_of_freedom, confidence=0.95) * found.standard_error
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
        half = quantile(tables - 1, confidence=0.95) * math.sqrt(
            1 + np.var(estimates, ddof=1) / tables
        )
        other += abs(estimates.mean()) <= half
    assert 930 <= held <= 985
    assert other < 800


@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_pooling_corrects_as_an_estimate_does(spread):
    """A relation of 0.4 of which replicates keep about half; with a wide spread, an amount."""
    values = 0.2 + spread * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    model, apart = 0.4, 0.0
    found = pool(values, model=model, independent=apart)
    corrected, error = _corrected(model, model, apart, values)
    assert (found.estimate, found.standard_error) == pytest.approx((corrected, error))
    assert found.estimate == pytest.approx(0.8 if spread < 0.1 else 0.6)
    assert pool(values, model=model).estimate == pytest.approx(0.6)
    assert pool(values).estimate == pytest.approx(0.2)


def test_pooled_intervals_of_a_weakened_relation_hold_the_truth_only_if_corrected():
    """Each fit keeps 0.6 of a relation of 1, and is off by noise; so is each fit of a fit."""
    rng = np.random.default_rng(4)
    corrected, plain = 0, 0
    for _ in range(500):
        model = 0.6 + rng.normal(0, 0.03)
        values = 0.6 * model + rng.normal(0, 0.03, 20)
        found = pool(values, model=model, independent=0.0)
        corrected += found.low <= 1 <= found.high
        own = pool(values)
        plain += own.low <= 1 <= own.high
    assert corrected > 470
    assert plain < 20


def five(*values):
    """Replicates of a share of one column: the release and its model say a half."""
    one = parley.Schema(PAIR.attributes[:1])

    def rows(share):
        column = (np.arange(10_000) < round(share * 10_000)).astype(np.int64)
        return Codes.from_columns([column], one.sizes)

    return one, Replicates(one, rows(0.5), rows(0.5), tuple(map(rows, values)))


def test_the_interval_is_the_formula_of_the_module():
    """A bias of 0.02, by hand."""
    values = np.array([0.5, 0.51, 0.52, 0.53, 0.54])
    schema, repeated = five(*values)
    (found,) = estimate(kinds.share(schema, "smokes = true"), repeated, confidence=0.9)
    error = math.sqrt(values.var(ddof=1) * (1 + 1 / 5) + 0.02**2)
    assert found.estimate == pytest.approx(0.48)
    assert found.standard_error == pytest.approx(error)
    assert found.high - found.low == pytest.approx(2 * quantile(4, confidence=0.9) * error)


def test_an_interval_of_a_share_stays_between_none_and_all():
    schema, repeated = five(0.0, 0.2, 0.5, 0.8, 1.0)
    (found,) = estimate(kinds.share(schema, "smokes = true"), repeated, confidence=0.999)
    assert (found.low, found.high) == (0.0, 1.0)


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5])
def test_a_confidence_that_is_no_share_is_refused(confidence):
    schema, repeated = five(0.5, 0.5, 0.5, 0.5, 0.5)
    with pytest.raises(InputError, match=r"Write 0\.95"):
        estimate(kinds.share(schema, "smokes = true"), repeated, confidence=confidence)


def test_a_group_that_most_replicates_do_not_have_has_no_interval_and_is_flagged():
    some = np.repeat([0, 1], [9_990, 10])
    none = np.zeros(10_000, np.int64)
    both = np.arange(10_000) % 2

    def rows(smokes):
        return Codes.from_columns([smokes, both], PAIR.sizes)

    repeated = Replicates(PAIR, rows(some), rows(some), tuple(map(rows, (some, none, none, none))))
    by_group = {own.group: own for own in estimate(kinds.mean(PAIR, "ill", by="smokes"), repeated)}
    rare = next(own for group, own in by_group.items() if group == "true")
    assert (rare.low, rare.high, rare.flagged) == (None, None, True)
    assert rare.estimate == pytest.approx(0.5)


def test_shuffled_columns_keep_their_values_and_lose_their_relation():
    shuffled_rows = shuffled(related_rows(0.25))
    smokes, ill = shuffled_rows.columns
    assert (smokes.sum(), ill.sum()) == (20_000, 20_000)
    assert abs((smokes == ill).mean() - 0.5) < 0.02
    again = shuffled(related_rows(0.25))
    assert all(map(np.array_equal, shuffled_rows.columns, again.columns))
