"""A row is taken for what is in it alone."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from party.sources import parts
from party.sources.condition import Condition
from tests.unit.party.sources.shaped import CELLS


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(parts, "CHUNK_ROWS", 17)
    monkeypatch.setattr("common.schema.formats._BLOCK_ROWS", 11)
    monkeypatch.setattr("party.sources.files._BATCH_ROWS", 7)


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
    condition = Condition.parse(text)
    alone = [bool(condition.holds({"a": pa.array([cell], pa.string())})[0]) for cell in rows]
    assert condition.holds({"a": pa.array(rows, pa.string())}).tolist() == alone
    place = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rows[:place], other, *rows[place + 1 :]]
    found = condition.holds({"a": pa.array(changed, pa.string()).dictionary_encode()}).tolist()
    assert found[:place] + found[place + 1 :] == alone[:place] + alone[place + 1 :]
