"""What is forecast of analyses before anything is spent, what would halve it, and what helps."""

from dataclasses import replace
from fractions import Fraction

import pytest

from common.methods.registry import method_of, new_study
from common.methods.subn_plus.prospects import DELTA, OF_SUBN, advice, clearest, decisions
from common.study.analyses import read_analyses
from tests.harness.run_script import random_tables, study_of

SIZES = (12, 4, 3, 8, 5, 9, 7, 6, 12, 10, 4, 5)
ASKED = [
    {"relation": ["a0", "a3"]},
    {"share": "a1 = 0", "by": ["a2"]},
    {"share": "a1 = 0"},
    {"regression": "a9 ~ a3 + a4"},
]


@pytest.fixture(scope="module")
def plain():
    return study_of(random_tables(SIZES, [2000] * 3), method="subn+")


def asking(study, items, **changes):
    numeric = [item for item in items if "regression" not in item]
    return replace(study, analyses=read_analyses(numeric, study.schema), **changes)


def test_each_analysis_has_a_forecast_that_owners_read(plain):
    study = asking(plain, ASKED)
    told = OF_SUBN.of(study)
    assert [each.analysis for each in told] == [each.words for each in study.analyses]
    assert all(0 < each.within < 1 for each in told)
    assert [each.how for each in told] == ["from a joint table"] * 2 + ["from single columns"]
    assert told[0].analysis in [each.name for each in decisions(study)]


def test_twice_the_epsilon_or_the_rows_is_narrower_and_what_halves_does(plain):
    study = asking(plain, ASKED[:1], epsilon=Fraction(1, 5))
    ((epsilon, rows),) = OF_SUBN.halving(study)
    (now,) = OF_SUBN.of(study)
    (dearer,) = OF_SUBN.of(replace(study, epsilon=epsilon))
    assert dearer.within <= now.within / 2
    assert rows > study.rows
    assert method_of(study).prospects(study) == OF_SUBN.of(study)


def test_a_delta_is_advised_where_it_is_forecast_to_help_by_a_fifth(plain):
    wide = study_of(random_tables([6] * 30, [8000] * 3), method="subn+")
    (words,) = advice(wide)
    assert words.startswith("delta: with a delta of 1e-9 in place of 0, noise in a cell")
    assert advice(replace(wide, delta=DELTA)) == []
    few = study_of(random_tables([3] * 4, [8000] * 3), method="subn+")
    assert advice(few) == []
    many = [{"relation": [f"a{i}", f"a{i + 1}"]} for i in range(29)]
    (words,) = advice(asking(wide, many))
    assert "the widest interval of an analysis is forecast at +-" in words


def test_with_few_analyses_a_delta_is_left_out_unless_only_it_shows_other_pairs(plain):
    few = asking(plain, ASKED[:1], delta=DELTA, others=Fraction(0))
    assert clearest(few).delta == 0
    terms = {"name": "x", "epsilon": 1, "method": "subn+", "delta": "1e-9", "others": "0",
             "analyses": ['relation = ["a0", "a3"]']}  # fmt: skip
    assert new_study(terms, schema=plain.schema, members=plain.members).delta == 0
    assert clearest(replace(few, analyses=(), others=None)) == replace(
        few, analyses=(), others=None
    )
