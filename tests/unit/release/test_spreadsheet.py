"""What a spreadsheet would run is told from what it would show."""

import pytest

from common.release.spreadsheet import formula_warning, harmless, is_formula
from common.schema import Schema


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "+cmd", "-", "--1", "-1_0", "-1-1", "@SUM(A1)", "\tx", "\rx", "\n=1", "+1e5e", "-٣"],
)
def test_text_that_begins_like_a_formula_is_one(cell):
    assert is_formula(cell)
    assert harmless(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "x", "1", "-1", "+1", "-1.5", "-.5e-3", "2024-01-01", "a=b"])
def test_numbers_and_other_text_are_not(cell):
    assert harmless(cell) == cell


def test_values_and_names_count_and_numbers_do_not():
    numbers = '[[attribute]]\nname = "a"\nkind = "categorical"\nvalues = [-1, -2]\n'
    assert formula_warning(Schema.from_toml(numbers)) is None
    named = numbers.replace('"a"', '"=a"')
    assert "1 of the names and values that the schema lists ('=a')" in formula_warning(
        Schema.from_toml(named)
    )
    listed = numbers.replace("[-1, -2]", '["-1", "+b", "@c", "=d\\u001b", "=e"]')
    warned = formula_warning(Schema.from_toml(listed))
    assert "4 of the names and values" in warned
    assert "'+b', '@c', '=d\\x1b', ..." in warned
