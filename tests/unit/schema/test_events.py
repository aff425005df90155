"""[events] of a schema: read, written, part of the digest, and refused by name."""

import pytest

from common.errors import InputError
from common.schema import Schema
from tests.harness.linked import SCHEMA

PEOPLE = '[[attribute]]\nname = "sex"\nkind = "categorical"\nvalues = ["F", "M"]\n'
VISIT = '[[events.attribute]]\nname = "ward"\nkind = "boolean"\n'


def with_events(*lines, attributes=VISIT):
    return "\n".join([PEOPLE, "[events]", *lines, attributes])


def test_events_are_read_back_as_they_were_written():
    assert Schema.from_toml(SCHEMA.to_toml()) == SCHEMA
    assert (SCHEMA.events.name, SCHEMA.events.most, SCHEMA.events.order) == ("visits", 4, "day")
    assert SCHEMA.of_events.names == ("diagnosis", "ward")


def test_a_schema_without_events_is_what_it_was():
    plain = Schema.from_toml(PEOPLE)
    assert plain.to_toml() == PEOPLE
    assert plain.digest() == "e47b906bee36d93166a4c3bc7498a20368003b2ecb97fd014732def567e73a98"
    assert SCHEMA.people.events is None


@pytest.mark.parametrize(
    "lines",
    [
        ['name = "stays"', "most = 4"],
        ['name = "visits"', "most = 5"],
        ['name = "visits"', "most = 4", 'order = "day"'],
    ],
)
def test_every_key_of_events_is_in_the_digest(lines):
    plain = Schema.from_toml(with_events('name = "visits"', "most = 4"))
    assert Schema.from_toml(with_events(*lines)).digest() != plain.digest()
    assert plain.digest() != plain.people.digest()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (with_events('name = "../visits"', "most = 4"), "cannot be part of a file's name"),
        (with_events('name = "visits"', "most = 0"), "at least 1"),
        (with_events('name = "visits"', "most = 65"), "at most 64"),
        (with_events('name = "visits"'), "most"),
        (with_events('name = "visits"', "most = 4", "least = 1"), "least"),
        (with_events('name = "visits"', "most = 4", "attribute = []", attributes=""), "attribute"),
        (with_events('name = "visits"', "most = 4", attributes=VISIT + VISIT), "name of its own"),
        (with_events('name = "visits"', "most = 4").replace("ward", "person"), "person"),
        (with_events('name = "visits"', "most = 4").replace("sex", "person"), "person"),
        (f"events = 3\n{PEOPLE}", "events"),
    ],
)
def test_what_events_cannot_be_is_refused_by_name(text, words):
    with pytest.raises(InputError, match=words):
        Schema.from_toml(text)


def test_a_single_table_is_not_read_with_a_linked_schema():
    import pandas as pd

    with pytest.raises(InputError, match=r"\[events\] 'visits'"):
        SCHEMA.encode(pd.DataFrame({"sex": ["F"], "age": [3]}))
    with pytest.raises(InputError, match="no \\[events\\]"):
        _ = SCHEMA.people.of_events
