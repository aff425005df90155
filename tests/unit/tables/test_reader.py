"""Parts of a table: no row is lost or named wrongly, however it is cut."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.schema import Schema
from common.schema.codes import concatenate
from common.tables import reader
from common.tables.reader import Chosen, ColumnPieces, Part, encoded
from tests.harness.people import people

SCHEMA = Schema.from_toml('[[attribute]]\nname = "x"\nkind = "integer"\nmin = 0\nmax = 9\n')


def place(first=0):
    """What encoding needs of a reader."""
    return SimpleNamespace(where="people.csv", row_numbers=lambda rows: [r + first for r in rows])


def table(*cells):
    return pa.table({"x": pa.array(cells, pa.int64())})


def test_merging_keeps_every_row_of_every_batch():
    frame = people(100)
    whole = pa.Table.from_pandas(frame[["age"]])
    batches = whole.to_batches(max_chunksize=7)
    merged = list(reader.merged(iter([*batches, batches[0].slice(0, 0)]), 30))
    assert [part.num_rows for part in merged] == [35, 35, 30]
    assert pa.concat_tables(merged).equals(whole)


@given(st.lists(st.lists(st.integers(0, 9), max_size=9), max_size=6), st.integers(1, 12))
def test_a_stream_is_cut_into_parts_that_follow_each_other(batches, least):
    stream = [pa.record_batch({"x": pa.array(own, pa.int64())}) for own in batches]
    found = []
    for merged in reader.merged(stream, least):
        assert merged.num_rows
        found.append(merged)
    assert all(own.num_rows >= least for own in found[:-1])
    cells = [cell for own in found for cell in own["x"].to_pylist()]
    assert cells == [cell for own in batches for cell in own]
    firsts = [part.first_row for part in reader.parts_of_stream(stream)]
    assert firsts == [0][: len(firsts)]  # small tables are one part


def test_every_form_of_rows_is_encoded_in_order():
    part = Part(
        0,
        lambda: [
            table(1, 2),
            Chosen(table(3), np.array([4]), read=6),
            Chosen(table(), np.array([], np.int64), read=5),
            ColumnPieces(2, [[pa.array([4]), pa.array([5])]]),
        ],
    )
    codes = list(encoded(part, SCHEMA, place()))
    assert concatenate(codes).columns[0].tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("rows", "number"),
    [
        ([table(1), table(2, 77)], 100 + 1 + 1),
        ([table(1), Chosen(table(2, 77), np.array([3, 8]), read=20)], 100 + 1 + 8),
        ([Chosen(table(), np.array([], np.int64), read=20), table(77)], 100 + 20),
        ([ColumnPieces(3, [[pa.array([1, 2, 3])]]), ColumnPieces(1, [[pa.array([77])]])], 100 + 3),
    ],
)
def test_a_refused_cell_is_named_by_its_row_of_the_file(rows, number):
    """Rows that were read and not chosen count; a file's numbers begin two below its header."""
    with pytest.raises(InputError, match=rf"people\.csv.*row {number + 2}: 77"):
        list(encoded(Part(100, lambda: rows), SCHEMA, place(first=2)))
