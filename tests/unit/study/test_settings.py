"""Settings of a method: each is read once, in its range, and what is left over is refused."""

from fractions import Fraction

import pytest

from common.errors import InputError
from common.study.settings import SettingsReader
from tests.harness.run_script import random_tables, study_of

TABLES = random_tables((2, 2), [5])


def reader(**settings):
    return SettingsReader(study_of(TABLES, settings=tuple(sorted(settings.items()))))


def test_what_is_there_is_read_and_what_is_not_has_its_default():
    read = reader(w=3, f="1/3", p="1:2.5", word="b", t="x", o=0)
    assert read.whole("w", 9, most=5) == 3
    assert read.whole("absent", 9, most=9) == 9
    assert read.fraction("f", 1) == Fraction(1, 3)
    assert read.fraction("absent", 6) == 6
    assert read.parts("p", "1:1", 2) == (1, Fraction(5, 2))
    assert read.parts("absent", "1:4", 2) == (1, 4)
    assert read.word("word", "a", ("a", "b")) == "b"
    assert read.text("t") == "x"
    assert (read.optional("o", most=4), read.optional("absent", most=4)) == (0, None)
    read.finish()


@pytest.mark.parametrize(
    ("settings", "ask", "words"),
    [
        ({"k": 6}, lambda r: r.whole("k", 1, least=2, most=5), "6 is no whole number from 2 to 5"),
        ({"k": "3"}, lambda r: r.whole("k", 1, most=5), "'3' is no whole number"),
        ({"k": -1}, lambda r: r.optional("k", most=5), "-1 is no whole number from 0 to 5"),
        ({"k": "0"}, lambda r: r.fraction("k", 1), "k: '0' is no number above 0"),
        ({"k": "1:2"}, lambda r: r.parts("k", "", 3), "'1:2' has 2 parts, not 3"),
        ({"k": "1:x"}, lambda r: r.parts("k", "", 2), "'x' is no number above 0"),
        ({"k": "c"}, lambda r: r.word("k", "a", ("a", "b")), "'c' is not one of a, b"),
        ({}, lambda r: r.text("k"), "k: is missing, or no text"),
        ({"k": 1}, lambda r: r.text("k"), "k: is missing, or no text"),
        ({"b": 1, "a": 1}, lambda r: r.finish(), "a: the method has no such setting"),
    ],
)
def test_a_setting_that_cannot_be_had_is_refused_by_method_and_key(settings, ask, words):
    with pytest.raises(InputError, match=r"\[dp-subn\] ") as refused:
        ask(reader(**settings))
    assert words in str(refused.value)
