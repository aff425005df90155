"""Formulas of models: names, backticks, and what is refused."""

import pytest

import parley
from common.errors import InputError
from common.schema.query import parse_formula

SCHEMA = parley.Schema.from_toml(
    """
attribute = [
  { name = "a", kind = "boolean" },
  { name = "b", kind = "boolean" },
  { name = "c+d ~", kind = "boolean" },
]
"""
)


def test_terms_are_joined_by_plus_and_odd_names_are_in_backticks():
    found = parse_formula(" a ~ b + `c+d ~`", SCHEMA)
    assert (found.outcome, found.terms) == ("a", ("b", "c+d ~"))
    assert found.columns == ("a", "b", "c+d ~")


@pytest.mark.parametrize("text", ["", "a", "a ~", "~ b", "a ~ b +", "a ~ a", "a ~ b + b", "a ~ z"])
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(InputError):
        parse_formula(text, SCHEMA)
