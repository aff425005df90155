"""Declared analyses: the sets of columns that each needs, and what is refused."""

import pytest

import parley
from common.errors import InputError
from common.study.analyses import MOST_ANALYSES, all_sets, read_analyses
from tests.harness.linked import SCHEMA as LINKED

SCHEMA = parley.Schema.from_toml(
    """
attribute = [
  { name = "income", kind = "integer", min = 0, max = 99, bins = 10 },
  { name = "age", kind = "integer", min = 0, max = 99, bins = 10 },
  { name = "sex", kind = "categorical", values = ["f", "m"] },
  { name = "smoker", kind = "boolean" },
  { name = "days", kind = "integer", min = 0, max = 99, bins = 10 },
  { name = "status", kind = "boolean" },
]
"""
)
INCOME, AGE, SEX, SMOKER, DAYS, STATUS = range(6)


@pytest.mark.parametrize(("text", "sets", "words"), [
    ('relation = ["age", "income"]', [(INCOME, AGE)], "relation of age, income"),
    ('mean = "income", by = ["sex", "smoker"]', [(INCOME, SEX, SMOKER)],
     "mean of income by sex, smoker"),
    ('mean = "income"', [(INCOME,)], "mean of income"),
    ('share = "smoker = true and age >= 60", by = "sex"', [(AGE, SEX, SMOKER)],
     "share of smoker = true and age >= 60 by sex"),
    ('share = "smoker = true", by = "smoker"', [(SMOKER,)], "share of smoker = true by smoker"),
    ('regression = "income ~ age + sex"', [(INCOME, AGE), (INCOME, SEX), (AGE, SEX)],
     "regression of income ~ age + sex"),
    ('survival = ["days", "status"], by = "sex"', [(SEX, DAYS, STATUS)],
     "survival of days, status by sex"),
])  # fmt: skip
def test_an_analysis_names_the_sets_of_columns_that_it_needs(text, sets, words):
    (analysis,) = read_analyses(text, SCHEMA)
    assert list(analysis.sets(SCHEMA)) == sets
    assert analysis.words == words


@pytest.mark.parametrize(("text", "problem"), [
    ('mean = "income" by = "sex"', "cannot be read"),
    ("", "exactly one of relation, mean"),
    ('mean = "income", share = "smoker = true"', "exactly one of"),
    ('mean = "income", groups = "sex"', "'groups' is no key"),
    ('mean = "wealth"', "wealth"),
    ("mean = 3", "write one text"),
    ('mean = "income", by = 3', "a name, or a list of names"),
    ('mean = "income", by = "income"', "there twice"),
    ('relation = "age"', "two columns or more"),
    ('relation = ["age", "income"], by = "sex"', "has no groups"),
    ('regression = "income"', "write it like"),
    ('regression = "income ~ age + age"', "there twice"),
    ('share = "smoker ="', "smoker"),
    ('survival = ["days"]', "the time and the status"),
    ('survival = ["days", "age"]', "A status has two"),
    ('survival = ["sex", "status"]', "has no numbers"),
    ('mean = "sex"', "has no numbers"),
])  # fmt: skip
def test_what_is_no_analysis_is_refused_with_a_reason(text, problem):
    with pytest.raises(InputError, match=problem):
        read_analyses(text, SCHEMA)


def test_the_sets_of_all_analyses_are_named_once_and_small_ones_lie_in_large_ones():
    found = read_analyses(
        [
            {"mean": "income", "by": ["sex", "age"]},
            {"regression": "income ~ age + smoker"},
            {"relation": ["age", "income"]},
        ],
        SCHEMA,
    )
    assert all_sets(found, SCHEMA) == ((INCOME, AGE, SEX), (INCOME, SMOKER), (AGE, SMOKER))


def test_an_error_names_the_analysis_and_too_many_are_refused():
    with pytest.raises(InputError, match="analysis 2"):
        read_analyses([{"mean": "age"}, {"mean": "wealth"}], SCHEMA)
    with pytest.raises(InputError, match=str(MOST_ANALYSES)):
        read_analyses([{"mean": "age"}] * (MOST_ANALYSES + 1), SCHEMA)


@pytest.mark.parametrize("items", ["relation", 3, {"mean": "age"}, [3], [["mean", "age"]]])
def test_what_is_no_list_of_analyses_is_refused(items):
    if isinstance(items, dict):
        assert read_analyses(items, SCHEMA) == read_analyses([items], SCHEMA)
    else:
        with pytest.raises(InputError, match="analysis"):
            read_analyses(items, SCHEMA)


def test_an_analysis_is_written_as_it_is_read():
    texts = ['relation = ["age", "income"]', 'mean = "income", by = ["sex", "smoker"]',
             'survival = ["days", "status"], by = ["sex"]', 'share = "smoker = true"']  # fmt: skip
    for text in texts:
        (analysis,) = read_analyses(text, SCHEMA)
        assert analysis.text == text
        assert read_analyses([analysis.plain], SCHEMA) == (analysis,)
        assert analysis.to_toml()[1] == "[[analysis]]"


# Of linked tables: sex 0, age 1, the number of visits 2, diagnosis 3, ward 4.
@pytest.mark.parametrize(("text", "sets", "of_events"), [
    ('mean = "visits", by = "sex"', [(0, 2)], False),
    ('relation = ["age", "sex"]', [(0, 1)], False),
    ('mean = "visits"', [(2,)], False),
    ('share = "diagnosis = a"', [(2, 3)], True),
    ('share = "diagnosis = a", by = "sex"', [(0, 2, 3)], True),
    ('relation = ["diagnosis", "ward"]', [(2, 3, 4)], True),
    ('regression = "age ~ diagnosis + sex"', [(1, 2, 3), (0, 1, 2), (0, 2, 3)], True),
])  # fmt: skip
def test_an_analysis_of_events_also_needs_their_number(text, sets, of_events):
    (analysis,) = read_analyses(text, LINKED)
    assert analysis.sets(LINKED) == tuple(sets)
    assert analysis.of_events(LINKED) == of_events


def test_a_set_of_people_does_not_lie_in_one_of_events():
    texts = ['mean = "visits", by = "sex"', 'share = "diagnosis = a", by = "sex"',
             'share = "diagnosis = b"']  # fmt: skip
    found = read_analyses(texts, LINKED)
    assert all_sets(found, LINKED) == ((0, 2), (0, 2, 3))
    with pytest.raises(InputError, match="names a column of events"):
        read_analyses('survival = ["age", "sex"], by = "ward"', LINKED)
