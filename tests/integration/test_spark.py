"""Apache Spark with two workers of its own: the same counts as in memory, to the last unit."""

import shutil
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common.errors import InputError, PolicyError
from common.fitted.drawing import write_stream
from common.marginals import count
from common.release import synthetic_table
from common.schema.codes import concatenate
from parley import PrivBayes
from parley.models.spark_output import write_on_spark
from party.sources import SourceSettings
from party.sources.fingerprint import LinkedDigest, RowDigest
from party.sources.kinds.spark import SparkSource, SparkTable, start_session
from party.sources.settings import owners_table
from tests.harness.cells import TEXTS, every_kind
from tests.harness.linked import SCHEMA as LINKED_SCHEMA
from tests.harness.linked import frames as linked_frames
from tests.harness.linked import linked_codes
from tests.harness.people import people as everybody
from tests.harness.people import schema_of

pytestmark = pytest.mark.slow  # a session takes its time to start

AGE = "age in `years`"  # a name that Spark could misread
MANY_BINS = 'kind = "date"\nmin = 2000-01-01\nmax = 2025-12-31\nbins = 300'  # codes of two bytes
SCHEMA = schema_of("sex", "age", "income", "since", called={"age": AGE}, more={"since": MANY_BINS})
ROWS = 20_000
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


def people(rows=ROWS):
    return everybody(rows).rename(columns={"age": AGE})


def write(frame, folder):
    """Four files, so that there are partitions to share out."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for part in range(4):
        frame.iloc[part::4].to_parquet(folder / f"part-{part}.parquet", index=False)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """A cluster with two worker processes, which know nothing of this folder."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java here: install openjdk-17-jre-headless")
    folder = tmp_path_factory.mktemp("spark")
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.files.maxPartitionBytes": "200k",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.executor.processTreeMetrics.enabled": "false",
        "spark.executor.memory": "512m",
        # Three short-lived virtual machines: translating thoroughly costs more than it saves.
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.executor.extraJavaOptions": QUICK_START,
    }
    session = start_session("local-cluster[2,1,512]", options)
    session.sparkContext.setLogLevel("OFF")
    write(people(), folder / "people")
    yield SimpleNamespace(session=session, folder=folder, path=folder / "people")
    session.stop()


@pytest.fixture(scope="module")
def opened(spark):
    """A source that several tests look at."""
    return SparkSource(SparkTable(spark.session, str(spark.path)), SCHEMA)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.float64()], ids=str)
def test_no_cell_has_a_part_in_the_code_of_another(spark, kind):
    cells = [cell for group in TEXTS for cell in group] + [None, ""]
    if kind == pa.float64():
        cells = [1.0, 0.5, 12345678901.0, -0.0, 1e19, float("nan"), float("inf"), None]
    column = pa.array(cells, type=kind)
    schema = every_kind()
    names, sets = list(schema.names), [(at,) for at in range(len(schema.names))]
    folder = spark.folder / f"cells of {kind}"
    folder.mkdir()
    for part in range(3):  # other cells next to each in every file
        held = column.take(np.random.default_rng(part).permutation(len(cells)))
        pq.write_table(pa.table([held] * len(names), names), folder / f"part-{part}.parquet")
    rows = [pa.table([column[at : at + 1]] * len(names), names) for at in range(len(cells))]
    alone = [schema.encode(row) for row in rows]
    source = SparkTable(spark.session, str(folder))
    source.check()
    found = SparkSource(source, schema).count(sets)
    for table, wanted in zip(found, count(concatenate(alone), sets), strict=True):
        assert table.tolist() == (3 * wanted).tolist()


def test_a_table_that_cannot_be_read_is_found_without_a_study(spark):
    with pytest.raises(InputError, match="absent"):
        SparkTable(spark.session, str(spark.folder / "absent")).check()
    with pytest.raises(InputError, match="WHERE false: the table has no rows"):
        SparkTable(spark.session, query="SELECT 1 AS a WHERE false").check()


@pytest.mark.parametrize("groups", [{}, {1: [code % 3 for code in range(SCHEMA.sizes[1])]}])
def test_counts_are_those_in_memory_to_the_last_unit(opened, groups):
    sets = [(), (0,), *combinations(range(4), 2), (3, 1, 0)]
    expected = count(SCHEMA.encode(people()), sets, groups=groups)
    for table, wanted in zip(opened.count(sets, groups), expected, strict=True):
        assert table.dtype == wanted.dtype
        assert np.array_equal(table, wanted)


