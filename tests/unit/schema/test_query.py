"""The query language: what it accepts, what it means, and how it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.schema.conditions import Vocabulary
from common.schema.query import parse
from common.wavelet.decisions import axes_of
from tests.harness.schemas import ASKED as SCHEMA

VOCABULARY = Vocabulary(SCHEMA.attributes)
FULL = {
    "age": (0, 6),
    "sex": (0, 2),
    "country": (0, 5),
    "school": (0, 5),
    "income share": (0, 4),
    "born": (0, 2),
}


def _box(query):
    box = VOCABULARY.boxes([query])[0]
    named = dict(zip(SCHEMA.names, (tuple(map(int, r)) for r in box), strict=True))
    return {name: span for name, span in named.items() if span != FULL[name]}


@pytest.mark.parametrize(
    ("query", "box"),
    [
        ("", {}),
        ("   ", {}),
        ("age in 20..39", {"age": (2, 3)}),
        (
            "age in 20..39 and sex = Female and country in Europe",
            {"age": (2, 3), "sex": (0, 1), "country": (0, 2)},
        ),
        ("AGE in 20..39".lower() + " AND sex = Female", {"age": (2, 3), "sex": (0, 1)}),
        ("age IN 0..99", {"age": (0, 5)}),  # every value, but not the missing ones
        ("age in ..19", {"age": (0, 2)}),
        ("age in 40..", {"age": (3, 5)}),
        ("age in 20 .. 64", {"age": (2, 4)}),
        ("age in 20.. AND sex = Male", {"age": (2, 5), "sex": (1, 2)}),
        ("age >= 20", {"age": (2, 5)}),
        ("age > 19", {"age": (2, 5)}),
        ("age<40 and age>=18", {"age": (1, 3)}),
        ("age <= 39", {"age": (0, 3)}),
        ("age in -5..200", {"age": (0, 5)}),
        ("age = 18..19".replace("=", "in"), {"age": (1, 2)}),
        ("age = '18..19'", {"age": (1, 2)}),  # a bin by its label
        ("age = (missing)", {"age": (5, 6)}),
        ("age is missing", {"age": (5, 6)}),
        ("(age in 20..39 and (sex = Male))", {"age": (2, 3), "sex": (1, 2)}),
        ("country = 'New Zealand'", {"country": (4, 5)}),
        ('country = "New Zealand"', {"country": (4, 5)}),
        ("country in America", {"country": (2, 4)}),
        ("country in Oceania", {"country": (4, 5)}),
        ("country in Europe and country = Spain", {"country": (1, 2)}),
        ("country = Mexico", {"country": (2, 3)}),
        ("country in Mexico", {"country": (2, 3)}),
        ("school in primary..secondary", {"school": (1, 3)}),
        ("school > none", {"school": (1, 4)}),
        ("school < secondary", {"school": (0, 2)}),
        ("school in higher", {"school": (2, 4)}),
        ("school = (other)", {"school": (4, 5)}),
        ("'income share' in 0.25..0.75", {"income share": (1, 3)}),
        ("'income share' > 0.5", {"income share": (2, 4)}),
        ("'income share' <= 2.5e-1", {"income share": (0, 1)}),
        ("born in 2000-01-01..", {"born": (1, 2)}),
        ("born < 2000-01-01", {"born": (0, 1)}),
    ],
)
def test_queries_mean_boxes(query, box):
    assert _box(query) == box


@pytest.mark.parametrize(
    ("query", "place", "words"),
    [
        ("sex is missing", 0, "no cell of 'sex' be empty"),
        ("age in 20..39 or sex = Male", 14, "by 'and' only"),
        ("sex != Male", 4, "by 'and' only"),
        ("not sex = Male", 0, "by 'and' only"),
        ("agee in 20..39", 0, "did you mean 'age'"),
        ("sex = Femal", 6, "did you mean 'Female'"),
        ("agee in 20..39", 0, "there are age, sex, country"),
        ("age in 20..39 and", 17, "name of an attribute"),
        ("age in 20..39 sex = Male", 14, "expected 'and', 'or'"),
        ("age", 3, "one of = != in"),
        ("age is 20", 7, "expected 'missing'"),
        ("age =", 5, "value after '='"),
        ("age in", 6, "a value or a range"),
        ("age in ..", 7, "at least one end"),
        ("= 5", 0, "name of an attribute"),
        ("sex = 'Female", 6, "never closed"),
        ("sex = female", 6, "there are Female, Male"),
        ("sex in Female..Male", 0, "no order"),
        ("sex < Male", 0, "no order"),
        ("country = New Zealand", 14, "expected 'and', 'or'"),
        ("country = Chile", 10, "Europe, America"),
        ("age in 21..39", 7, "18..19, 20..39, 40..64"),
        ("age in 20..41", 11, "20..39, 40..64, 65..99"),
        ("age = 25", 6, "cuts through a bin"),
        ("age in twenty..39", 7, "like 20"),
        ("age in 20.5..39", 7, "like 20"),
        ("age in 40..19", 0, "in this range"),
        ("age in 200..", 7, "from 0 to 99 only"),
        ("age in 18..19 and age >= 40", 18, "no row can satisfy"),
        ("school in (other)..university", 10, "no value"),
        ("'income share' in 0.3..0.5", 18, "cuts through a bin"),
        ("born in 2000..", 8, "like 2024-01-31"),
    ],
)
def test_refusals_point_at_the_place_and_name_what_is_allowed(query, place, words):
    with pytest.raises(InputError) as refusal:
        _box(query)
    message, shown, mark = str(refusal.value).split("\n")
    assert words in message
    assert shown == f"  {query}"
    assert mark == "  " + " " * place + "^"


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        parse(text)
    except InputError as refusal:
        message = str(refusal)
        assert "^" in message


@given(st.text(min_size=1, max_size=12), st.sampled_from("'\""))
def test_any_value_can_be_quoted(value, quote):
    quoted = quote + value.replace(quote, quote * 2) + quote
    predicate = parse(f"x = {quoted}")
    assert predicate.first.text == value


def test_every_group_and_value_along_a_hierarchy_is_a_node():
    axis = axes_of(SCHEMA)[2]
    names = ["Europe", "America", "Oceania", "France", "Spain", "Mexico", "USA", "'New Zealand'"]
    boxes = VOCABULARY.boxes([f"country in {name}" for name in names])[:, 2]
    axis.reach(boxes[:, 0], boxes[:, 1], padding=False)  # refuses what is no node
    assert np.diff(boxes).ravel().tolist() == [2, 2, 1, 1, 1, 1, 1, 1]
