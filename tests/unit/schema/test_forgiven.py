"""A forgiven schema has the codes and the digest of the schema, and refuses no cell."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.schema import Schema
from party.sources.partition import PartitionCounter, PartitionEncoder

SCHEMA = Schema.from_toml(
    """
attribute = [
  { name = "word", kind = "categorical", values = ["a", "b"] },
  { name = "number", kind = "integer", min = 0, max = 9, bins = 5 },
  { name = "listed", kind = "ordinal", values = [3, 1, 2] },
  { name = "real", kind = "real", min = 0.0, max = 1.0, bins = 4 },
  { name = "yes", kind = "boolean" },
  { name = "day", kind = "date", min = 2020-01-01, max = 2020-12-31, bins = 3 },
  { name = "wide", kind = "integer", min = 0, max = 9, bins = 5, other = true, missing = true },
]
"""
)
TEXTS = st.one_of(
    st.none(), st.text(max_size=3), st.integers(-20, 20).map(str), st.sampled_from("ab"),
    st.floats().map(str), st.dates(dt.date(2019, 1, 1), dt.date(2021, 12, 31)).map(str),
)  # fmt: skip


def strictly(attribute, array):
    """The code of every cell; None where it is refused."""
    alone = Schema((attribute,))
    codes = []
    for cell in range(len(array)):
        try:
            table = pa.table({attribute.name: array[cell : cell + 1]})
            codes.append(int(alone.encode(table).columns[0][0]))
        except InputError:
            codes.append(None)
    return codes


@pytest.mark.parametrize("attribute", SCHEMA.attributes, ids=SCHEMA.names)
@settings(max_examples=30)
@given(cells=st.lists(TEXTS, min_size=1, max_size=6))
def test_every_cell_has_a_code_and_those_of_the_domain_keep_theirs(attribute, cells):
    array = pa.array(cells, type=pa.string())
    forgiven = Schema((attribute,)).forgiven()
    for column in (array, array.dictionary_encode()):
        table = pa.table({attribute.name: column})
        codes = forgiven.encode(table).columns[0].tolist()
        assert max(codes) < attribute.size
        for code, strict in zip(codes, strictly(attribute, array), strict=True):
            assert strict in (None, code)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 12), min_size=1))
def test_numbers_beyond_the_range_count_as_its_nearest_end(numbers):
    table = pa.table({"number": numbers})
    schema = Schema((SCHEMA.attributes[SCHEMA.position("number")],)).forgiven()
    wanted = np.clip(numbers, 0, 9) // 2
    assert schema.encode(table).columns[0].tolist() == wanted.tolist()


def test_it_is_the_same_study_with_it():
    forgiven = SCHEMA.forgiven()
    assert forgiven.digest() == SCHEMA.digest()
    assert forgiven.to_toml() == SCHEMA.to_toml()
    assert forgiven.sizes == SCHEMA.sizes
    assert forgiven.forgiving
    assert not SCHEMA.forgiving


def test_partitions_forgive_where_they_are_told_to():
    schema = Schema(SCHEMA.attributes[:2])
    batch = pa.record_batch({"c0": ["a", "z"], "c1": [3, 30]})
    with pytest.raises(InputError, match="outside the domain"):
        list(PartitionEncoder(schema)([batch]))
    (packed,) = PartitionEncoder(schema.forgiven())([batch])
    assert packed.to_pylist() == [{"c0": bytes([0, 0]), "c1": bytes([1, 4])}]
    (cells,) = PartitionCounter(schema.forgiven(), ((0, 1),))([batch])
    counted = {each["cell"]: each["count"] for each in cells.to_pylist() if each["cell"] >= 0}
    assert counted == {1: 1, 4: 1}
