"""Rows with their people and what sorts them: a function of the cells of a row alone."""

import numpy as np
import pyarrow as pa
import pytest

from common.errors import InputError
from common.tables import reader
from common.tables.files import CsvReader
from party.sources.keyed import NO_ONE, KeyedReader, Keys, keyed, read_people
from tests.harness.linked import SCHEMA, frames

EVENTS = SCHEMA.of_events


def keys(**changes):
    given = {"person": "id", "order": "day", "secret": b"s", "in_order": True, **changes}
    return Keys(**given)


def hashed(*cells, **changes):
    return keys(**changes).hashes(pa.array(cells)).tolist()


def test_an_identifier_is_its_text_in_every_type_of_column():
    assert hashed(17, 3) == hashed(17.0, 3.0) == hashed("17", "3")
    assert hashed("017") != hashed("17")
    assert hashed(None, "") == [NO_ONE, NO_ONE]
    assert hashed(17) != hashed(17, secret=b"another")
    dictionary = pa.array(["b", "a", "b"]).dictionary_encode()
    assert keys().hashes(dictionary).tolist() == hashed("b", "a", "b")


def test_ties_are_places_in_a_file_and_hashes_in_a_database():
    _, events = frames(30)
    table = pa.Table.from_pandas(events, preserve_index=False)

    def ties(rows, **changes):
        found = keyed(rows, EVENTS, keys(**changes), where="visits", before=5)
        return found.ties

    assert ties(table).tolist() == list(range(5, 5 + table.num_rows))
    order = np.random.default_rng(1).permutation(table.num_rows)
    hashes = ties(table, in_order=False)
    assert np.array_equal(ties(table.take(order), in_order=False), hashes[order])
    same = events.duplicated(["id", "diagnosis", "ward"], keep=False).to_numpy()
    assert len(set(hashes[~same])) == (~same).sum()  # another event or person, another hash
    assert not np.array_equal(hashes, ties(table, in_order=False, secret=b"another"))


def test_a_file_is_read_in_chunks_and_errors_name_its_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "CHUNK_ROWS", 7)
    monkeypatch.setattr("common.tables.files._BLOCK_BYTES", 200)
    _, events = frames(40)
    path = tmp_path / "visits.csv"
    events.to_csv(path, index=False)
    rows = list(KeyedReader(CsvReader(path, EVENTS), EVENTS, keys()).rows())
    assert len(rows) > 3
    assert np.concatenate([each.ties for each in rows]).tolist() == list(range(len(events)))
    events.iloc[30, events.columns.get_loc("ward")] = "attic"
    events.to_csv(path, index=False)
    with pytest.raises(InputError, match=r"row 32: 'attic'|line 32"):
        list(KeyedReader(CsvReader(path, EVENTS), EVENTS, keys()).rows())


def test_a_table_without_its_columns_is_refused_by_name(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("diagnosis,ward,day\na,x,1\n")
    with pytest.raises(InputError, match=r"source\.person: there is no column 'id'"):
        KeyedReader(CsvReader(path, EVENTS), EVENTS, keys())
    with pytest.raises(InputError, match="no column 'when', which"):
        KeyedReader(CsvReader(path, EVENTS), EVENTS, keys(person="ward", order="when"))


def test_people_alone_are_read_without_any_other_column(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,name\n7,\xff\n8,b\n", encoding="latin-1")
    (found,) = read_people(CsvReader(path, None), keys(order=""))
    assert found.tolist() == hashed(7, 8)
