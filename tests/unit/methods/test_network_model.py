"""A network model: which tables it needs, rows that follow them, and what is published of it."""

import json

import numpy as np
import pytest

from common.bayes.domain import View
from common.methods.network_model import NetworkModel, network_of, table_sets
from common.methods.variables import Variables
from common.privacy.randomness import SeededRandomSource

SIZES = (2, 3, 2)
NETWORK = network_of(((), (0,), (1,)))


def model(*, in_bits=False):
    tables = {
        (View(1), View(0)): np.array([[30, 5], [-4, 20], [30, 15]]),
        (View(2), View(1)): np.array([[40, 0, 10], [0, 20, 30]]),
    }
    return NetworkModel(Variables(SIZES, in_bits=in_bits), NETWORK, tables)


def test_a_family_that_lies_in_another_needs_no_table():
    assert sorted(table_sets(NETWORK).values()) == [(1, 0), (2, 1)]
    clique = network_of(((), (0,), (0, 1), (0, 1), (1, 2)))
    # Five binary variables of degree 2 whose first three form a clique: 5 - 2 tables.
    assert len(table_sets(clique)) == 3


def test_rows_follow_the_noisy_tables_with_negative_counts_as_none():
    drawn = model().sample(20_000, SeededRandomSource("rows"))
    a, b, c = drawn.columns
    assert not ((a == 0) & (b == 1)).any()
    # Pr[a] from the first table, clipped: 60 and 40 of 100.
    assert abs(a.mean() - 0.4) < 5 * np.sqrt(0.24 / 20_000)
    given = b[a == 1]
    shares = np.bincount(given, minlength=3) / len(given)
    assert shares == pytest.approx(np.array([5, 20, 15]) / 40, abs=0.03)
    assert (c[b == 0] == 0).all()
    assert (c[b == 1] == 1).all()
    assert abs(c[b == 2].mean() - 0.75) < 0.03


def test_what_is_published_is_the_network_and_its_noisy_tables():
    published = json.loads(json.dumps(model().as_json()))
    assert (published["format"], published["encoding"]) == ("parley network 1", "own")
    assert published["sizes"] == [2, 3, 2]
    assert published["tables"][0] == {"family": [1, 0], "counts": [30, 5, -4, 20, 30, 15]}
    assert model(in_bits=True).as_json()["encoding"] == "binary"
