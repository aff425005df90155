"""A condition as a table of 0 and 1 says of every row what the condition itself says."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.schema import Schema
from common.schema.cell_weights import cells_of, weights_of
from common.schema.codes import Codes
from common.schema.conditions import parse

SCHEMA = Schema.from_toml("""
attribute = [
  { name = "a", kind = "integer", min = 0, max = 3 },
  { name = "b", kind = "categorical", values = ["x", "y", "z"], missing = true },
  { name = "c", kind = "boolean" },
]
""")
EVERY = Codes.from_columns(list(np.array(list(product(*map(range, SCHEMA.sizes)))).T), SCHEMA.sizes)
TESTS = st.sampled_from(["a > 1", "a = 0", "b = x", "b != y", "c = true", "a <= 2"])
CONDITIONS = st.recursive(
    TESTS,
    lambda own: (
        st.builds("({} and {})".format, own, own)
        | st.builds("({} or {})".format, own, own)
        | st.builds("not ({})".format, own)
    ),
    max_leaves=6,
)


@given(CONDITIONS)
def test_the_product_of_all_weights_is_whether_the_condition_holds(text):
    condition = parse(text, SCHEMA)
    weights = weights_of(condition, SCHEMA.sizes)
    found = np.prod([own.of(EVERY) for own in weights], axis=0)
    np.testing.assert_array_equal(found, condition.root.mask(EVERY).astype(float))
    for own in weights:
        assert own.attributes == tuple(sorted(set(own.attributes)))
        assert own.table.shape == tuple(SCHEMA.sizes[a] for a in own.attributes)
        assert set(np.unique(own.table)) <= {0.0, 1.0}


def test_what_is_joined_by_and_is_taken_apart_and_what_is_joined_by_or_is_not():
    apart = weights_of(parse("a > 1 and (b = x and c = true)", SCHEMA), SCHEMA.sizes)
    assert [own.attributes for own in apart] == [(0,), (1,), (2,)]
    (together,) = weights_of(parse("c = true or a > 1", SCHEMA), SCHEMA.sizes)
    assert together.attributes == (0, 2)
    assert together.table.tolist() == [[0, 1], [0, 1], [1, 1], [1, 1]]


def test_a_part_about_too_many_cells_is_refused():
    sizes = (1 << 12, 1 << 12, 2)
    part = parse("a > 1 or b = x", SCHEMA).root
    with pytest.raises(InputError, match="condition: cells of its attributes together: at most"):
        cells_of(part, sizes)
