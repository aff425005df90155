"""Several tables of one owner count as one."""

import datetime as dt

import numpy as np
import pytest

from common.schema.codes import concatenate
from party.sources import SourceSettings
from party.sources.joined import JoinedSource
from tests.harness.people import people, schema_of

SCHEMA = schema_of("sex", "age")
DAYS = [dt.date(2020, 1, 1), dt.date(2024, 1, 1)]


@pytest.fixture
def opened(tmp_path):
    """Opens a file of so many people, as they were on a day."""

    def make(rows, as_of=None):
        people(rows, seed=rows).to_csv(tmp_path / f"{rows}.csv", index=False)
        table = {"kind": "csv", "path": f"{rows}.csv"}
        if as_of is not None:
            table["as_of"] = as_of
        return SourceSettings.from_table(table, folder=tmp_path, environment={}).open(SCHEMA)

    return make


def test_rows_counts_and_chunks_are_those_of_all_tables(opened):
    tables = [opened(50), opened(1), opened(70)]
    joined = JoinedSource(tables)
    assert joined.rows == joined.snapshot.rows == 121
    held = [joined.codes(), concatenate(list(joined.chunks()))]
    expected = SCHEMA.encode(people(50, seed=50)).columns[1].tolist()
    for codes in held:
        assert codes.columns[1][:50].tolist() == expected
        assert codes.rows == 121
    sets = [(0,), (1,), (0, 1)]
    for together, *apart in zip(joined.count(sets), *(t.count(sets) for t in tables), strict=True):
        np.testing.assert_array_equal(together, sum(apart))


def test_the_digest_does_not_depend_on_the_order_and_does_on_every_table(opened):
    one, two, three = opened(50), opened(60), opened(70)
    digests = {
        JoinedSource(tables).snapshot.digest
        for tables in ([one, two], [one, three], [two, three], [one, one], [one, two, three])
    }
    assert len(digests) == 5
    assert JoinedSource([two, one]).snapshot.digest == JoinedSource([one, two]).snapshot.digest
    assert one.snapshot.digest not in digests


def test_the_oldest_table_dates_all_of_them_and_the_newest_is_told_where_it_is_another(opened):
    old, new = (opened(50 + place, day) for place, day in enumerate(DAYS))
    both = JoinedSource([new, old]).snapshot
    assert (both.as_of, both.newest) == tuple(DAYS)
    same = JoinedSource([old, opened(60, DAYS[0])]).snapshot
    assert (same.as_of, same.newest) == (DAYS[0], None)
