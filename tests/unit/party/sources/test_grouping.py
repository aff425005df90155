"""When the database counts."""

from itertools import combinations

import duckdb
import pytest

from common.errors import PolicyError
from common.marginals import count
from common.schema import Schema
from party.sources import reader, source
from party.sources.source import is_cheaper
from tests.harness.people import ROWS
from tests.unit.party.sources.scaled import SCHEMA, SETS, assert_same, opened, people


@pytest.fixture
def database(tmp_path):
    def write(frame):
        (tmp_path / "d.duckdb").unlink(missing_ok=True)
        with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
            connection.register("frame", frame)
            connection.execute("CREATE TABLE people AS SELECT * FROM frame")

    write(people())
    return write


@pytest.fixture
def cheap_groups(monkeypatch):
    monkeypatch.setattr(source, "_FEWER", 1)
    monkeypatch.setattr(source, "_SCAN", 0)
    monkeypatch.setattr(source, "_FINGERPRINT", 0)


def test_duckdb_counts_to_the_last_unit(tmp_path, database, cheap_groups, monkeypatch):
    monkeypatch.setattr(reader, "CHUNK_ROWS", 700)
    source = opened(tmp_path, {"kind": "duckdb", "path": "d.duckdb", "table": "people"})
    expected = count(SCHEMA.encode(people()), SETS)
    assert_same(source.count(SETS), expected)
    monkeypatch.setattr(source, "_count_rows", None)  # from now on the groups have to do
    assert_same(source.count(SETS), expected)


def test_a_changed_table_is_noticed_by_its_fingerprint(
    tmp_path, database, cheap_groups, monkeypatch
):
    source = opened(tmp_path, {"kind": "duckdb", "path": "d.duckdb", "table": "people"})
    source.count([(0,)])
    monkeypatch.setattr(source, "_count_rows", None)
    changed = people()
    changed.loc[7, "age"] = 99 - changed.loc[7, "age"]
    database(changed)
    with pytest.raises(PolicyError, match="changed during the study"):
        source.count([(0,)])
    database(people().sample(frac=1, random_state=1))
    assert source.count([(0,)])[0].sum() == ROWS


WIDE = Schema(
    tuple(
        Schema.from_toml(f'[[attribute]]\nname = "b{at}"\nkind = "boolean"').attributes[0]
        for at in range(20)
    )
)


@pytest.mark.parametrize(
    ("schema", "sets", "rows", "cheaper"),
    [
        (WIDE, [(0, 1)], 10**6, True),
        (WIDE, [(0, 1), (1, 0), (2,)], 10**6, True),
        (WIDE, list(combinations(range(20), 2)), 10**6, False),  # too many passes
        (WIDE, [(0, 1)], 20, False),  # hardly fewer groups than rows
        (WIDE, [(0, 1), ()], 10**6, False),  # there is nothing to group by
        (SCHEMA, [(2,)], 10**6, False),  # any number of different incomes
    ],
)
def test_grouping_is_left_to_the_database_only_where_it_pays(schema, sets, rows, cheaper):
    assert is_cheaper(schema, sets, rows) == cheaper
