"""Rules of a schema: read, written, looked up, and rows that break them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.decoder import decode_to_arrow

ATTRIBUTES = """
attribute = [
  { name = "age", kind = "integer", min = 0, max = 79, bins = 8 },
  { name = "job", kind = "categorical", values = ["none", "farm", "office"], missing = true },
  { name = "married", kind = "boolean" },
  { name = "start", kind = "integer", min = 0, max = 39, bins = 4, missing = true },
  { name = "end", kind = "integer", min = 0, max = 39, bins = 4 },
  { name = "town", kind = "categorical", values = ["a", "b", "c"], \
    hierarchy = { North = ["a", "b"], South = ["c"] } },
  { name = "region", kind = "categorical", values = ["South", "North"] },
]
"""
SKIP = '[[rule]]\nwhen = "age < 20"\nthen = "job = none"\n'
IMPOSSIBLE = '[[rule]]\nimpossible = "age < 20 and married = true"\n'
ORDER = '[[rule]]\norder = "start <= end"\n'
DETERMINED = '[[rule]]\ndetermined = "region"\nby = "town"\n'
LISTED = DETERMINED + 'values = { North = ["a"], South = ["b", "c"] }\n'
EVERY = SKIP + IMPOSSIBLE + ORDER + DETERMINED


def schema_of(rules):
    return Schema.from_toml(ATTRIBUTES + rules)


def every_row(schema):
    columns = np.array(list(itertools.product(*map(range, schema.sizes)))).T
    return Codes.from_columns(list(columns), schema.sizes)


def allowed(age, job, married, start, end, town, region):
    """What EVERY says, in Python."""
    return (
        not (age < 2 and job != 0)
        and not (age < 2 and married)
        and not (start < 4 and start > end)
        and region == (0 if town == 2 else 1)
    )


def test_rules_hold_where_their_words_do():
    schema = schema_of(EVERY)
    rows = every_row(schema)
    expected = [allowed(*row) for row in zip(*(c.tolist() for c in rows.columns), strict=True)]
    assert schema.possible.holds(rows).tolist() == expected


def test_listed_values_determine_a_column():
    rows = every_row(schema := schema_of(LISTED))
    region = np.where(rows.columns[5] == 0, 1, 0)
    np.testing.assert_array_equal(schema.possible.holds(rows), rows.columns[6] == region)


@pytest.mark.parametrize("rules", [SKIP, IMPOSSIBLE, ORDER, DETERMINED, LISTED, EVERY])
def test_rules_are_written_as_they_are_read_and_are_in_the_digest(rules):
    schema = schema_of(rules)
    assert Schema.from_toml(schema.to_toml()) == schema
    assert schema.digest() != schema.without_rules().digest()
    assert schema.forgiven().digest() == schema.digest()


def test_a_row_is_repaired_to_the_nearest_possible_one():
    schema = schema_of(EVERY)
    table = pd.DataFrame(
        {
            "age": [5, 15, 70], "job": ["farm", None, "farm"], "married": [True, False, True],
            "start": [35, 12, None], "end": [2, 15, 3], "town": ["a", "c", "b"],
            "region": ["South", "South", "North"],
        }
    )  # fmt: skip
    codes = schema.encode(table)
    assert [column.tolist() for column in codes.columns] == [
        [0, 1, 7], [0, 0, 1], [0, 0, 1], [3, 1, 4], [3, 1, 0], [0, 2, 1], [1, 0, 1],
    ]  # fmt: skip
    assert schema.possible.broken(schema.without_rules().encode(table)) == [2, 1, 1, 1]


def random_rules(seed):
    """Rules over the attributes, of every form, that some row satisfies."""
    rng = np.random.default_rng(seed)
    conditions = [
        "age < 20", "age >= 60", "age in 20..39", "job = none", "job = (missing)", "married = true",
        "start >= 20", "end < 10", "town in North", "region = South", "start = (missing)",
    ]  # fmt: skip
    text = ""
    for _ in range(rng.integers(1, 6)):
        one, other, third = rng.permutation(conditions)[:3]
        text += [
            f'[[rule]]\nwhen = "{one}"\nthen = "{other}"\n',
            f'[[rule]]\nimpossible = "{one} and {other}"\n',
            f'[[rule]]\nwhen = "{one} and {third}"\nthen = "{other}"\n',
            ORDER,
            DETERMINED,
        ][rng.integers(0, 5)]
    return text


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_repaired_rows_are_possible_and_depend_on_their_row_alone(seed):
    try:
        schema = schema_of(random_rules(seed))
    except InputError:  # an impossible conjunction such as "age < 20 and age >= 60"
        return
    rng = np.random.default_rng(seed)
    rows = Codes.from_columns([rng.integers(0, s, 200) for s in schema.sizes], schema.sizes)
    found = schema.possible.repaired(rows)
    assert schema.possible.holds(found).all()
    fine = schema.possible.holds(rows)
    for before, after in zip(rows.columns, found.columns, strict=True):
        np.testing.assert_array_equal(before[fine], after[fine])
    order = rng.permutation(200)
    part = schema.possible.repaired(rows.take(order[:50]))
    for whole, own in zip(found.columns, part.columns, strict=True):
        np.testing.assert_array_equal(whole[order[:50]], own)


@pytest.mark.parametrize("arrow", [False, True])
def test_numbers_in_the_same_bin_come_out_in_order(arrow):
    schema = schema_of(ORDER)
    rng = np.random.default_rng(0)
    rows = Codes.from_columns([rng.integers(0, s, 3000) for s in schema.sizes], schema.sizes)
    rows = schema.possible.repaired(rows)
    source = SeededRandomSource(1)
    table = (
        decode_to_arrow(schema, rows, source).to_pandas() if arrow else schema.decode(rows, source)
    )
    known = table["start"].notna()
    start, end = (table[name][known].astype(float) for name in ("start", "end"))
    assert (start <= end).all()
    assert (start < end).any()
    codes = schema.without_rules().encode(table)
    assert codes.columns[3].tolist() == rows.columns[3].tolist()  # both are in their bins


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ('[[rule]]\nwhen = "age < 20"', "rule 1: expected when and then"),
        ('[[rule]]\nwhen = "age < 25"\nthen = "job = none"', "rule 1: 25 cuts through a bin"),
        ('[[rule]]\nwhen = "size < 3"\nthen = "job = none"', "no attribute 'size'"),
        ('[[rule]]\nwhen = 3\nthen = "job = none"', "when: expected a text"),
        ('[[rule]]\nimpossible = "age >= 0"', "rule 1: .*every row satisfies it"),
        ('[[rule]]\norder = "age <= end"', "the same ones"),
        ('[[rule]]\norder = "start < end"', "expected two attributes"),
        ('[[rule]]\ndetermined = "region"\nby = "job"', "hierarchy, or list the values"),
        (LISTED.replace('"c"', '"d"'), "'town' has no value 'd'"),
        (LISTED.replace(', "c"', ""), "nothing says what 'region' is for 'c'"),
        (LISTED.replace("North", "West"), "'region' has no value 'West'"),
        ("rule = 3", "double brackets"),
        ("".join(
            f'[[rule]]\nimpossible = "town = {town} and region = {region}"\n'
            for town in "abc" for region in ("North", "South")
        ), "no row was found"),
    ],
)  # fmt: skip
def test_rules_that_cannot_be_are_refused(rules, told):
    with pytest.raises(InputError, match=told):
        Schema.from_toml(rules + ATTRIBUTES if rules == "rule = 3" else ATTRIBUTES + rules)


def test_a_table_of_attributes_knows_its_impossible_cells():
    possible = schema_of(EVERY).possible
    mask = possible.mask((1, 2, 0), (False, False, False))
    shape = np.broadcast_shapes(mask.shape, (4, 2, 8))
    for job, married, age in np.ndindex(*shape):
        fine = not (age < 2 and (job != 0 or married))
        assert np.broadcast_to(mask, shape)[job, married, age] == fine
    assert possible.mask((0, 3), (False, False)) is None
    assert possible.mask((0, 1), (True, False)) is None  # groups of values say too little
