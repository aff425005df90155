"""Groups of values: what may be divided, and into what."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from common.errors import RemoteProtocolError
from common.methods.distdiffgen.cuts import Cuts, LeafModel, leaf_request
from common.methods.distdiffgen.divisions import (
    DivisionChoice,
)
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.hierarchy import Node, leaf
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import random_tables, schema_of

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


def test_counts_are_those_of_the_groups():
    (table,) = random_tables(SIZES, [300]).values()
    cuts = Cuts.start(schema_of(SIZES), 0).divided((1, 0)).divided((3, 0))
    counted = leaf_request(cuts, SIZES).answer(RowsInMemory(table)).reshape(2, 4, 1, 5)
    for t, a, b in product(range(2), range(4), range(5)):
        same = (table.columns[0] == t) & (table.columns[1] == a) & (table.columns[3] == b)
        assert counted[t, a, 0, b] == same.sum()


def test_a_request_names_the_attributes_that_were_divided_and_which_are_grouped():
    cuts = Cuts.start(schema_of(SIZES), 0).divided((1, 0))
    request = leaf_request(cuts, SIZES)
    (table,) = request.tables
    assert (table.variables, table.shape, table.grouped) == ((0, 1), (2, 4), (False, False))
    assert request.links == ((0, 1),)
    assert (request.cells, request.limit(7)) == (8, 7)
    other = leaf_request(cuts.divided((3, 0)), SIZES)
    assert other.canonical != request.canonical


def model(counts):
    groups = (Node("", (leaf("", 0), leaf("", 2), leaf("", 3))), leaf("", 1))
    cuts = Cuts(((leaf("", 0), leaf("", 1)), groups, (Node("", (leaf("", 0), leaf("", 1))),)), 0)
    return LeafModel(cuts, (2, 4, 2), np.array(counts))


def test_rows_follow_the_counts_and_are_uniform_within_a_group():
    drawn = model([[30, 10], [-5, 60]]).sample(12_000, SeededRandomSource("rows"))
    found = np.zeros((2, 4))
    np.add.at(found, tuple(drawn.columns[:2]), 1)
    expected = np.array([[0.1, 0.1, 0.1, 0.1], [0, 0.6, 0, 0]]) * 12_000
    assert (found[expected == 0] == 0).all()
    assert chisquare(found[expected > 0], expected[expected > 0]).pvalue > 1e-6
    assert abs(drawn.columns[2].mean() - 0.5) < 5 * 0.5 / np.sqrt(12_000)


def test_without_a_count_above_zero_every_combination_is_as_likely():
    drawn = model([[-1, 0], [0, -3]]).sample(4000, SeededRandomSource("none"))
    pairs = np.bincount(drawn.columns[0] * 2 + (drawn.columns[1] == 1), minlength=4)
    assert chisquare(pairs).pvalue > 1e-6
    assert drawn.sizes == (2, 4, 2)


def test_a_published_model_has_the_groups_and_the_noisy_counts():
    assert model([[30, 10], [-5, 60]]).as_json() == {
        "format": "parley leaves 1",
        "target": 0,
        "groups": [[[0], [1]], [[0, 2, 3], [1]], [[0, 1]]],
        "counts": [30, 10, -5, 60],
    }


def test_values_in_another_order_than_their_codes_are_groups():
    """Rules are about codes: cells in the order of a hierarchy must not be taken for theirs."""
    values = [Node(str(code), code=code) for code in range(3)]
    cuts = Cuts(((values[2], values[0], values[1]), tuple(values[:2])), 1)
    request = leaf_request(cuts, (3, 2))
    assert request.tables[0].grouped == (True, False)
    rows = Codes.from_columns([np.array([2, 2, 0]), np.array([0, 1, 1])], (3, 2))
    counted = request.answer(RowsInMemory(rows)).reshape(3, 2)
    assert counted.tolist() == [[1, 1], [0, 1], [0, 0]]
