"""Groups of values: what may be divided, and into what."""

from fractions import Fraction
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import RemoteProtocolError
from common.methods.distdiffgen.cuts import Cuts
from common.methods.distdiffgen.divisions import (
    DivisionChoice,
)
from common.schema import Schema
from tests.harness.run_script import schema_of

SIZES = (2, 4, 3, 5)


def test_no_division_passes_the_cells():
    cuts = Cuts.start(schema_of(SIZES), 0)
    assert {a for a, _ in cuts.divisions(1000)} == {1, 2, 3}
    assert {a for a, _ in cuts.divisions(8)} == {1, 2}
    assert cuts.divisions(5) == []
    choice = DivisionChoice(cuts=cuts, score="max", most_cells=8, epsilon=Fraction(1))
    with pytest.raises(RemoteProtocolError):
        choice.check(b"[3,0]")


def test_dividing_replaces_a_group_by_its_children_and_leaves_the_rest():
    schema = Schema.from_toml(
        '[[attribute]]\nname = "sex"\nkind = "categorical"\nvalues = ["f", "m"]\n'
        '[[attribute]]\nname = "age"\nkind = "integer"\nmin = 0\nmax = 7\n'
    )
    start = Cuts.start(schema, 0)
    assert start.shape == (2, 1)
    once = start.divided((1, 0))
    assert [node.codes() for node in once.groups[1]] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    twice = once.divided((1, 1))
    assert [node.codes() for node in twice.groups[1]] == [[0, 1, 2, 3], [4, 5], [6, 7]]
    assert start.shape == (2, 1)  # the cuts before are as they were
    assert [m.tolist() for m in twice.maps(schema.sizes)] == [[0, 1], [0, 0, 0, 0, 1, 1, 2, 2]]
    assert len({cuts.canonical for cuts in (start, once, twice)}) == 3


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 200))
def test_groups_are_always_a_partition_of_the_codes_within_the_cells(choices, most):
    schema = schema_of(SIZES)
    cuts = Cuts.start(schema, 2)
    for choice in choices:
        offered = cuts.divisions(most)
        if not offered:
            break
        assert all(prod(cuts.divided(each).shape) <= most for each in offered)
        cuts = cuts.divided(offered[choice % len(offered)])
    assert cuts.shape[2] == 3  # the target stays as it was
    for cut, size in zip(cuts.groups, SIZES, strict=True):
        assert sorted(code for node in cut for code in node.codes()) == list(range(size))
