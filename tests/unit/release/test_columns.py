"""Synthetic rows in the shape of the real table, whose cells do not show in it."""

import numpy as np
import pandas as pd

from common.privacy.randomness import SeededRandomSource
from common.release.synthetic_table import Columns
from common.schema import Codes, Schema

SCHEMA = Schema.from_toml("""
attribute = [
  { name = "word", kind = "categorical", values = ["a", "b"], other = true, missing = true },
  { name = "age", kind = "integer", min = 0, max = 3 },
]
""")


def shaped(real, words=(0, 1, 2, 3)):
    codes = Codes.from_columns([np.array(words), np.arange(4)], SCHEMA.sizes)
    decoded = SCHEMA.decode(codes, SeededRandomSource(1))
    return Columns.of(real, SCHEMA).shape(decoded, SCHEMA)


def test_a_categorical_has_the_categories_of_the_schema_and_what_else_occurs():
    real = pd.DataFrame({"age": [1], "word": pd.Categorical(["b"], ["b"], ordered=True)})
    made = shaped(real)
    assert list(made.columns) == ["age", "word"], "in the order of the real table"
    assert made["word"].cat.categories.tolist() == ["a", "b", "(other)"]
    assert made["word"].cat.ordered
    assert made["word"].isna().tolist() == [False, False, False, True]
    assert shaped(real, words=(0, 0, 0, 0))["word"].cat.categories.tolist() == ["a", "b"]


def test_a_categorical_of_numbers_has_the_numbers_that_occur():
    real = pd.DataFrame({"word": ["a", "b"], "age": pd.Categorical([1, 2])})
    assert shaped(real)["age"].cat.categories.tolist() == [0, 1, 2, 3]


def test_types_of_real_columns_leave_no_trace():
    plain = shaped(pd.DataFrame({"word": ["a"], "age": [1]}))
    other = shaped(pd.DataFrame({"word": pd.array(["a"], dtype="string"), "age": [1.5]}))
    assert plain.dtypes.tolist() == other.dtypes.tolist()
