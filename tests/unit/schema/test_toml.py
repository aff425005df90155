"""One way to read TOML documents, and one to write them."""

import datetime as dt
import tomllib
from enum import Enum
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.schema.toml import (
    anything,
    date,
    member_of,
    one_of,
    parse_toml,
    read_table,
    text,
    texts,
    toml,
    toml_lines,
    whole,
    yes_or_no,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


plain = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    plain
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.dates(min_value=dt.date(1000, 1, 1)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_what_is_written_is_read_back(value):
    assert tomllib.loads("\n".join(toml_lines({"key": value}, header="[x]"))) == {
        "x": {"key": value}
    }


def test_fractions_and_words_are_written_as_texts():
    assert toml(Fraction(4, 5)) == '"4/5"'
    assert toml(Colour.RED) == '"red"'
    with pytest.raises(InputError, match="cannot be written"):
        toml(float("inf"))


PARSERS = {"rows": whole(least=1), "name": text, "colour": member_of(Colour), "any": anything}


def test_a_table_is_read_by_its_parsers():
    given_ = {"rows": 3, "colour": "blue", "any": [1]}
    assert read_table(given_, PARSERS) == {"rows": 3, "colour": Colour.BLUE, "any": [1]}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"row": 3}, r"^unknown key 'box\.row' \(did you mean 'rows'\?\); known: rows, name"),
        ({"rows": 0, "name": "x"}, r"^box\.rows: expected a whole number of at least 1, got 0$"),
        ({"rows": True, "name": "x"}, r"^box\.rows: expected a whole number"),
        ({"name": 5}, r"^box\.name: expected a text, got 5$"),
        ({"name": "x", "colour": "green"}, r"^box\.colour: 'green' is not one of red, blue$"),
        ({"rows": 1}, r"^box\.name is missing"),
        (3, r"^box: write a table, \[box\]$"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(table, words):
    with pytest.raises(InputError, match=words):
        read_table(table, PARSERS, inside="box", required=["name"])


@pytest.mark.parametrize(
    ("parser", "value"),
    [
        (yes_or_no, 1),
        (yes_or_no, "true"),
        (date, "2026-01-31"),
        (date, dt.datetime(2026, 1, 31, tzinfo=dt.UTC)),
        (texts(), "a"),
        (texts(), [1]),
        (texts(["a"]), ["b"]),
        (texts(["a"]), []),
        (one_of([1, 2]), True),
        (member_of(Colour), ["red"]),
    ],
)
def test_values_of_another_kind_are_refused(parser, value):
    with pytest.raises(InputError):
        parser(value)


def test_a_key_of_many_parts_and_a_number_of_many_digits_are_refused():
    with pytest.raises(InputError, match="more than 32 parts"):
        parse_toml(".".join("a" * 40) + " = 1")
    with pytest.raises(InputError, match="too many digits"):
        parse_toml("a = " + "1" * 5000)
