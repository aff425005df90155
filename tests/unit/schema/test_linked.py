"""People and their events as codes: joined, ordered, cut, and each person's by herself."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from common.errors import InputError, LocalError
from common.schema.codes import Codes
from common.schema.linked import LinkedCodes, concatenate_linked, encode_linked, order_keys
from tests.harness.linked import SCHEMA, frames, linked_codes


def naive(people, events):
    """Of every person, her events in order, as pairs of words."""
    histories = []
    for person in people.id:
        own = [row for row in events.itertuples() if row.id == person]
        own.sort(key=lambda row: row.day)
        histories.append([(row.diagnosis, row.ward) for row in own[: SCHEMA.events.most]])
    return histories


def histories(linked):
    words = SCHEMA.of_events.attributes
    found, start = [], 0
    for number in linked.numbers:
        found.append(
            [
                tuple(
                    own.domain.values[column[at]]
                    for own, column in zip(words, linked.events.columns, strict=True)
                )
                for at in range(start, start + number)
            ]
        )
        start += number
    return found


def test_events_are_joined_ordered_and_cut_as_a_naive_reader_would():
    people, events = frames(60)
    assert histories(linked_codes(60)) == naive(people, events)


def test_events_of_unknown_people_are_left_out_and_people_without_events_stay():
    people, events = frames(30)
    stranger = events.assign(id=1000)
    linked = encode_linked(SCHEMA, people, pd.concat([stranger, events]), person="id")
    assert histories(linked) == naive(people, events)
    none = encode_linked(SCHEMA, people, events.iloc[:0], person="id")
    assert (none.rows, none.events.rows, none.numbers.max()) == (30, 0, 0)


def test_another_persons_events_change_nothing_of_mine():
    people, events = frames(20)
    before = histories(encode_linked(SCHEMA, people, events, person="id"))
    other = pd.concat([events[events.id != 3], events[events.id == 5].assign(id=3)])
    after = histories(encode_linked(SCHEMA, people, other, person="id"))
    assert [own for at, own in enumerate(before) if at != 3] == [
        own for at, own in enumerate(after) if at != 3
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, e: (p.drop(columns="id"), e), "no column 'id'"),
        (lambda p, e: (p, e.drop(columns="id")), "visits: there is no column 'id'"),
        (lambda p, e: (p.assign(id=1), e), "the same in two rows"),
        (lambda p, e: (p, e.drop(columns="day")), "no column 'day'"),
        (lambda p, e: (p, e.drop(columns="ward")), "ward"),
        (lambda p, e: (p, e.assign(ward="nowhere")), "nowhere"),
    ],
)
def test_what_cannot_be_joined_is_refused_by_name(change, words):
    with pytest.raises(InputError, match=words):
        encode_linked(SCHEMA, *change(*frames(20)), person="id")


def test_people_are_taken_and_put_together_with_their_events():
    linked = linked_codes(40)
    every = histories(linked)
    places = np.array([7, 3, 3, 39])
    assert histories(linked.take(places)) == [every[at] for at in places]
    again = concatenate_linked([linked.take(slice(0, 11)), linked.take(slice(11, 40))])
    assert isinstance(again, LinkedCodes)
    assert histories(again) == every
    alone = Codes(linked.columns, linked.sizes)
    assert not isinstance(concatenate_linked([alone, alone]), LinkedCodes)
    with pytest.raises(LocalError):
        concatenate_linked([alone, linked])


def test_events_that_are_not_these_peoples_are_refused():
    linked = linked_codes(10)
    with pytest.raises(LocalError):
        LinkedCodes(linked.columns, linked.sizes, linked.events, linked.numbers + 1, 4)
    with pytest.raises(LocalError):
        LinkedCodes(linked.columns, linked.sizes, linked.events, linked.numbers, 1)


def test_cells_are_sorted_as_numbers_then_as_texts_and_empty_ones_last():
    cells = ["-1e9", "-2", "0", "0.5", "3", "20", "1e300", "2023-12-31", "2024-01-02", "a", "b"]
    found = order_keys(pa.array(cells))
    assert np.array_equal(np.argsort(found, kind="stable"), np.arange(len(cells)))
    assert order_keys(pa.array(["3.0"])) == order_keys(pa.array([3]))
    assert all(max(found) < key for key in order_keys(pa.array([None, "nan"])))


def test_times_with_a_zone_are_sorted_as_moments():
    moments = pd.to_datetime(["2024-01-01 10:00", "2024-01-01 09:30"]).tz_localize("UTC")
    found = order_keys(pa.array(moments))
    assert found[1] < found[0]
