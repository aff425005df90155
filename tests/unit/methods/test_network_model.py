"""Variables and their tables, and the network model: rows that follow it, what is published."""

import json
from fractions import Fraction

import numpy as np
import pytest

from common.bayes.domain import View
from common.methods.network_model import NetworkModel, Variables, network_of, table_sets
from common.privacy import sensitivity
from common.privacy.randomness import SeededRandomSource
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import random_tables, study_of

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


def test_variables_are_attributes_or_their_bits():
    assert Variables((3, 5)).sizes == (3, 5)
    assert Variables((3, 5, 2), in_bits=True).sizes == (2,) * (2 + 3 + 1)


def test_bits_are_counted_as_the_bits_of_the_rows():
    (table,) = random_tables((3, 5), [300]).values()
    variables = Variables(table.sizes, in_bits=True)
    counted = variables.request([(0, 4)]).answer(variables.rows(RowsInMemory(table)))
    high, low = table.columns[0] >> 1, table.columns[1] & 1
    expected = [int(((high == h) & (low == b)).sum()) for h in (0, 1) for b in (0, 1)]
    assert counted.tolist() == expected


def test_tables_of_some_parties_cost_them_what_is_said_and_no_other():
    tables = random_tables((2, 3), [50, 40])
    study = study_of(tables, method="floor", epsilon=Fraction(2))
    script = Variables.of(study).sum_tables(
        [(0,), (0, 1)],
        name="tables",
        phase="counts",
        parties=("p1",),
        promise=study.promise,
        cost=Fraction(3, 4),
    )
    step = next(script)
    assert step.costs == {"p1": Fraction(3, 4)}
    assert step.sensitivity == sensitivity.histograms(2)
    assert (step.name, step.phase, step.cells) == ("tables", "counts", 2 + 6)
    exact = step.request.answer(RowsInMemory(tables["p1"]))
    with pytest.raises(StopIteration) as ended:
        script.send(exact)
    one, two = ended.value.value
    assert (one == two.sum(axis=1)).all()
    assert two.sum() == 40
