"""Criteria as a study writes them: read, written back, and refused by name."""

import tomllib
from dataclasses import replace
from fractions import Fraction

import pytest

from common.errors import InputError
from common.methods.registry import run_of
from common.study.criteria import read_criteria
from common.study.document import Study
from tests.harness.run_script import random_tables, study_of
from tests.harness.schemas import CRITERIA as EVERY_KIND
from tests.harness.schemas import JUDGED as SCHEMA

PART = Fraction(1, 10)


def agreed(**changes):
    fields = {
        "schema": SCHEMA, "method": "floor", "epsilon": Fraction(2),
        "criteria": read_criteria(EVERY_KIND), "criteria_epsilon": PART,
    }  # fmt: skip
    return study_of(random_tables(SCHEMA.sizes, [300, 200]), **(fields | changes))


def test_a_study_with_criteria_comes_back_from_its_file():
    study = agreed(delta=Fraction(1, 10**6))
    assert Study.from_toml(study.to_toml()) == study
    assert Study.from_toml(study.to_toml()).digest == study.digest
    other = replace(study, criteria=study.criteria[1:])
    assert other.digest != study.digest


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"mean": "income"}, "expected mean and within"),
        ({"mean": "smoker", "within": "3 %"}, "no column of numbers"),
        ({"mean": "incme", "within": "3 %"}, "no attribute is called 'incme'"),
        ({"share": "age > 3", "within": "1 %"}, "cuts through a bin"),
        ({"distance": "8 %"}, "a number up to 1"),
        ({"distance": 0.1, "pairs": "some"}, "pairs one of"),
        ({"mean": "age", "within": "1e999999999"}, "a number above 0"),
        ({"mean": "age", "within": -1}, "a number above 0"),
    ],
)
def test_criteria_that_make_no_sense_are_refused(written, words):
    with pytest.raises(InputError, match=words):
        agreed(criteria=read_criteria([written]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"criteria_epsilon": Fraction(0)}, "say what the criteria may cost"),
        ({"criteria": ()}, "say what the criteria may cost"),
        ({"criteria_epsilon": Fraction(2)}, "leaves nothing"),
        ({"method": "independent"}, "adds nothing up"),
    ],
)
def test_studies_that_cannot_have_criteria_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        run_of(agreed(**changes))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"mean": "age", "within": "3 %"}, "mean of age within 3 %"),
        ({"mean": "age", "within": 2}, "mean of age within 2"),
        ({"share": "smoker = true", "within": "0.02"}, "share of smoker = true within 0.02"),
        ({"distance": 0.25}, "two-way distance of the mean over pairs at most 0.25"),
        ({"distance": "1", "pairs": "all"}, "two-way distance of all pairs at most 1"),
    ],
)
def test_a_criterion_is_said_in_a_phrase_and_written_as_it_is_read(table, words):
    (criterion,) = read_criteria([table])
    assert criterion.words == words
    again = read_criteria(tomllib.loads("\n".join(criterion.to_toml()))["criterion"])
    assert again == (criterion,)
    assert again[0].plain == criterion.plain


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"mean": "age"}, "double brackets"),
        ([7], "double brackets"),
        ([{}], "not nothing"),
        ([{"mean": "age", "within": 1}] * 33, "at most 32"),
        ([{"mean": "age", "within": 1}, {"mean": " ", "within": 1}], "criterion 2: mean: expected"),
        ([{"mean": "age", "within": 1, "pairs": "all"}], "not mean, within, pairs"),
        ([{"mean": "age", "within": True}], "a number above 0, or a percentage, not True"),
    ],
)
def test_tables_that_are_no_criteria_are_refused_by_number(tables, words):
    with pytest.raises(InputError, match=words):
        read_criteria(tables)


def test_a_limit_is_exact_however_it_is_written():
    limits = [read_criteria([{"mean": "age", "within": w}])[0] for w in ("0.1", 0.1, "10 %")]
    assert [own.limit for own in limits] == [Fraction(1, 10)] * 3
    assert [own.relative for own in limits] == [False, False, True]


def test_the_profile_of_the_paper_has_no_criteria():
    with pytest.raises(InputError, match='Use profile = "sound"'):
        agreed(method="dp-subn", profile="paper")
