"""Settings of a method: each is read in its range, and what the method does not know is refused."""

from fractions import Fraction

import pytest

from common.errors import InputError
from common.study.settings import above_zero, between, parts, read_settings
from tests.harness.run_script import random_tables, study_of

TABLES = random_tables((2, 2), [5])
PARSERS = {"k": between(2, 5), "theta": above_zero, "budget": parts(3)}


def read(parsers=PARSERS, required=(), **settings):
    study = study_of(TABLES, settings=tuple(sorted(settings.items())))
    return read_settings(study, parsers, required=required)


def test_what_is_there_is_read_and_what_is_not_is_left_out():
    assert read() == {}
    assert read(k=5, theta="1/3", budget="1: 2.5:4") == {
        "k": 5,
        "theta": Fraction(1, 3),
        "budget": (1, Fraction(5, 2), 4),
    }
    assert (read(k=2)["k"], read(theta=6)["theta"]) == (2, 6)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"k": 6}, "expected a whole number from 2 to 5, got 6"),
        ({"k": 1}, "expected a whole number from 2 to 5, got 1"),
        ({"k": "3"}, "expected a whole number from 2 to 5, got '3'"),
        ({"theta": "0"}, "expected a number above 0, got '0'"),
        ({"theta": "x"}, "expected a number above 0, got 'x'"),
        ({"budget": "1:2"}, "'1:2' has 2 parts, not 3"),
        ({"budget": "1:0:1"}, "expected a number above 0, got '0'"),
        ({"degree": 1}, "degree"),
    ],
)
def test_a_setting_that_cannot_be_had_is_refused_by_method_and_key(settings, words):
    with pytest.raises(InputError, match="dp-subn") as refused:
        read(**settings)
    assert words in str(refused.value)
    assert next(iter(settings)) in str(refused.value)


def test_a_setting_that_is_needed_is_named_and_a_method_without_any_refuses_the_table():
    with pytest.raises(InputError, match="k is missing"):
        read(required=["k"], theta=1)
    with pytest.raises(InputError, match=r"\[dp-subn\]: the method has no settings"):
        read({}, k=3)
    assert read({}) == {}
