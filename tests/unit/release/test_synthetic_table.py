"""The synthetic table: in the shape of the real table, read with distrust."""

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.release import synthetic_table
from common.release.contents import FolderContents, open_release
from common.release.folder import event_tables, events_table
from common.release.synthetic_table import (
    TableColumns,
    count_rows,
    read_codes,
    read_linked,
    table_names,
)
from common.schema import Codes, Schema
from tests.harness.linked import RULED as LINKED_RULED
from tests.harness.linked import SCHEMA as LINKED

SHAPED = Schema.from_toml("""
attribute = [
  { name = "word", kind = "categorical", values = ["a", "b"], other = true, missing = true },
  { name = "age", kind = "integer", min = 0, max = 3 },
]
""")


def shaped(real, words=(0, 1, 2, 3)):
    codes = Codes.from_columns([np.array(words), np.arange(4)], SHAPED.sizes)
    decoded = SHAPED.decode(codes, SeededRandomSource(1))
    return TableColumns.of(real, SHAPED).shape(decoded, SHAPED)


def test_a_categorical_has_the_categories_of_the_schema_and_what_else_occurs():
    real = pd.DataFrame({"age": [1], "word": pd.Categorical(["b"], ["b"], ordered=True)})
    made = shaped(real)
    assert list(made.columns) == ["age", "word"], "in the order of the real table"
    assert made["word"].cat.categories.tolist() == ["a", "b", "(other)"]
    assert made["word"].cat.ordered
    assert made["word"].isna().tolist() == [False, False, False, True]
    assert shaped(real, words=(0, 0, 0, 0))["word"].cat.categories.tolist() == ["a", "b"]


def test_a_categorical_of_numbers_has_the_numbers_that_occur():
    real = pd.DataFrame({"word": ["a", "b"], "age": pd.Categorical([1, 2])})
    assert shaped(real)["age"].cat.categories.tolist() == [0, 1, 2, 3]


def test_types_of_real_columns_leave_no_trace():
    plain = shaped(pd.DataFrame({"word": ["a"], "age": [1]}))
    other = shaped(pd.DataFrame({"word": pd.array(["a"], dtype="string"), "age": [1.5]}))
    assert plain.dtypes.tolist() == other.dtypes.tolist()


RULED = Schema.from_toml("""
attribute = [
  { name = "word", kind = "categorical", values = ["a", "b"] },
  { name = "age", kind = "integer", min = 0, max = 9 },
]
rule = [{ when = "word = b", then = "age < 5" }]
""")
NAME = "synthetic.csv"


def read(folder, lines, reader=read_codes):
    (folder / NAME).write_text("\n".join(["word,age", *lines, ""]))
    return reader(FolderContents(folder), NAME, RULED)


def test_a_table_without_rows_or_with_other_columns_is_refused(tmp_path):
    for text, why in (
        ("x\n", "columns are not those"),
        (",".join(RULED.names) + "\n", "no rows"),
        (",".join(RULED.names) + "\n1\n", "not a table"),
        ("", "not a table"),
    ):
        (tmp_path / "synthetic.csv").write_text(text)
        with pytest.raises(InputError, match=rf": synthetic\.csv: .*{why}"):
            read_codes(FolderContents(tmp_path), "synthetic.csv", RULED)


def test_a_cell_or_a_rule_that_is_broken_is_found_in_the_last_row(tmp_path):
    good = ["a,7"] * 500
    for last, why in (("a,70", "outside the domain"), ("b,7", "break a rule"), ("a,", "empty")):
        with pytest.raises(InputError, match=rf"synthetic\.csv.*{why}"):
            read(tmp_path, [*good, last])


def test_rows_are_counted_without_keeping_them(tmp_path):
    lines = [f"a,{number % 10}" for number in range(57)]
    assert read(tmp_path, lines, count_rows) == read(tmp_path, lines).rows == 57


def test_a_parquet_file_is_read_in_blocks_whatever_the_order_of_its_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic_table, "BLOCK_ROWS", 16)
    codes = read(tmp_path, [f"{'ab'[n % 2]},{n % 5}" for n in range(100)], read_codes)
    frame = RULED.without_rules().decode(codes, SeededRandomSource(1))[["age", "word"]]
    frame.to_parquet(tmp_path / "synthetic.parquet", index=False)
    found = read_codes(FolderContents(tmp_path), "synthetic.parquet", RULED)
    assert all(map(np.array_equal, found.columns, codes.columns))
    frame.assign(more=1).to_parquet(tmp_path / "synthetic.parquet", index=False)
    with pytest.raises(InputError, match=r"synthetic\.parquet: its columns .*: more"):
        read_codes(FolderContents(tmp_path), "synthetic.parquet", RULED)


PEOPLE = "person,sex,age\n1,F,20\n2,M,40\n3,F,70\n"
EVENTS = "person,diagnosis,ward\n1,a,x\n3,b,y\n3,c,z\n"


@pytest.fixture
def written(tmp_path):
    def write(people=PEOPLE, events=EVENTS, schema=LINKED):
        (tmp_path / "synthetic.csv").write_text(people)
        (tmp_path / "synthetic-visits.csv").write_text(events)
        with open_release(tmp_path) as contents:
            return read_linked(contents, schema)

    return write


def test_people_come_back_with_their_events(written):
    linked = written()
    assert linked.numbers.tolist() == [1, 0, 2]
    assert linked.events.columns[0].tolist() == [0, 1, 2]
    assert linked.columns[0].tolist() == [0, 1, 0]


def test_people_without_any_events_come_back(written):
    assert written(events="person,diagnosis,ward\n").numbers.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("people", "events", "words"),
    [
        (PEOPLE.replace("2,M", "4,M"), EVENTS, "does not count people"),
        ("person,sex,age\n", EVENTS, "does not count people"),
        (PEOPLE, EVENTS + "2,a,x\n", "in order"),
        (PEOPLE, EVENTS + "4,a,x\n", "in order"),
        (PEOPLE, EVENTS.replace("\n1,", "\n0,"), "in order"),
        (PEOPLE, EVENTS + "3,a,x\n" * 3, "more than 4 events"),
        (PEOPLE, EVENTS.replace("\n1,", "\none,"), "not a table that can be read"),
        (PEOPLE, EVENTS.replace("ward", "room"), "columns are not those"),
    ],
)
def test_events_that_belong_to_nobody_are_refused(written, people, events, words):
    with pytest.raises(InputError, match=words):
        written(people, events)


def test_events_that_break_a_rule_or_that_their_person_cannot_have_are_refused(written):
    assert written(schema=LINKED_RULED).numbers.tolist() == [1, 0, 2]
    for events, rule in (("b,x", "impossible diagnosis = b"), ("a,y", "when sex = M")):
        broken = EVENTS.replace("3,b,y", f"2,{events}\n3,b,y")
        assert written(events=broken).events.rows == 4
        with pytest.raises(InputError, match=f"synthetic-visits.csv: .*break a rule.*{rule}"):
            written(events=broken, schema=LINKED_RULED)


def test_the_table_of_events_is_named_after_them():
    assert events_table(LINKED, "parquet") == "synthetic-visits.parquet"
    assert table_names(["model.json", "synthetic.csv"], LINKED)[1] == "synthetic-visits.csv"
    assert event_tables(["synthetic.csv", "synthetic-visits.csv", "synthetic-A.csv"]) == {
        "synthetic-visits.csv"
    }
    with pytest.raises(InputError):
        events_table(LINKED.people, "csv")
    with pytest.raises(InputError):
        table_names([], LINKED)
