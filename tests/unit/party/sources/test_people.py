"""People in place of rows: who is kept, how many, and how far one person can move a table."""

import itertools
import sqlite3
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.marginals import count
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.limits import MOST_ROWS
from party.sources import people as people_module
from party.sources.fingerprint import RowDigest
from party.sources.people import PeopleLimit, PublicRows, chosen
from party.sources.settings import SourceSettings, owners_table

SCHEMA = Schema.from_toml("""
attribute = [
  { name = "age", kind = "integer", min = 0, max = 99, bins = 10 },
  { name = "ill", kind = "boolean" },
]
""")

RULED = """
attribute = [
  { name = "age", kind = "integer", min = 0, max = 99, bins = 10 },
  { name = "ill", kind = "boolean" },
]
rule = [{ impossible = "ill = true and age >= 50" }]
"""


def limit(rows, per_person, key=b"k" * 32):
    return PeopleLimit(rows=rows, per_person=per_person, key=key, filler=b"f")


def taking_part(visits, agreed):
    """The rows that a study sees of (person, age, ill) visits, as a multiset."""
    codes = Codes.from_columns(
        [np.array([v[1] for v in visits], dtype=int), np.array([v[2] for v in visits], dtype=int)],
        SCHEMA.sizes,
    )
    people = [str(v[0]).encode() for v in visits]
    kept = codes.take(chosen(codes, people, agreed))
    public = PublicRows(agreed.rows - kept.rows, SCHEMA, agreed.filler)
    return multiset([kept, *public.chunks()])


def multiset(chunks):
    """Rows, and how often each of them is there."""
    return Counter(
        row
        for chunk in chunks
        for row in zip(*(column.tolist() for column in chunk.columns), strict=True)
    )


visit = st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 1))
own_visits = st.lists(st.tuples(st.just("me"), st.integers(0, 9), st.integers(0, 1)), max_size=9)


@settings(max_examples=50, deadline=None)
@given(
    others=st.lists(visit, min_size=1, max_size=25),
    before=own_visits,
    after=own_visits,
    rows=st.integers(3, 30),
    per_person=st.integers(1, 3),
    key=st.binary(min_size=32, max_size=32),
)
def test_one_person_replaces_at_most_k_rows_of_a_table_of_the_agreed_size(
    others, before, after, rows, per_person, key
):
    """Whatever rows the person has, also none, and whether rows are dropped or filled up."""
    agreed = limit(rows, per_person, key)
    one, other = taking_part(others + before, agreed), taking_part(others + after, agreed)
    assert one.total() == other.total() == rows
    assert (one - other).total() <= per_person


def test_some_person_replaces_k_rows():
    """The bound is attained: with k - 1 the test above would fail."""
    agreed = limit(10, 3)
    before = [("me", 0, 0)] * 3
    after = [("me", 9, 1)] * 3
    one, other = (taking_part([(1, 5, 0), *own], agreed) for own in (before, after))
    assert (one - other).total() == 3


@settings(max_examples=25, deadline=None)
@given(visits=st.lists(visit, min_size=1, max_size=30), order=st.randoms())
def test_the_order_of_rows_does_not_matter(visits, order):
    mixed = visits.copy()
    order.shuffle(mixed)
    assert taking_part(visits, limit(12, 2)) == taking_part(mixed, limit(12, 2))


def test_at_most_k_rows_of_each_person_are_kept_and_the_key_decides_which():
    rng = np.random.default_rng(0)
    codes = Codes.from_columns([rng.integers(0, 10, 500), rng.integers(0, 2, 500)], SCHEMA.sizes)
    people = [str(each).encode() for each in rng.integers(0, 60, 500)]
    kept = [chosen(codes, people, limit(500, 3, bytes([key]) * 32)) for key in (1, 2)]
    for own in kept:
        times = Counter(people[at] for at in own)
        assert max(times.values()) == 3
        assert len(times) == len(set(people))
    assert set(kept[0].tolist()) != set(kept[1].tolist())
    counts = np.bincount(np.concatenate([chosen(codes, people, limit(30, 3, bytes([k]) * 32))
                                         for k in range(200)]), minlength=500)  # fmt: skip
    assert counts[counts > 0].size > 250  # who is dropped is not always the same


@pytest.fixture
def short_block(monkeypatch):
    """Let the public rows repeat after seven."""
    monkeypatch.setattr(people_module, "_BLOCK_CELLS", 7 * len(SCHEMA.sizes))


@pytest.mark.usefixtures("short_block")
def test_more_public_rows_begin_like_fewer_and_repeat():
    sequence = [multiset(PublicRows(rows, SCHEMA, b"f").chunks()) for rows in range(30)]
    steps = [after - before for before, after in itertools.pairwise(sequence)]
    assert [rows.total() for rows in sequence] == list(range(30))
    assert all(step.total() == 1 for step in steps)
    assert steps[:7] * 4 == steps[:28]
    assert len(set(map(str, steps[:7]))) > 3


