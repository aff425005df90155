"""Views of people and events: each against the two data frames that it was made of."""

import numpy as np
import pytest

from common.analysis.replicates import Replicates
from common.analysis.statistics import CodedTable, mean, share
from common.analysis.survival import survival
from common.analysis.views import (
    averages_view,
    by_events,
    events_view,
    first_view,
    people_view,
    rows_view,
)
from common.errors import InputError, LocalError
from common.schema import Schema
from common.schema.linked import encode_linked
from tests.harness.linked import SCHEMA, frames

PEOPLE, EVENTS = frames(300)
CODES = encode_linked(SCHEMA, PEOPLE, EVENTS, person="id")
COUNTED = EVENTS.sort_values(["id", "day"]).groupby("id").head(4)


def of(statistic, view):
    return statistic.of(CodedTable(view.schema, view.codes(CODES)))


def test_people_have_their_number_of_events():
    view = people_view(SCHEMA)
    numbers = COUNTED.groupby("id").size().reindex(PEOPLE.id).fillna(0).to_numpy()
    for sex in "FM":
        expected = numbers[(PEOPLE.sex == sex).to_numpy()].mean()
        values = of(mean(view.schema, "visits", "sex"), view)
        assert values["mean of visits", sex] == pytest.approx(expected)


def test_a_row_an_event_has_its_persons_columns():
    view = events_view(SCHEMA)
    joined = COUNTED.merge(PEOPLE, on="id")
    values = of(share(view.schema, "diagnosis = b", "sex"), view)
    for sex in "FM":
        expected = (joined[joined.sex == sex].diagnosis == "b").mean()
        assert values["share of diagnosis = b", sex] == pytest.approx(expected)
    assert not view.of_people


def with_day(**events):
    document = """
attribute = [
  { name = "sex", kind = "categorical", values = ["F", "M"] },
]

[events]
name = "visits"
most = 4
order = "day"
attribute = [
  { name = "day", kind = "integer", min = 0, max = 9, bins = 10 },
  { name = "diagnosis", kind = "categorical", values = ["a", "b", "c", "d"] },
]
"""
    return Schema.from_toml(document)


def test_the_first_event_of_a_kind_has_its_day_and_others_are_watched_to_the_end():
    schema = with_day()
    codes = encode_linked(schema, PEOPLE, EVENTS, person="id")
    view = first_view(schema, "diagnosis = b")
    rows = view.codes(codes)
    of_kind = COUNTED[COUNTED.diagnosis == "b"].groupby("id").day.min()
    when = of_kind.reindex(PEOPLE.id)
    assert rows.columns[2].tolist() == when.notna().astype(int).tolist()
    assert rows.columns[1].tolist() == when.fillna(9).astype(int).tolist()


def test_a_first_event_without_a_time_is_refused():
    with pytest.raises(InputError, match="no attribute"):
        first_view(SCHEMA, "diagnosis = b")


def test_names_that_both_tables_have_are_told_apart():
    attributes = with_day().events.attributes
    schema = Schema((attributes[0],), events=with_day().events)
    assert events_view(schema).schema.names == ("day", "visits", "day of visits", "diagnosis")


def test_replicates_are_seen_alike_and_single_tables_are_refused():
    view = people_view(SCHEMA)
    seen = view.of(Replicates(SCHEMA, CODES, CODES, (CODES,)))
    assert seen.released.width == seen.tables[0].width == 3
    assert rows_view(SCHEMA).codes(CODES) is CODES
    with pytest.raises(LocalError, match="without their events"):
        view.codes(CODES.with_number)
    with pytest.raises(InputError, match="single table"):
        people_view(SCHEMA.people)
    assert np.array_equal(seen.released.columns[2], CODES.numbers)


def test_averages_are_people_with_each_of_their_events_as_often():
    """A person counts the same with any number of events; weighed by it, every event does."""
    view, events = averages_view(SCHEMA), events_view(SCHEMA)
    rows = view.codes(CODES)
    with_events = COUNTED.id.nunique()
    assert rows.rows == 8 * with_events
    averages = COUNTED.groupby("id").diagnosis.apply(lambda own: (own == "b").mean()).mean()
    statistic = share(view.schema, "diagnosis = b")
    (counted,) = statistic.of(CodedTable(view.schema, rows)).values()
    assert counted == pytest.approx(averages, abs=0.01)
    weighed = by_events(statistic, SCHEMA)
    (value,) = weighed.of(CodedTable(view.schema, rows)).values()
    (expected,) = of(share(events.schema, "diagnosis = b"), events).values()
    assert value == pytest.approx(expected, abs=0.01)
    assert weighed.attributes == {"diagnosis", "visits"}


def test_whether_a_first_event_was_is_between_averages_and_numbers():
    """In every group and at every time, by the real rows: no sampling and no noise."""
    schema = with_day()
    codes = encode_linked(schema, PEOPLE, EVENTS, person="id")
    view, averages = first_view(schema, "diagnosis = b"), averages_view(schema)
    statistic = survival(view.schema, "day", status="reached", by="sex")
    values = statistic.of(CodedTable(view.schema, view.codes(codes)))
    none = codes.take(np.flatnonzero(codes.numbers == 0))
    bounds = view.first.bounds(statistic, none, float((codes.numbers > 0).mean()))
    rows = CodedTable(averages.schema, averages.codes(codes))
    least, greatest = (each.of(rows) for each in bounds)
    assert all(each.attributes == {"sex", "visits", "day", "diagnosis"} for each in bounds)
    for key, value in values.items():
        assert least[key] - 0.01 <= value <= greatest[key] + 0.01
    day = max(key for key in values if key[1] == "F")
    numbers = COUNTED[COUNTED.diagnosis == "b"].merge(PEOPLE, on="id").sex.value_counts()
    expected = 1 - numbers["F"] / (PEOPLE.sex == "F").sum()
    assert least[day] == pytest.approx(max(expected, 0), abs=0.02)
