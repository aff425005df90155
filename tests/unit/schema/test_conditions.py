"""Conditions mean what a reader takes them to mean: compared with a plain reading of every row."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.schema import Attribute, Codes, Node, Schema
from common.schema.attribute import Listed
from common.schema.conditions import (
    AttributeVocabulary,
    Vocabulary,
    cells_of,
    parse,
    weights_of,
)
from common.schema.hierarchy import leaf
from common.wavelet.decisions import axes_of
from tests.harness.schemas import ASKED
from tests.harness.schemas import CONDITIONED as SCHEMA

EVERY_ROW = Codes.from_columns(
    [axis.ravel() for axis in np.indices(SCHEMA.sizes)], SCHEMA.sizes
)  # each combination of codes once

# A text, and what it says of a row: age 0..3, 4 missing; sex 0, 1; country 0..3, 4 other.
TESTS = [
    ("age >= 40", lambda age, sex, country: age in (2, 3)),
    ("age < 18", lambda age, sex, country: age == 0),
    ("age in 18..64", lambda age, sex, country: age in (1, 2)),
    ("age not in 18..64", lambda age, sex, country: age not in (1, 2)),
    ("age in (0..17, 65..)", lambda age, sex, country: age in (0, 3)),
    ("age is missing", lambda age, sex, country: age == 4),
    ("age is not missing", lambda age, sex, country: age != 4),
    ("age != (missing)", lambda age, sex, country: age != 4),
    ("sex = Female", lambda age, sex, country: sex == 0),
    ("sex != 'Female'", lambda age, sex, country: sex != 0),
    ("sex!=Female", lambda age, sex, country: sex != 0),
    ("country in Europe", lambda age, sex, country: country in (0, 2)),
    ("country in (USA, 'New Zealand', Spain)", lambda age, sex, country: country in (1, 2, 3)),
    ("country NOT IN (Europe, USA)", lambda age, sex, country: country in (1, 4)),
    ("country = (other)", lambda age, sex, country: country == 4),
]


def expressions():
    """A text and a function of a row, made together."""
    one = st.sampled_from(TESTS)

    def larger(inner):
        def negated(part):
            return f"not ({part[0]})", lambda *row: not part[1](*row)

        def joined(parts, word, join):
            texts = f" {word} ".join(f"({text})" for text, _ in parts)
            return texts, lambda *row: join(holds(*row) for _, holds in parts)

        several = st.lists(inner, min_size=2, max_size=3)
        return (
            inner.map(negated)
            | several.map(lambda parts: joined(parts, "and", all))
            | several.map(lambda parts: joined(parts, "or", any))
        )

    return st.recursive(one, larger, max_leaves=6)


@given(expressions())
def test_a_condition_holds_for_the_rows_that_a_plain_reading_picks(expression):
    text, holds = expression
    expected = [holds(*map(int, row)) for row in zip(*EVERY_ROW.columns, strict=True)]
    assert parse(text, SCHEMA).mask(EVERY_ROW).tolist() == expected


def test_not_binds_before_and_which_binds_before_or():
    loose = "not sex = Male and age < 18 or country = USA"
    strict = "((not (sex = Male)) and age < 18) or country = USA"
    other = "not (sex = Male and (age < 18 or country = USA))"
    mask = parse(loose, SCHEMA).mask(EVERY_ROW).tolist()
    assert mask == parse(strict, SCHEMA).mask(EVERY_ROW).tolist()
    assert mask != parse(other, SCHEMA).mask(EVERY_ROW).tolist()


def test_two_equals_signs_mean_one():
    twice, once = (parse(f"sex {sign} Male", SCHEMA).mask(EVERY_ROW) for sign in ("==", "="))
    assert twice.tolist() == once.tolist()


def test_a_condition_names_its_attributes_in_the_order_of_the_schema():
    assert parse("country = USA or not age < 18", SCHEMA).attributes == ("age", "country")
    assert parse("", SCHEMA).attributes == ()
    assert parse("", SCHEMA).mask(EVERY_ROW).all()


def test_words_of_the_language_are_values_when_quoted():
    schema = Schema.from_toml(
        '[[attribute]]\nname = "in"\nkind = "categorical"\nvalues = ["and", "or", "a,b", "(x)"]\n'
    )
    every = Codes.from_columns([np.arange(4)], schema.sizes)
    condition = parse("'in' in ('and', 'a,b') or \"in\" = '(x)'", schema)
    assert condition.mask(every).tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("(sex = Male", 11, "expected ')'"),
        ("sex = Male)", 10, "the end of the condition"),
        ("sex = Male or", 13, "the name of an attribute"),
        ("not", 3, "the name of an attribute"),
        ("sex in (Male, ", 13, "a value or a range"),
        ("sex in (Male Female)", 13, "expected ',' or ')'"),
        ("sex is Male", 7, "For a value write ="),
        ("sex is missing", 0, "no cell of 'sex' be empty"),
        ("sex = Mle", 6, "did you mean 'Male'?"),
        ("sex = male", 6, "did you mean 'Male'?"),
        ("country in europe", 11, "did you mean 'Europe'?"),
        ("contry = USA", 0, "did you mean 'country'?"),
        ("age in 20..39", 7, "cuts through a bin"),
        ("not " * 80 + "sex = Male", 256, "inside of each other"),
    ],
)
def test_refusals_point_at_the_place(text, place, words):
    with pytest.raises(InputError) as refusal:
        parse(text, SCHEMA)
    message, _, mark = str(refusal.value).split("\n")
    assert words in message
    assert mark == "  " + " " * place + "^"


SMALL = Schema.from_toml("""
attribute = [
  { name = "a", kind = "integer", min = 0, max = 3 },
  { name = "b", kind = "categorical", values = ["x", "y", "z"], missing = true },
  { name = "c", kind = "boolean" },
]
""")
EVERY = Codes.from_columns(list(np.array(list(product(*map(range, SMALL.sizes)))).T), SMALL.sizes)
PLAIN_TESTS = st.sampled_from(["a > 1", "a = 0", "b = x", "b != y", "c = true", "a <= 2"])
CONDITIONS = st.recursive(
    PLAIN_TESTS,
    lambda own: (
        st.builds("({} and {})".format, own, own)
        | st.builds("({} or {})".format, own, own)
        | st.builds("not ({})".format, own)
    ),
    max_leaves=6,
)


@given(CONDITIONS)
def test_the_product_of_all_weights_is_whether_the_condition_holds(text):
    condition = parse(text, SMALL)
    weights = weights_of(condition, SMALL.sizes)
    found = np.prod([own.of(EVERY) for own in weights], axis=0)
    np.testing.assert_array_equal(found, condition.root.mask(EVERY).astype(float))
    for own in weights:
        assert own.attributes == tuple(sorted(set(own.attributes)))
        assert own.table.shape == tuple(SMALL.sizes[a] for a in own.attributes)
        assert set(np.unique(own.table)) <= {0.0, 1.0}


def test_what_is_joined_by_and_is_taken_apart_and_what_is_joined_by_or_is_not():
    apart = weights_of(parse("a > 1 and (b = x and c = true)", SMALL), SMALL.sizes)
    assert [own.attributes for own in apart] == [(0,), (1,), (2,)]
    (together,) = weights_of(parse("c = true or a > 1", SMALL), SMALL.sizes)
    assert together.attributes == (0, 2)
    assert together.table.tolist() == [[0, 1], [0, 1], [1, 1], [1, 1]]


def test_a_part_about_too_many_cells_is_refused():
    sizes = (1 << 12, 1 << 12, 2)
    part = parse("a > 1 or b = x", SMALL).root
    with pytest.raises(InputError, match="condition: cells of its attributes together: at most"):
        cells_of(part, sizes)


def test_a_bound_beyond_the_range_is_refused_where_such_values_are_counted_as_other():
    schema = Schema.from_toml(
        '[[attribute]]\nname = "x"\nkind = "integer"\nmin = 0\nmax = 9\nbins = 10\nother = true\n'
    )
    vocabulary = Vocabulary(schema.attributes)
    with pytest.raises(InputError, match="from 0 to 9 only"):
        vocabulary.boxes(["x in 3..20"])
    assert vocabulary.boxes(["x >= 3"])[0].tolist() == [[3, 10]]


def test_long_lists_of_names_are_cut():
    values = ", ".join(f'"v{i}"' for i in range(40))
    schema = Schema.from_toml(
        f'[[attribute]]\nname = "x"\nkind = "categorical"\nvalues = [{values}]\n'
    )
    vocabulary = Vocabulary(schema.attributes)
    with pytest.raises(InputError, match=r"v11 and 28 more"):
        vocabulary.boxes(["x = w"])


def test_a_root_group_is_not_offered_when_special_codes_stand_beside_it():
    tree = Node("all", (Node("ab", (leaf("a", 0), leaf("b", 1))), leaf("c", 2)))
    for missing, offered in ((False, True), (True, False)):
        attribute = Attribute("x", "categorical", Listed(("a", "b", "c")), missing, tree=tree)
        vocabulary = Vocabulary([attribute])
        assert vocabulary.boxes(["x in ab"])[0].tolist() == [[0, 2]]
        if offered:
            assert vocabulary.boxes(["x in all"])[0].tolist() == [[0, 3]]
        else:
            with pytest.raises(InputError, match="no value 'all'"):
                vocabulary.boxes(["x in all"])


@pytest.mark.parametrize(
    ("query", "interval"),
    [
        ("seen in 2020-01-01..2020-12-31", (0, 1)),
        ("seen in 2020-01-01T00:00:00..2020-12-31T23:59:59", (0, 1)),
        ("seen <= 2020-12-31", (0, 1)),
        ("seen < 2021-01-01", (0, 1)),
        ("seen > 2020-12-31", (1, 2)),
        ("seen >= 2021-01-01", (1, 2)),
    ],
)
def test_a_date_among_times_is_the_whole_day(query, interval):
    schema = Schema.from_toml(
        '[[attribute]]\nname = "seen"\nkind = "datetime"\n'
        "edges = [2020-01-01T00:00:00, 2021-01-01T00:00:00, 2021-12-31T23:59:59]\n"
    )
    vocabulary = Vocabulary(schema.attributes)
    assert tuple(vocabulary.boxes([query])[0, 0]) == interval


def test_positions_follow_the_axes_of_a_range_count():
    for attribute, axis in zip(ASKED.attributes, axes_of(ASKED), strict=True):
        assert AttributeVocabulary(attribute).codes.tolist() == axis.leaf_codes.tolist()


@pytest.mark.parametrize(
    ("query", "allowed"),
    [
        ("amount <= 5", [0, 1, 2]),
        ("amount < 5", [0, 1]),
        ("amount > 5", [3]),
        ("amount >= 5", [2, 3]),
        ("amount = 5", [2]),
        ("amount <= 0", [0]),
        ("hours <= 40", [0, 1, 2]),
        ("hours > 40", [3]),
        ("hours = 40", [2]),
    ],
)
def test_a_heap_is_on_the_side_that_the_comparison_says(query, allowed):
    schema = Schema.from_toml(
        """
        attribute = [
          { name = "amount", kind = "real", edges = [0, 5, 9], decimals = 2, heaps = [0, 5] },
          { name = "hours", kind = "integer", edges = [0, 30, 80], heaps = [40] },
        ]
        """
    )
    place = schema.position(query.split()[0])
    columns = [np.zeros(schema.sizes[place], int)] * 2
    columns[place] = np.arange(schema.sizes[place])
    codes = Codes.from_columns(columns, schema.sizes)
    assert np.flatnonzero(parse(query, schema).mask(codes)).tolist() == allowed