@pytest.mark.usefixtures("short_block")
@pytest.mark.parametrize("rows", [4, 7, 14, 30])
def test_public_rows_are_counted_as_if_they_were_there(tmp_path, rows):
    table = write("csv", tmp_path, VISITS.rename(columns={"years": "age"}))
    source = SourceSettings.from_table(table, folder=tmp_path, environment={})
    found = source.open(SCHEMA, people=limit(rows, 1))
    sets, groups = [(0,), (1, 0), ()], {0: (0, 0, 0, 1, 1, 1, 2, 2, 2, 2)}
    codes = found.codes()
    assert codes.rows == found.rows == rows
    for own in ({}, groups):
        for fast, slow in zip(found.count(sets, own), count(codes, sets, groups=own), strict=True):
            np.testing.assert_array_equal(fast, slow)
    digest = RowDigest(SCHEMA.sizes)
    digest.add(codes)
    assert found.snapshot.digest == digest.hexdigest()


def test_no_public_row_breaks_a_rule():
    schema = Schema.from_toml(RULED)
    (rows,) = [chunk for chunk in PublicRows(500, schema, b"f").chunks() if chunk.rows]
    assert schema.possible.holds(rows).all()
    assert len(multiset([rows])) > 2


def test_public_rows_of_any_number_are_counted_at_once():
    public = PublicRows(MOST_ROWS, SCHEMA, b"f")
    assert public.count([(0, 1)], {})[0].sum() == MOST_ROWS
    assert public.digest().rows == MOST_ROWS


def write(kind, folder, table):
    path = folder / f"visits.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    elif kind == "parquet":
        table.to_parquet(path, index=False)
    else:
        with sqlite3.connect(path) as base:
            table.to_sql("visits", base, index=False)
    more = {"table": "visits"} if kind == "sqlite" else {}
    return {"kind": kind, "path": path.name, "person": "patient", **more}


VISITS = pd.DataFrame(
    {
        "patient": [7, 7, 7, 8, 8, 9, None],
        "years": [11, 22, 33, 44, 55, 66, 77],
        "ill": [True, False, True, False, True, False, True],
    }
)


@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite"])
def test_every_kind_of_source_keeps_people(tmp_path, kind):
    table = write(kind, tmp_path, VISITS.convert_dtypes())
    table["columns"] = {"age": "years"}
    source = SourceSettings.from_table(table, folder=tmp_path, environment={})
    found = source.open(SCHEMA, people=limit(20, 2))
    assert found.rows == found.codes().rows == 20
    assert "7 rows of 4 people: 1 row dropped" in found.snapshot.note
    assert "14 public rows added" in found.snapshot.note
    again = source.open(SCHEMA, people=limit(20, 2))
    assert again.snapshot.digest == found.snapshot.digest
    few = source.open(SCHEMA, people=limit(3, 2))
    assert few.rows == few.count([(0,)])[0].sum() == 3
    assert source.open(SCHEMA).rows == 7  # a study of rows takes them all


def test_a_person_may_be_in_several_tables(tmp_path):
    table = write("csv", tmp_path, VISITS.rename(columns={"years": "age"}))
    (tmp_path / "again.csv").write_bytes((tmp_path / table["path"]).read_bytes())
    both = owners_table([table, table | {"path": "again.csv"}], folder=tmp_path, environment={})
    assert (
        "14 rows of 4 people: 6 rows dropped"
        in both.open(SCHEMA, people=limit(14, 2)).snapshot.note
    )


def test_a_table_without_people_is_a_table_of_public_rows(tmp_path):
    table = write("csv", tmp_path, VISITS.rename(columns={"years": "age"}))
    (tmp_path / "none.csv").write_text("patient,age,ill\n")
    empty = table | {"path": "none.csv"}
    unmet = table | {"where": "age > 98"}
    for tables in ([empty], [unmet], [table, empty]):
        source = owners_table(tables, folder=tmp_path, environment={})
        source.check_readable()
        assert source.open(SCHEMA.forgiven(), people=limit(20, 2)).codes().rows == 20


def test_who_a_row_is_never_becomes_an_attribute(tmp_path):
    table = write("csv", tmp_path, VISITS.rename(columns={"years": "age"}))
    source = SourceSettings.from_table(table | {"person": "age"}, folder=tmp_path, environment={})
    for people in (None, limit(5, 1)):
        with pytest.raises(InputError, match="'age' is an attribute of the study"):
            source.open(SCHEMA, people=people)


def test_a_source_without_people_is_refused_by_a_study_of_people(tmp_path):
    table = write("csv", tmp_path, VISITS.rename(columns={"years": "age"}))
    del table["person"]
    with pytest.raises(InputError, match="Name the column that says whose row"):
        SourceSettings.from_table(table, folder=tmp_path, environment={}).open(
            SCHEMA, people=limit(5, 1)
        )
    table["person"] = "nurse"
    with pytest.raises(InputError, match="there is no column 'nurse'"):
        SourceSettings.from_table(table, folder=tmp_path, environment={}).open(
            SCHEMA, people=limit(5, 1)
        )
