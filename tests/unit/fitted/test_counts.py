"""Counts by rows of a model, with intervals that hold the truth."""

import math

import numpy as np
import pandas as pd
import pytest

import parley
from common.fitted.model import model_count
from common.release.measured import study_noise
from common.schema import Codes
from common.schema.conditions import parse

COUNTED = parley.Schema.from_toml(
    """
attribute = [
  { name = "letter", kind = "categorical", values = ["a", "b", "c", "d"] },
  { name = "ill", kind = "boolean" },
  { name = "age", kind = "integer", min = 0, max = 79, bins = 8 },
]
"""
)
QUERIES = (
    *(f"letter = {letter}" for letter in "abcd"),
    *(f"age in {low}..{low + 9}" for low in range(0, 80, 10)),
    "ill = true",
    "age in 20..49",
)


def counted_people(rows=1_500):
    rng = np.random.default_rng(5)
    letter = rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])
    age = np.clip(rng.normal(40 + 5 * letter, 15, rows), 0, 79).astype(int)
    return pd.DataFrame(
        {"letter": np.array(list("abcd"))[letter], "ill": rng.random(rows) < 0.1, "age": age}
    )


def sample():
    """100 rows: 50 a, of them 10 ill; 50 b, of them 30 ill."""
    letter = np.repeat([0, 1], 50)
    ill = np.r_[np.repeat([1, 0], [10, 40]), np.repeat([1, 0], [30, 20])]
    return Codes.from_columns([letter, ill, np.zeros(100, int)], COUNTED.sizes)


def ask(query, **noise):
    return model_count(query, COUNTED, [sample()], rows=1_000, noise=noise)


def test_noise_of_some_values_of_an_attribute_whose_total_is_known():
    found = ask("letter = a", letter=20.0)
    assert found.value == 500
    assert found.noise_deviation == pytest.approx(20 * math.sqrt(1 * 3 / 4))
    assert found.sampling_deviation == pytest.approx(50)
    assert found.standard_deviation == pytest.approx(math.hypot(50, 20 * math.sqrt(0.75)))
    low, high = found.interval(0.95)
    assert high - found.value == pytest.approx(found.value - low)
    assert 1.96 < (high - found.value - 1) / found.standard_deviation < 2.2


def test_several_attributes_have_no_deviation_of_noise_and_no_interval():
    found = ask("letter = a and ill = true", letter=20.0, ill=30.0)
    assert found.value == 100
    assert found.noise_deviation is None
    assert found.interval(0.95) is None
    assert found.attributes == ("letter", "ill")


def test_a_condition_on_one_attribute_may_have_several_parts():
    both = ask("letter = a or letter = b", letter=20.0)
    assert both.noise_deviation == pytest.approx(20 * math.sqrt(2 * 2 / 4))
    assert ask("not letter = a", letter=20.0).noise_deviation == pytest.approx(
        20 * math.sqrt(3 * 1 / 4)
    )


def test_noise_that_is_not_known_is_not_guessed():
    assert ask("letter = a", ill=30.0).noise_deviation is None
    assert ask("letter = a and ill = true", ill=30.0).noise_deviation is None
    assert ask("letter = a").interval(0.95) is None


def test_an_interval_stays_within_the_table():
    low, high = ask("letter = d", letter=100.0).interval(0.95)
    assert low == 0
    assert 0 < high <= 1_000
    assert ask("", letter=100.0).interval(0.95)[1] == 1_000


def by_rows(codes, rows, noise):
    return lambda query: model_count(query, COUNTED, [codes], rows=rows, noise=noise)


def study_counts(table, seed):
    owners = [table.iloc[start::3] for start in range(3)]
    made = parley.simulate(owners, COUNTED, epsilon=1, aggregation="clear", seed=seed)
    noise = study_noise(made.study, made.steps)
    return by_rows(made.sample_codes(), made.rows, noise)


def privbayes_counts(table, seed):
    made = parley.PrivBayes(epsilon=1, seed=seed).fit(table, COUNTED)
    return by_rows(made.sample_codes(20_000), made.rows, made.noise)


@pytest.mark.parametrize(("release", "runs"), [(study_counts, 5), (privbayes_counts, 4)])
def test_intervals_hold_the_truth_as_often_as_they_say(release, runs):
    """Seeds are fixed. Intervals from the sampling deviation alone held it half of the time."""
    table = counted_people()
    codes = COUNTED.encode(table)
    truths = {query: parse(query, COUNTED).matching(codes) for query in QUERIES}
    hits, widths, errors = 0, [], []
    for seed in range(runs):
        count = release(table, seed)
        for query, truth in truths.items():
            found = count(query)
            low, high = found.interval(0.95)
            hits += low <= truth <= high
            widths.append(found.standard_deviation)
            errors.append(found.value - truth)
    assert hits / (runs * len(truths)) >= 0.9
    assert np.mean(widths) < 2.5 * np.sqrt(np.mean(np.square(errors)))  # and is no empty promise
