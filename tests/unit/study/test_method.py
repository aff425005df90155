"""What a method refuses before its first step, whatever its script."""

from dataclasses import replace
from fractions import Fraction

import pytest

from common.errors import InputError
from common.methods.floor import METHOD as FLOOR
from common.study.method import Decision, as_charged, no_decisions
from tests.harness.run_script import random_tables, study_of

STUDY = study_of(random_tables((2, 3), [20, 20, 20, 20]), method="floor")


@pytest.mark.parametrize(
    ("method", "study", "words"),
    [
        ({"encodings": ("own",)}, {"encoding": "binary"}, 'use encoding = "own"'),
        ({"parties": 2}, {}, "floor is for 2 parties, not 4. Use another method"),
        ({"single_turns": True}, {"may_miss": 1}, "asks single parties for a turn"),
        ({}, {"settings": (("degree", 1),)}, "the method has no settings"),
        ({}, {"prior": "ab" * 32}, "release abababababababab is not here"),
        ({"only_sums": False}, {"prior": "ab" * 32}, "cannot build on an earlier release"),
    ],
)
def test_a_method_refuses_what_it_cannot_do(method, study, words):
    with pytest.raises(InputError, match=words):
        replace(FLOOR, **method).run(replace(STUDY, **study))


def test_a_prior_that_the_study_does_not_name_is_refused():
    with pytest.raises(InputError, match="prior: the study names none"):
        FLOOR.run(STUDY, prior=object())


def test_a_run_begins_anew_each_time_and_a_method_for_as_many_parties_takes_them():
    method = replace(FLOOR, parties=4, single_turns=True)
    first, second = method.run(STUDY), method.run(STUDY)
    assert first.step().canonical == second.step().canonical
    assert first is not second


def test_a_method_that_says_nothing_decides_nothing_and_is_bounded_by_its_charges():
    assert tuple(no_decisions(STUDY)) == ()
    assert as_charged(STUDY) is None
    assert FLOOR.bound(STUDY) is None
    assert Decision("k", "3").caution is None
    assert FLOOR.assumes(STUDY) == ""
    with pytest.raises(InputError):
        no_decisions(replace(STUDY, epsilon=Fraction(2), settings=(("a", "b"),)))
