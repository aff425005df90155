"""People and their events as a source: what a join in memory gives, whatever the chunks."""

import sqlite3
from dataclasses import dataclass

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from common.errors import InputError
from common.marginals import count
from common.methods.subn_plus.linked.requests import AveragedTables, NextTables
from common.methods.subn_plus.linked.totals import AveragedTotals
from common.schema import Schema
from common.schema.linked import encode_linked
from common.study.requests import RowsInMemory
from common.tables import reader
from party.checks import _broken
from party.sources.keyed import Keys, keyed
from party.sources.linked import LinkedSource
from party.sources.settings import owners_table
from tests.harness.linked import RULED, SCHEMA, frames, linked_codes, shared_out

NO_ORDER = Schema.from_toml(SCHEMA.to_toml().replace('order = "day"\n', ""))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(reader, "CHUNK_ROWS", 17)
    monkeypatch.setattr("common.tables.formats._BLOCK_ROWS", 11)
    monkeypatch.setattr("common.tables.files._BATCH_ROWS", 7)


@dataclass
class Pieces:
    """A table in memory, a few rows at a time."""

    frame: pd.DataFrame
    schema: Schema
    size: int
    order: str = ""
    where = "a table"
    as_of = None

    def mark(self):
        return None

    def attempt(self, read):
        return read()

    def rows(self):
        keys = Keys(person="id", order=self.order, secret=b"s", in_order=True)
        for start in range(0, len(self.frame), self.size):
            part = pa.Table.from_pandas(
                self.frame.iloc[start : start + self.size], preserve_index=False
            )
            yield keyed(part, self.schema, keys, where=self.where, before=start)


def joined(people, events, *, pieces=(7, 11), schema=SCHEMA, **changes):
    return LinkedSource(
        Pieces(people, schema.people, pieces[0]),
        Pieces(events, schema.of_events, pieces[1], schema.events.order),
        schema,
        **changes,
    )


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.arrays, other.arrays, strict=True))


@pytest.mark.parametrize("held", [0, 500, 1 << 20])
@pytest.mark.parametrize("spare", [0, 30])
def test_it_holds_what_a_join_in_memory_gives(held, spare):
    people, events = frames(60)
    events = pd.concat([events, events.assign(id=1000)])  # of someone unknown
    source = joined(people, events, held_bytes=held, spare=spare)
    expected = linked_codes(60)
    assert same(source.codes(), expected)
    assert len(list(source.chunks())) == 9
    assert source.digest == joined(people, events, pieces=(60, 1000)).digest
    assert source.rows == 60


@pytest.mark.parametrize("held", [0, 1 << 20])
def test_it_holds_events_that_obey_the_rules(held):
    source = joined(*frames(60), schema=RULED, held_bytes=held)
    expected = encode_linked(RULED, *frames(60), person="id")
    assert same(source.codes(), expected)
    assert not same(expected, linked_codes(60))
    assert source.digest == joined(*frames(60), schema=RULED, pieces=(60, 1000)).digest


def test_the_owner_is_told_how_many_events_break_a_rule(tmp_path):
    people, events = frames(40)
    first, second = written(people, events, tmp_path)["csv"]
    second = {**second, "person": "id", "columns": {"day": "on"}}
    given = {**first, "person": "nr", "events": second}
    table = owners_table(given, folder=tmp_path, environment={})
    rows = linked_codes(40)
    sex, (diagnosis, ward) = rows.columns[0][rows.of_person], rows.events.columns
    count = int((((sex == 1) & (diagnosis == 0)) | ((diagnosis == 1) & (ward == 0))).sum())
    assert count > 1
    told = f"; {count} events broke a rule, counted as the nearest possible event"
    assert _broken(table, RULED) == told
    assert _broken(table, SCHEMA) == ""


