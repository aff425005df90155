"""Partitions counted where they are."""

from itertools import combinations, pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError
from common.marginals import count
from common.schema.codes import concatenate
from party.sources import partition
from party.sources.fingerprint import RowDigest
from party.sources.partition import PartitionCounter, PartitionEncoder, gathered, unpacked
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
