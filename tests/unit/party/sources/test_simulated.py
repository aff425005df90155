"""Simulated rows: in the schema's domains, the same each time, and cheap at any number."""

import numpy as np
import pytest

from common.marginals import count
from common.schema import Schema
from common.schema.linked import LinkedCodes
from party.sources.simulated import MOST_DISTINCT, SimulatedSource
from tests.harness.linked import RULED
from tests.harness.linked import SCHEMA as LINKED

SCHEMA = Schema.from_toml("""
attribute = [
  { name = "age", kind = "integer", edges = [0, 15, 30, 60, 100] },
  { name = "job", kind = "categorical", values = ["none", "clerk", "smith"], other = true },
  { name = "paid", kind = "categorical", values = ["no", "yes"] },
]

[[rule]]
when = "age < 15"
then = "paid = no"
""")


def source(rows, seed="north in a study"):
    return SimulatedSource(SCHEMA, rows, seed=seed)


def test_the_rows_are_in_the_domains_and_obey_the_rules():
    codes = source(5000).codes()
    assert (codes.rows, codes.sizes) == (5000, SCHEMA.sizes)
    assert SCHEMA.possible.holds(codes).all()
    assert [len(np.unique(column)) for column in codes.columns] == list(SCHEMA.sizes)


def test_columns_depend_on_each_other_so_that_a_method_runs_all_of_its_phases():
    (table,) = source(5000).count([(0, 1)])
    alone = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    assert np.abs(table - alone).sum() / 2 / table.sum() > 0.1


def test_the_same_seed_gives_the_same_rows_and_another_party_has_others():
    first, again, other = source(300), source(300), source(300, "east in a study")
    assert first.snapshot == again.snapshot
    assert first.snapshot.simulated
    assert all(map(np.array_equal, first.codes().columns, again.codes().columns))
    assert first.digest != other.digest
    assert not np.array_equal(first.codes().columns[0], other.codes().columns[0])


@pytest.mark.parametrize("rows", [1, MOST_DISTINCT, MOST_DISTINCT + 7, 3 * MOST_DISTINCT])
def test_counts_are_those_of_all_rows(rows):
    simulated = source(rows)
    codes = simulated.codes()
    assert codes.rows == simulated.rows == rows
    sets = [(0,), (1, 2)]
    assert all(map(np.array_equal, simulated.count(sets), count(codes, sets)))


def test_a_billion_rows_are_no_more_work():
    (table,) = source(10**9).count([(1,)])
    assert table.sum() == 10**9


def test_people_of_a_linked_schema_have_events_that_depend_on_them():
    simulated = SimulatedSource(LINKED, MOST_DISTINCT + 5000, seed="north in a study")
    codes = simulated.codes()
    assert isinstance(codes, LinkedCodes)
    assert codes.rows == simulated.rows == MOST_DISTINCT + 5000
    assert set(codes.numbers.tolist()) == set(range(LINKED.events.most + 1))
    assert codes.events.sizes == LINKED.of_events.sizes
    table = count(codes.by_event, [(1, 3)])[0]
    alone = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    assert np.abs(table - alone).sum() / 2 / table.sum() > 0.1


def test_people_of_a_linked_schema_are_those_of_their_table_alone():
    linked, alone = (SimulatedSource(own, 300, seed="x") for own in (LINKED, LINKED.people))
    assert all(map(np.array_equal, linked.codes().columns, alone.codes().columns))


def test_simulated_events_obey_the_rules():
    codes = SimulatedSource(RULED, 300, seed="x").codes()
    assert RULED.possible_events.holds(codes, codes.events, codes.of_person).all()