def test_counts_of_people_events_and_next_events_are_those_of_one_place():
    source, expected = joined(*frames(60), held_bytes=0), linked_codes(60)
    sets = [(0,), (1, 0)]
    for got, known in zip(source.count(sets), count(expected, sets), strict=True):
        assert np.array_equal(got, known)
    groups = tuple(tuple(range(size)) for size in (2, 6, 5, 4, 3))
    for request in (
        AveragedTables(((0,), (2,), (1, 3), (3, 4)), groups, 3, 4),
        NextTables(groups[3:], 4),
    ):
        known = request.answer(RowsInMemory(expected))
        assert np.array_equal(request.answer(source), known)
        assert known.sum() > 0


def test_a_person_with_very_many_events_takes_no_more_than_others():
    people, events = frames(20)
    flood = pd.DataFrame({"id": 3, "day": np.arange(4000)[::-1], "diagnosis": "a", "ward": "x"})
    source = joined(people, pd.concat([events, flood]), pieces=(20, 100), spare=50)
    (block,) = source._blocks
    assert block.waiting <= 50 + 4 * 20 + 100
    expected = encode_linked(SCHEMA, people, pd.concat([events, flood]), person="id")
    assert same(source.codes(), expected)


def test_the_digest_is_of_people_with_their_events_in_any_order_of_people():
    people, events = frames(40)
    shuffled = joined(people.sample(frac=1, random_state=1), events.sample(frac=1, random_state=2))
    assert joined(people, events).digest == shuffled.digest
    twins = people[people.id < 2].assign(sex="F", age=30)
    days = pd.DataFrame({"id": [0, 0, 1, 1], "day": [1, 2, 1, 2], "ward": "x"})
    digests = {
        joined(twins, days.assign(diagnosis=list(own))).digest
        for own in ("abcd", "adcb", "badc")  # exchanged between two people, and within one
    }
    assert len(digests) == 3
    assert joined(twins, days.assign(diagnosis=list("cdab"))).digest in digests  # twins are alike


def test_what_became_of_the_events_is_told_to_the_owner_alone():
    people, events = frames(30)
    source = joined(people, pd.concat([events, events.iloc[:5].assign(id=1000)]))
    kept, without = source.codes().events.rows, int((source.codes().numbers == 0).sum())
    assert source.snapshot.note == (
        f"visits: {kept} of {len(events) + 5} count; 5 are of people who are not in our table, "
        f"{len(events) - kept} beyond the first 4 of a person. People without visits: {without}"
    )
    nothing = joined(people, events.iloc[:0])
    assert (nothing.rows, nothing.codes().events.rows) == (30, 0)


def test_a_person_with_two_rows_is_refused():
    people = pd.DataFrame({"id": [1, 1], "sex": "F", "age": 3})
    with pytest.raises(InputError, match="one row"):
        joined(people, frames(3)[1])


def test_rows_without_an_identifier_are_people_without_events():
    people, events = frames(30)
    ids = people.id.astype("Int64")
    ids[[2, 5]] = pd.NA
    of_none = events.assign(id=events.id.astype("Int64"))
    of_none.loc[of_none.index[:3], "id"] = pd.NA
    codes = joined(people.assign(id=ids), of_none).codes()
    assert codes.rows == 30
    assert codes.numbers[[2, 5]].tolist() == [0, 0]
    left = of_none[of_none.id.notna() & ~of_none.id.isin(people.id[[2, 5]])]
    expected = left.groupby("id").size().clip(upper=4).sum()
    assert codes.events.rows == expected


