"""Tables too large to hold: read in parts, counted by the database, or where the partitions are."""

import builtins
from functools import partial
from itertools import combinations, pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError, LocalError, PolicyError
from common.marginals import count
from common.schema import Schema
from common.schema.codes import concatenate
from party.sources import SourceSettings, files, grouping, partition, parts
from party.sources.fingerprint import RowDigest, SharedDigest
from party.sources.grouping import is_cheaper
from party.sources.partition import PartitionCounter, PartitionEncoder, gathered, unpacked
from party.sources.spark import start_session
from tests.harness.people import ROWS, schema_of
from tests.harness.people import people as everybody

NAMES = ("sex", "age", "income", "smokes")
SCHEMA = schema_of(*NAMES)
people = partial(everybody, columns=NAMES)
SETS = [(0, 1), (3,), (1, 3, 0), (0, 3)]
HALVES = {1: [code % 2 for code in range(SCHEMA.sizes[1])], 2: [0] * SCHEMA.sizes[2]}


def assert_same(tables, wanted):
    for one, other in zip(tables, wanted, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def batches(frame, size):
    return pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=size)


def opened(folder, table, **changes):
    made = SourceSettings.from_table({**table, **changes}, folder=folder, environment={})
    return made.open(SCHEMA, held_bytes=0)


@pytest.mark.parametrize("group_rows", [1, 700, ROWS])
def test_row_groups_of_any_size_give_every_row_in_order(tmp_path, monkeypatch, group_rows):
    frame = people(50 if group_rows == 1 else ROWS)
    monkeypatch.setattr(files, "_BATCH_ROWS", 300)
    frame.to_parquet(tmp_path / "p.parquet", row_group_size=group_rows, index=False)
    source = opened(tmp_path, {"kind": "parquet", "path": "p.parquet"})
    expected = SCHEMA.encode(frame)
    assert_same(source.count(SETS), count(expected, SETS))
    assert_same(source.count(SETS, HALVES), count(expected, SETS, groups=HALVES))
    assert_same(concatenate(list(source.chunks())).columns, expected.columns)


def test_columns_whose_dictionaries_end_early_stay_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BATCH_ROWS", 256)
    frame = people()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    # Text that outgrows its dictionary goes on without one, in the middle of a row group.
    pyarrow.parquet.write_table(
        table, tmp_path / "p.parquet", dictionary_pagesize_limit=8, data_page_size=64
    )
    source = opened(tmp_path, {"kind": "parquet", "path": "p.parquet"})
    assert_same(concatenate(list(source.chunks())).columns, SCHEMA.encode(frame).columns)


def test_a_bad_cell_deep_in_a_file_is_named_by_its_row(tmp_path):
    frame = people()
    frame.loc[2321, "age"] = 200
    frame.to_parquet(tmp_path / "p.parquet", row_group_size=1000, index=False)
    with pytest.raises(InputError, match=r"'age'.*row 2,322"):
        opened(tmp_path, {"kind": "parquet", "path": "p.parquet"})


def test_a_digest_shared_by_threads_is_that_of_all_rows():
    codes = SCHEMA.encode(people())
    whole = RowDigest(SCHEMA.sizes)
    whole.add(codes)
    shared = SharedDigest(SCHEMA.sizes)
    for start in (3000, 0, 1000, 2000, 4000):
        list(shared.following([codes.take(slice(start, start + 1000))]))
    assert (shared.rows, shared.hexdigest()) == (ROWS, whole.hexdigest())
    counting = SharedDigest(SCHEMA.sizes, rows_only=True)
    list(counting.following([codes]))
    assert counting.rows == ROWS
    with pytest.raises(LocalError, match="no digest"):
        counting.hexdigest()


# Partitions: what runs on the executors of Spark, without Spark.


def positional(frame):
    return frame.set_axis([f"c{at}" for at in range(frame.shape[1])], axis=1)


def summed(outputs):
    table = pa.Table.from_batches(outputs).group_by("cell").aggregate([("count", "sum")])
    return table.rename_columns(["cell", "count"])


@pytest.mark.parametrize("groups", [{}, HALVES])
@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=6), st.integers(1, 200))
def test_partitions_add_up_to_the_table(groups, cuts, size):
    frame = people(300)
    bounds = [0, *sorted(cuts), 300]
    sets = [(), (0,), *combinations(range(4), 2), (2, 0, 3)]
    counter = PartitionCounter(SCHEMA.to_toml(), tuple(sets), groups)
    outputs = [
        output
        for low, high in pairwise(bounds)
        for output in counter(batches(positional(frame.iloc[low:high]), size))
    ]
    digest, tables = gathered(summed(outputs), SCHEMA.sizes, sets, groups)
    codes = SCHEMA.encode(frame)
    whole = RowDigest(SCHEMA.sizes)
    whole.add(codes)
    assert digest.hexdigest() == whole.hexdigest()
    assert_same(tables, count(codes, sets, groups=groups))


def test_encoded_partitions_come_back_as_codes(monkeypatch):
    monkeypatch.setattr(partition, "CHUNK_ROWS", 400)
    encoder = PartitionEncoder(SCHEMA.to_toml())
    rows = list(encoder(batches(positional(people()), 100)))
    assert len(rows) > 1
    codes = [unpacked([c[0].as_py() for c in row.columns], SCHEMA) for row in rows]
    assert_same(concatenate(codes).columns, SCHEMA.encode(people()).columns)
    with pytest.raises(LocalError, match="columns"):
        unpacked([b""], SCHEMA)


# A database that counts.


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
    monkeypatch.setattr(grouping, "_FEWER", 1)
    monkeypatch.setattr(grouping, "_SCAN", 0)
    monkeypatch.setattr(grouping, "_FINGERPRINT", 0)


def test_duckdb_counts_to_the_last_unit(tmp_path, database, cheap_groups, monkeypatch):
    monkeypatch.setattr(parts, "CHUNK_ROWS", 700)
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


# Spark: settings, and what is missing.


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"kind": "spark"}, "one of path, table and query"),
        ({"kind": "spark", "path": "x", "query": "q"}, "one of path, table and query"),
        ({"kind": "spark", "path": "x", "uri": "u"}, "unknown key 'source.uri'"),
    ],
)
def test_spark_settings_that_make_no_sense_are_refused(tmp_path, table, named):
    with pytest.raises(InputError, match=named):
        SourceSettings.from_table(table, folder=tmp_path, environment={})


def test_spark_settings_say_where_the_table_is(tmp_path):
    def made(**table):
        return SourceSettings.from_table(
            {"kind": "spark", **table}, folder=tmp_path, environment={}
        )

    assert made(path="people").address == str(tmp_path / "people")
    assert made(path="s3a://bucket/people").address == "s3a://bucket/people"
    assert made(table="health.people").query == "SELECT * FROM `health`.`people`"
    assert made(query="SELECT 1", master="yarn").options == {"master": "yarn"}


def test_without_pyspark_the_extra_is_named(monkeypatch):
    importing = builtins.__import__

    def without(name, *arguments, **more):
        if name.startswith("pyspark"):
            raise ImportError(name)
        return importing(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"parley\[spark\]"):
        start_session()


def test_without_java_it_is_named(monkeypatch, tmp_path):
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="Java 17"):
        start_session()
