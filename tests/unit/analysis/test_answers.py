"""Declared analyses, answered: one function, the same numbers everywhere, intervals that hold."""

from fractions import Fraction

import numpy as np
import pytest

import parley
from common.analysis.answers import Answers, statistics_of
from common.analysis.statistics import CodedTable, mean, regression
from common.study.analyses import read_analyses
from parley.simulation.population import demo_schema_toml, make_population

SCHEMA = parley.Schema.from_toml(demo_schema_toml())
ASKED = [
    'mean = "income", by = ["sex", "smoker"]',
    {"relation": ["age", "income"]},
    'relation = ["region", "smoker"]',
    'relation = ["region", "education"]',
    'share = "smoker = true", by = "education"',
    'regression = "income ~ age + sex"',
    'survival = ["age", "chronic_illness"], by = "sex"',
    'mean = "age"',
]


def study(people, seed=1, **terms):
    owners = [people.iloc[place::3] for place in range(3)]
    given = {"epsilon": 1, "aggregation": "clear", "seed": seed, "analyses": ASKED} | terms
    return parley.simulate(owners, SCHEMA, **given)


@pytest.fixture(scope="module")
def fitted():
    return study(make_population(3000, seed=2))


def test_every_kind_of_analysis_becomes_estimates_of_its_groups(fitted):
    found = fitted.answers()
    sizes = [len(each.estimates) for each in found]
    regions, schools = (len(SCHEMA.attributes[SCHEMA.position(name)].labels)
                        for name in ("region", "education"))  # fmt: skip
    assert sizes == [4, 1, regions, regions * schools, schools, 3, 8, 1]
    names = [each.estimates[0].statistic for each in found]
    assert names[:3] == ["mean of income", "correlation of age and income", "mean of smoker"]
    assert names[3].startswith("share of education = ")
    assert found[0].estimates[0].group == "Female, false"
    for each in found:
        for own in each.estimates:
            if own.low is not None:
                assert own.low <= own.estimate <= own.high


def test_an_estimate_of_a_declared_statistic_is_the_answer(fitted):
    found = fitted.answers()
    for answer in (found[1], found[5], found[7]):  # a relation, a regression, a mean
        asked = statistics_of(answer.analysis, SCHEMA)
        assert [own for each in asked for own in fitted.estimate(each)] == list(answer.estimates)
    by_sex = fitted.estimate(mean(SCHEMA, "income", "sex"))
    assert [each.group for each in by_sex] == ["Female", "Male"]
    asked, rows = Answers(fitted, fitted.diagnostics, fitted.released), fitted.view()
    assert asked.is_declared(mean(SCHEMA, "income", "sex"), rows)
    assert asked.is_declared(regression(SCHEMA, "age ~ sex + income"), rows)  # its pairs are
    assert not asked.is_declared(mean(SCHEMA, "age", ["sex", "income"]), rows)
    assert not asked.is_declared(mean(SCHEMA, "income", "region"), rows)


def test_redrawn_rows_scatter_by_sampling_and_the_noise_of_single_columns(fitted):
    asked = Answers(fitted, fitted.diagnostics, fitted.released)
    made = asked.redrawn(fitted.view(), fitted.rows, tables=30)
    place = SCHEMA.position("smoker")
    shares = [np.mean(rows.columns[place] == 1) for rows in made.tables]
    noise = {error.attributes[0]: error.deviation for error in fitted.column_errors}[place]
    share = np.mean(fitted.released.columns[place] == 1)
    expected = np.hypot(
        noise / np.sqrt(2) / fitted.rows, np.sqrt(share * (1 - share) / fitted.rows)
    )
    assert np.std(shares) == pytest.approx(expected, rel=0.6)
    assert np.mean(shares) == pytest.approx(share, abs=4 * expected / np.sqrt(30))


def test_a_release_without_analyses_answers_nothing():
    assert study(make_population(300, seed=1), analyses=[]).answers() == ()


def held(people, truth, seed, **terms):
    """Return whether each interval of a study's answers holds the truth."""
    table = CodedTable(SCHEMA, SCHEMA.encode(truth), "1")
    result = []
    for answer in study(people, seed, **terms).answers():
        values = {
            key: value
            for own in statistics_of(answer.analysis, SCHEMA)
            for key, value in own.of(table).items()
        }
        result += [
            each.low <= values[each.statistic, each.group] <= each.high
            for each in answer.estimates
            if each.low is not None and np.isfinite(values[each.statistic, each.group])
        ]
    return result


@pytest.mark.slow
@pytest.mark.parametrize("method", ["subn+", "answers"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "3"])
def test_intervals_of_answers_hold_the_truth_of_the_population(epsilon, delta, method):
    truth = make_population(300_000, seed=0)
    results = [
        own
        for seed in range(6)
        for own in held(make_population(4000, seed=100 + seed), truth, seed,
                        epsilon=epsilon, delta=delta, method=method)
    ]  # fmt: skip
    assert len(results) > 200
    assert np.mean(results) >= 0.9


def test_an_analysis_survives_its_text():
    for analysis in read_analyses([item for item in ASKED if isinstance(item, str)], SCHEMA):
        assert read_analyses(analysis.text, SCHEMA) == (analysis,)
