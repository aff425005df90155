"""What a method refuses before its first step: settings, parties, encodings."""

from dataclasses import replace
from fractions import Fraction

import pytest

from common.errors import InputError
from common.methods.floor import METHOD as FLOOR
from common.study.method import (
    PublicDecision,
    Setting,
    above_zero,
    between,
    no_decisions,
    parts,
    read_settings,
)
from tests.harness.run_script import random_tables, study_of

STUDY = study_of(random_tables((2, 3), [20, 20, 20, 20]), method="floor")


@pytest.mark.parametrize(
    ("method", "study", "words"),
    [
        ({"encodings": ("own",)}, {"encoding": "binary"}, 'use encoding = "own"'),
        ({"parties": 2}, {}, "floor is for 2 parties, not 4. Use another method"),
        ({"single_turns": True}, {"may_miss": 1}, "asks single parties for a turn"),
        ({}, {"settings": (("degree", 1),)}, "the method has no settings"),
    ],
)
def test_a_method_refuses_what_it_cannot_do(method, study, words):
    with pytest.raises(InputError, match=words):
        replace(FLOOR, **method).run(replace(STUDY, **study))


def test_a_run_begins_anew_each_time_and_a_method_for_as_many_parties_takes_them():
    method = replace(FLOOR, parties=4, single_turns=True)
    first, second = method.run(STUDY), method.run(STUDY)
    assert first.step().canonical == second.step().canonical
    assert first is not second


def test_a_method_that_says_nothing_decides_nothing():
    assert tuple(no_decisions(STUDY)) == ()
    assert PublicDecision("k", "3").caution is None
    assert FLOOR.assumes(STUDY) == ""
    with pytest.raises(InputError):
        no_decisions(replace(STUDY, epsilon=Fraction(2), settings=(("a", "b"),)))


TABLES = random_tables((2, 2), [5])
SETTINGS = {
    "k": Setting(between(2, 5), "2", "a number"),
    "theta": Setting(above_zero, "1", "a fraction"),
    "budget": Setting(parts(3), "1:1:1", "parts"),
}


def read(known=SETTINGS, required=(), **settings):
    study = study_of(TABLES, settings=tuple(sorted(settings.items())))
    return read_settings(study, known, required=required)


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