def written(people, events, folder):
    """The two tables in every kind of file and database, each as the settings of a source."""
    people, events = people.rename(columns={"id": "nr"}), events.rename(columns={"day": "on"})
    folder.mkdir(exist_ok=True)
    people.to_csv(folder / "people.csv", index=False)
    events.to_csv(folder / "visits.csv", index=False, sep=";")
    people.to_parquet(folder / "people.parquet", index=False)
    events.to_parquet(folder / "visits.parquet", index=False)
    people.to_stata(folder / "people.dta", write_index=False)
    events.to_excel(folder / "visits.xlsx", sheet_name="2024", index=False)
    with pd.ExcelWriter(folder / "both.xlsx") as book:
        people.to_excel(book, sheet_name="people", index=False)
        events.to_excel(book, sheet_name="visits", index=False)
    with sqlite3.connect(folder / "lite.db") as database:
        people.to_sql("people", database, index=False)
        events.to_sql("visits", database, index=False)
    with duckdb.connect(str(folder / "duck.db")) as database:
        database.execute("CREATE TABLE people AS SELECT * FROM people")
        database.execute("CREATE TABLE visits AS SELECT * FROM events")
    places = {
        "csv": ({"path": "people.csv"}, {"path": "visits.csv"}),
        "parquet": ({"path": "people.parquet"}, {"path": "visits.parquet"}),
        "excel": (
            {"path": "both.xlsx", "sheet": "people"},
            {"path": "both.xlsx", "sheet": "visits"},
        ),
        "sqlite": ({"path": "lite.db", "table": "people"}, {"path": "lite.db", "table": "visits"}),
        "duckdb": (
            {"path": "duck.db", "query": "SELECT * FROM people"},
            {"path": "duck.db", "query": "SELECT * FROM visits"},
        ),
    }
    tables = {
        kind: ({"kind": kind, **first}, {"kind": kind, **second})
        for kind, (first, second) in places.items()
    }
    mixed = {"kind": "stata", "path": "people.dta"}, {
        "kind": "excel", "path": "visits.xlsx", "sheet": "2024",
    }  # fmt: skip
    return {**tables, "mixed": mixed}


@pytest.mark.parametrize("kind", ["csv", "parquet", "excel", "sqlite", "duckdb", "mixed"])
def test_every_kind_of_source_gives_the_same_people_and_events(tmp_path, kind):
    people, events = frames(40)
    first, second = written(people, events, tmp_path)[kind]
    second = {**second, "person": "id", "columns": {"day": "on"}}
    table = owners_table(
        {**first, "person": "nr", "events": second}, folder=tmp_path, environment={}
    )
    table.check_readable()
    assert same(table.open(SCHEMA).codes(), linked_codes(40))
    assert table.open(SCHEMA.people).rows == 40  # people alone, for a study without events


def test_conditions_and_codes_of_the_owner_are_those_of_each_table(tmp_path):
    people, events = frames(40)
    first, second = written(people, events.replace({"ward": {"x": "1"}}), tmp_path)["csv"]
    second |= {
        "person": "id", "columns": {"day": "on"}, "where": "on <= 2", "recode": {"ward": {"1": "x"}}
    }  # fmt: skip
    given = {**first, "person": "nr", "where": "age >= 20", "events": second}
    source = owners_table(given, folder=tmp_path, environment={}).open(SCHEMA)
    expected = encode_linked(SCHEMA, people[people.age >= 20], events[events.day <= 2], person="id")
    assert same(source.codes(), expected)


def test_without_an_order_a_file_keeps_its_own_and_a_database_takes_any(tmp_path):
    people, events = frames(40)
    shuffled = events.sample(frac=1, random_state=5)

    def opened(kind, rows, folder, secret=b"s"):
        first, second = written(people, rows, tmp_path / folder)[kind]
        given = {**first, "person": "nr", "events": {**second, "person": "id"}}
        table = owners_table(given, folder=tmp_path / folder, environment={})
        return table.open(NO_ORDER, secret=secret)

    in_file = opened("csv", shuffled, "b")
    assert same(in_file.codes(), encode_linked(NO_ORDER, people, shuffled, person="id"))
    in_database = opened("sqlite", events, "a").codes()
    assert same(in_database, opened("sqlite", shuffled, "c").codes())
    assert not same(in_database, opened("sqlite", events, "d", secret=b"t").codes())
    other = pd.concat([events[events.id != 3], events[events.id == 5].assign(id=3)])
    changed = opened("sqlite", other, "e").codes()
    rest = np.flatnonzero(people.id.to_numpy() != 3)
    assert same(changed.take(rest), in_database.take(rest))


