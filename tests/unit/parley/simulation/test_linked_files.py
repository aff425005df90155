"""The files of people and events: read with what joins them, and dealt out together."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from parley.simulation.linked_files import LinkedFiles, two_files
from parley.simulation.partition import at_random
from tests.harness.linked import SCHEMA, frames


@pytest.fixture
def files(tmp_path):
    people, events = frames(30)
    people.assign(name="x").to_csv(tmp_path / "people.csv", index=False)
    events.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path / "people.csv", tmp_path / "visits.csv"


def test_only_what_is_declared_joins_or_orders_is_read(files):
    read = LinkedFiles.read(files, SCHEMA, person="id")
    people, events = read.frames
    assert set(people.columns) == {"id", "sex", "age"}
    assert set(events.columns) == {"id", "day", "diagnosis", "ward"}
    assert "rows count; the others are of unknown people" in read.joined(read.encode(SCHEMA))


def test_people_are_dealt_out_with_their_events(files):
    read = LinkedFiles.read(files, SCHEMA, person="id")
    dealt = read.dealt_out(lambda people: at_random(people, 3, SeededRandomSource(1)))
    assert sum(len(people) for people, _ in dealt.values()) == 30
    assert sum(len(events) for _, events in dealt.values()) == len(read.frames[1])
    for people, events in dealt.values():
        assert np.isin(events.id, people.id).all()


def test_errors_name_the_file_and_the_line(files):
    events = files[1]
    events.write_text(events.read_text() + "1,1,a,cellar\n")
    with pytest.raises(InputError, match=r"visits\.csv.*cellar"):
        LinkedFiles.read(files, SCHEMA, person="id")
    with pytest.raises(InputError, match=r"people\.csv: there is no column 'nr'"):
        LinkedFiles.read(files, SCHEMA, person="nr")
    with pytest.raises(InputError, match=r"no \[events\]"):
        LinkedFiles.read(files, SCHEMA.people, person="id")


def test_two_files_have_a_colon_between_them():
    assert two_files(Path("a.csv:b/c.csv"), same_file=False) == (Path("a.csv"), Path("b/c.csv"))
    assert two_files(Path("a.xlsx"), same_file=True) == (Path("a.xlsx"), Path("a.xlsx"))
    for odd in ("a.csv", ":b.csv", "a.csv:"):
        with pytest.raises(InputError, match="colon"):
            two_files(Path(odd), same_file=False)