def test_the_snapshot_is_that_of_any_other_source(opened):
    digest = RowDigest(SCHEMA.sizes)
    digest.add(SCHEMA.encode(people()))
    assert (opened.rows, opened.snapshot.digest) == (ROWS, digest.hexdigest())


def test_the_rows_come_in_chunks(opened):
    assert len(list(opened.chunks())) > 1
    everything = opened.codes()
    expected = SCHEMA.encode(people())
    sets = [(0, 1, 2)]
    assert np.array_equal(count(everything, sets)[0], count(expected, sets)[0])


def test_the_work_is_done_by_two_workers_with_the_code_that_was_sent(spark, opened):
    def where(batches):
        import pyarrow as pa

        import party

        rows = sum(batch.num_rows for batch in batches)
        names = [[str(Path.cwd())], [party.__file__], [rows]]
        yield pa.record_batch([pa.array(name) for name in names], names=["at", "code", "rows"])

    frame = spark.session.read.parquet(str(spark.path)).select("id").repartition(8)
    with pytest.warns(FutureWarning, match="pandas"):
        seen = frame.mapInArrow(where, "at string, code string, rows long").toArrow().to_pandas()
    assert seen["rows"].sum() == ROWS
    assert seen["at"].nunique() == 2
    assert seen["code"].str.contains(r"parley-.*\.zip/party").all()


def test_a_table_that_changes_during_the_study_is_refused(spark):
    path = spark.folder / "changing"
    write(people(2000), path)
    source = SparkSource(SparkTable(spark.session, str(path)), SCHEMA)
    changed = people(2000)
    changed.loc[0, "age in `years`"] = 99 - changed.loc[0, "age in `years`"]
    write(changed, path)
    with pytest.raises(PolicyError, match="changed during the study"):
        source.count([(0,)])
    with pytest.raises(PolicyError, match="changed during the study"):
        list(source.chunks())
    write(people(2000), path)
    assert source.count([()])[0] == 2000


def test_settings_name_a_query(spark):
    spark.session.read.parquet(str(spark.path)).createOrReplaceTempView("people")
    query = "SELECT * FROM people WHERE id < 500"
    settings = SourceSettings.from_table(
        {"kind": "spark", "query": query}, folder=Path("/"), environment={}
    )
    source = settings.open(SCHEMA)
    wanted = count(SCHEMA.encode(people().iloc[:500]), [(0, 3)])[0]
    assert np.array_equal(source.count([(0, 3)])[0], wanted)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT * FROM nobody", "nobody"),
        ("SELECT id, sex FROM people", 'missing column "age in `years`"'),
        ("SELECT * FROM people WHERE false", "no rows"),
        (
            "SELECT id, sex, `age in ``years```, income, date '1999-01-01' AS since FROM people",
            "attribute 'since'.*outside the domain",
        ),
    ],
)
def test_what_goes_wrong_is_named(spark, query, named):
    spark.session.read.parquet(str(spark.path)).createOrReplaceTempView("people")
    with pytest.raises(InputError, match=named):
        SparkSource(SparkTable(spark.session, query=query), SCHEMA)


def test_rows_drawn_on_spark_are_those_drawn_here(spark):
    rows = 2 * synthetic_table.BLOCK_ROWS + 1000
    model = PrivBayes(epsilon=1, seed=3).fit(people(2000), SCHEMA)
    write_on_spark(spark.session, str(spark.folder / "drawn"), model, rows, partition_blocks=1)
    write_stream(spark.folder / "drawn.parquet", model, rows)
    files = sorted((spark.folder / "drawn").glob("*.parquet"))
    there = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    here = pd.read_parquet(spark.folder / "drawn.parquet")
    assert len(files) == 3
    pd.testing.assert_frame_equal(there, here, check_dtype=False)


def test_people_and_their_events_are_encoded_where_they_are(spark):
    everyone, events = linked_frames(500)
    write(everyone, spark.folder / "linked people")
    write(events, spark.folder / "linked visits")
    table = {"kind": "spark", "person": "id"}
    source = owners_table(
        {**table, "path": "linked people", "events": {**table, "path": "linked visits"}},
        folder=spark.folder,
        environment={},
    )
    source.check_readable()
    opened = source.open(LINKED_SCHEMA)
    expected = linked_codes(500)
    digest = LinkedDigest(expected)
    digest.add(expected)
    assert (opened.rows, opened.digest) == (500, digest.hexdigest())
    assert len(list(opened.chunks())) > 1
    write(pd.concat([everyone, everyone.iloc[:1]]), spark.folder / "linked people")
    with pytest.raises(InputError, match="one row"):
        source.check_readable()
