"""Partitions counted where they are."""

from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError
from common.marginals import count
from common.schema.codes import concatenate
from party.sources import partition
from party.sources.fingerprint import RowDigest
from party.sources.keyed import Keys, keyed, keyed_names
from party.sources.partition import (
    PartitionCounter,
    PartitionEncoder,
    gathered,
    unpacked,
    unpacked_keys,
)
from tests.harness.linked import SCHEMA as LINKED
from tests.harness.linked import frames
from tests.unit.party.sources.scaled import HALVES, SCHEMA, assert_same, people


def batches(frame, size):
    return pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=size)


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
    sets = [(), (0,), *combinations(range(4), 2), (2, 0, 3), (1, 5), (0, 2, 6)]
    counter = PartitionCounter(SCHEMA, tuple(sets), groups)
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
    assert_same(tables, count(codes.placed, sets, groups=groups))


def test_encoded_partitions_come_back_as_codes(monkeypatch):
    monkeypatch.setattr(partition, "CHUNK_ROWS", 400)
    encoder = PartitionEncoder(SCHEMA)
    rows = list(encoder(batches(positional(people()), 100)))
    assert len(rows) > 1
    codes = [unpacked([c[0].as_py() for c in row.columns], SCHEMA) for row in rows]
    assert_same(concatenate(codes).columns, SCHEMA.encode(people()).columns)
    with pytest.raises(LocalError, match="columns"):
        unpacked([b""], SCHEMA)


def test_rows_come_back_with_their_people_and_their_order():
    _, visits = frames(40)
    keys = Keys(person="id", order="day", secret=b"s", in_order=False)
    names = keyed_names(LINKED.of_events, keys)
    request = PartitionEncoder(LINKED.of_events, keys)
    packed = list(request(batches(positional(visits[names]), 30)))
    rows = [
        unpacked_keys([column[0].as_py() for column in each.columns], LINKED.of_events, keys)
        for each in packed
    ]
    table = pa.Table.from_pandas(visits, preserve_index=False)
    expected = keyed(table, LINKED.of_events, keys, where="visits", before=0)
    assert_same(concatenate([each.codes for each in rows]).columns, expected.codes.columns)
    for field in ("people", "order", "ties"):
        parts = [getattr(each, field) for each in rows]
        assert np.array_equal(np.concatenate(parts), getattr(expected, field))
    (alone,) = PartitionEncoder(None, keys)(batches(positional(visits[["id"]]), 1000))
    assert alone.column(0)[0].as_py() == expected.people.tobytes()
