"""The text of a cell; a row is taken, and a cell recoded, for what is in it alone."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.schema.columns import distinct
from common.tables import reader
from party.sources.cells import CellCondition, Recoding
from tests.unit.party.sources.shaped import CELLS


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(reader, "CHUNK_ROWS", 17)
    monkeypatch.setattr("common.tables.formats._BLOCK_ROWS", 11)
    monkeypatch.setattr("common.tables.files._BATCH_ROWS", 7)


@given(rows=st.lists(st.sampled_from(CELLS), min_size=1, max_size=12))
def test_a_cell_is_recoded_for_what_is_in_it_alone(rows):
    recoding = Recoding({"1": "one", "yes": "", "": "unknown", "2020-01-31": "1"})
    places, words = distinct(recoding.applied(pa.chunked_array([pa.array(rows, pa.string())])))
    found = [words[place] for place in places]
    assert found == [recoding.of(cell.encode() if cell else None) for cell in rows]
    meant = {"1": b"one", "1.0": b"one", " 1": b"one", "01": b"one", "yes": None}
    meant |= {None: b"unknown", "": b"unknown", "2020-01-31": b"1"}
    for cell, word in zip(rows, found, strict=True):
        assert word == (meant[cell] if cell in meant else cell.encode())


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (pa.array([1, None, 3]), [b"1", None, b"3"]),
        (pa.array([1.0, float("nan"), 0.5]), [b"1", None, b"0.5"]),
        (pa.array([True, None]), [b"True", None]),
        (pa.array([dt.date(2020, 1, 31)]), [b"2020-01-31"]),
        (pa.array([dt.datetime(2020, 1, 31, 12)]), [b"2020-01-31 12:00:00"]),
        (pa.array([[1], [2]]), [None, None]),
        (pa.nulls(2), [None, None]),
        (pa.array([b"\xff"]), [b"\xff"]),
    ],
)
def test_every_cell_has_the_text_that_a_file_would_hold(cells, expected):
    places, words = distinct(cells)
    assert [words[place] for place in places] == expected


CONDITIONS = [
    "a = 1", "a != 1", "a < 2", "a >= 1", "a <= 2020-06-01", "a in (yes, 1)", "a is missing",
    "a is not missing", "not a = yes", "a = '' or a = é", "a > -1 and not (a = 1 or a is missing)",
]  # fmt: skip


@given(
    rows=st.lists(st.sampled_from(CELLS), min_size=1, max_size=12),
    other=st.sampled_from(CELLS),
    text=st.sampled_from(CONDITIONS),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_a_row_is_taken_for_what_is_in_it_alone(rows, other, text, data):
    condition = CellCondition.parse(text)
    alone = [bool(condition.holds({"a": pa.array([cell], pa.string())})[0]) for cell in rows]
    assert condition.holds({"a": pa.array(rows, pa.string())}).tolist() == alone
    place = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rows[:place], other, *rows[place + 1 :]]
    found = condition.holds({"a": pa.array(changed, pa.string()).dictionary_encode()}).tolist()
    assert found[:place] + found[place + 1 :] == alone[:place] + alone[place + 1 :]
