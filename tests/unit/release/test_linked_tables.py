"""The two tables of a linked release: their names, and what is read back of them."""

import pytest

from common.errors import InputError
from common.release.contents import open_release
from common.release.folder import event_tables, events_table
from common.release.linked_tables import read_linked, table_names
from tests.harness.linked import RULED, SCHEMA

PEOPLE = "person,sex,age\n1,F,20\n2,M,40\n3,F,70\n"
EVENTS = "person,diagnosis,ward\n1,a,x\n3,b,y\n3,c,z\n"


@pytest.fixture
def written(tmp_path):
    def write(people=PEOPLE, events=EVENTS, schema=SCHEMA):
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
    assert written(schema=RULED).numbers.tolist() == [1, 0, 2]
    for events, rule in (("b,x", "impossible diagnosis = b"), ("a,y", "when sex = M")):
        broken = EVENTS.replace("3,b,y", f"2,{events}\n3,b,y")
        assert written(events=broken).events.rows == 4
        with pytest.raises(InputError, match=f"synthetic-visits.csv: .*break a rule.*{rule}"):
            written(events=broken, schema=RULED)


def test_the_table_of_events_is_named_after_them():
    assert events_table(SCHEMA, "parquet") == "synthetic-visits.parquet"
    assert table_names(["model.json", "synthetic.csv"], SCHEMA)[1] == "synthetic-visits.csv"
    assert event_tables(["synthetic.csv", "synthetic-visits.csv", "synthetic-A.csv"]) == {
        "synthetic-visits.csv"
    }
    with pytest.raises(InputError):
        events_table(SCHEMA.people, "csv")
    with pytest.raises(InputError):
        table_names([], SCHEMA)