def test_several_tables_each_with_its_events_are_one_source(tmp_path):
    people, events = frames(60)
    tables = []
    for number, (first, second) in enumerate(shared_out(people, events, 2)):
        own = written(first, second, tmp_path / str(number))["parquet"]
        paths = [{**each, "path": f"{number}/{each['path']}"} for each in own]
        tables.append(
            {**paths[0], "person": "nr", "events": {
                **paths[1], "person": "id", "columns": {"day": "on"}}}
        )  # fmt: skip
    source = owners_table(tables, folder=tmp_path, environment={}).open(SCHEMA)
    parts = [encode_linked(SCHEMA, *own, person="id") for own in shared_out(people, events, 2)]
    assert source.rows == 60
    assert source.codes().events.rows == sum(part.events.rows for part in parts)
    assert source.snapshot.note.count("People without visits") == 2


BAD = [
    ({"person": "nr"}, r"Say in \[source.events\]"),
    ({"events": {"kind": "csv", "path": "visits.csv", "person": "id"}}, "in both"),
    ({"person": "nr", "events": {"kind": "csv", "path": "visits.csv"}}, "in both"),
    ({"person": "nr", "events": {"kind": "cvs"}}, "source.events: kind is 'cvs'"),
    ({"person": "nr", "events": {"kind": "csv", "path": "v", "color": 1}}, "source.events.col"),
]


@pytest.mark.parametrize(("extra", "words"), BAD)
def test_settings_that_do_not_join_are_refused(tmp_path, extra, words):
    people, events = frames(10)
    first, _ = written(people, events, tmp_path)["csv"]
    with pytest.raises(InputError, match=words):
        owners_table({**first, **extra}, folder=tmp_path, environment={}).open(SCHEMA)


def test_a_table_in_which_a_person_has_two_rows_is_refused_whatever_the_study(tmp_path):
    people, events = frames(10)
    first, second = written(pd.concat([people, people.iloc[:1]]), events, tmp_path)["csv"]
    table = owners_table(
        {**first, "person": "nr", "events": {**second, "person": "id"}},
        folder=tmp_path,
        environment={},
    )
    with pytest.raises(InputError, match="one row"):
        table.check_readable()


def test_a_table_that_is_written_to_while_it_is_read_is_refused(tmp_path):
    class Changing(Pieces):
        marks = iter("abcd")

        def mark(self):
            return next(self.marks)

    people, events = frames(10)
    with pytest.raises(InputError, match="written to"):
        LinkedSource(
            Changing(people, SCHEMA.people, 5), Pieces(events, SCHEMA.of_events, 5, "day"), SCHEMA
        )


@pytest.mark.parametrize("held", [0, 1 << 20])
def test_places_of_numbers_in_their_bins_are_held_of_people_and_of_events(held):
    text = """
[[events.attribute]]
name = "nights"
kind = "integer"
min = 0
max = 39
bins = 4
"""
    schema = Schema.from_toml(SCHEMA.to_toml() + text)
    people, events = frames(60)
    events = events.assign(nights=np.arange(len(events)) % 40)
    source = joined(people, events, schema=schema, held_bytes=held)
    expected = encode_linked(schema, people, events, person="id")
    held_codes = [source.codes(), expected]
    for of in (lambda codes: codes, lambda codes: codes.events):
        one, other = (of(codes).placed for codes in held_codes)
        assert all(map(np.array_equal, one.columns, other.columns))
    request = AveragedTotals((1, 5), ((0,) * 6, (0,) * 4), ((1,) * 6, (1,) * 4), 6, 3, 4)
    answer = request.answer(source)
    assert np.array_equal(answer, request.answer(RowsInMemory(expected)))
    assert answer.all()
