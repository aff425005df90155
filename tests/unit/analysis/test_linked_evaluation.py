"""Distances of people and events, against pandas on small tables."""

from itertools import combinations, product

import numpy as np
import pytest

from common.analysis.distances import (
    BOTH,
    EVENT,
    KINDS,
    NEXT,
    NUMBER,
    PEOPLE,
    SAME,
    evaluate_linked,
)
from common.errors import InputError
from common.schema.linked import encode_linked
from tests.harness.linked import SCHEMA, frames

OF_PEOPLE, OF_EVENTS, MOST = ["sex", "age"], ["diagnosis", "ward"], 4


def seen(people, events):
    """Rows of people, of events with their people, and of consecutive events, by pandas."""
    people = people.assign(age=people.age // 15)
    events = events.sort_values(["id", "day"])
    events = events[events.groupby("id").cumcount() < MOST]
    people = people.assign(visits=people.id.map(events.id.value_counts()).fillna(0).astype(int))
    later = events.groupby("id")[OF_EVENTS].shift(-1).add_prefix("next ")
    return people, events.merge(people, on="id"), events.join(later).dropna()


def apart(real, synthetic, pair):
    shares = [own.value_counts(list(pair), normalize=True) for own in (real, synthetic)]
    return shares[0].sub(shares[1], fill_value=0).abs().sum() / 2


def by_pandas(real, synthetic):
    """The distance of every pair of each kind."""
    people, joined, later = zip(seen(*real), seen(*synthetic), strict=True)
    numbered = [*OF_PEOPLE, "visits"]
    pairs = {
        PEOPLE: (people, list(combinations(numbered, 2))),
        NUMBER: (people, [(name, "visits") for name in OF_PEOPLE]),
        BOTH: (joined, list(product(numbered, OF_EVENTS))),
        EVENT: (joined, [tuple(OF_EVENTS)]),
        NEXT: (later, [(a, f"next {b}") for a, b in product(OF_EVENTS, OF_EVENTS)]),
        SAME: (later, [(a, f"next {a}") for a in OF_EVENTS]),
    }
    return {
        kind: {pair: apart(*tables, pair) for pair in named}
        for kind, (tables, named) in pairs.items()
    }


def evaluated(real, synthetic):
    codes = (encode_linked(SCHEMA, *tables, person="id") for tables in (real, synthetic))
    return evaluate_linked(*codes, SCHEMA)


def test_every_kind_is_what_pandas_counts():
    real, synthetic = frames(60, seed=1), frames(45, seed=2)
    found = evaluated(real, synthetic)
    expected = by_pandas(real, synthetic)
    assert list(found.kinds) == list(expected) == list(KINDS)
    for kind, pairs in expected.items():
        own = found.kinds[kind]
        assert own.average == pytest.approx(np.mean(list(pairs.values()))), kind
        assert own.worst == pytest.approx(max(pairs.values())), kind
        assert pairs[own.worst_attributes] == pytest.approx(own.worst), kind
        assert own.compared == own.existing == len(pairs)
    counted = [len(seen(*tables)[1]) for tables in (real, synthetic)]
    assert [found.events_real, found.events_synthetic] == counted
    shares = seen(*real)[0].visits.value_counts(normalize=True)
    assert found.numbers_real == pytest.approx(shares.reindex(range(MOST + 1), fill_value=0))


def test_the_same_tables_are_at_no_distance():
    tables = frames(30)
    assert {own.worst for own in evaluated(tables, tables).kinds.values()} == {0.0}


def test_kinds_without_rows_are_left_out_and_named():
    people, events = frames(30)
    single = events.drop_duplicates("id")
    assert evaluated((people, events), (people, single)).left_out == (NEXT, SAME)
    nothing = evaluated((people, events), (people, events[:0]))
    assert nothing.left_out == (BOTH, EVENT, NEXT, SAME)
    assert set(nothing.as_json()["distances"]) == {"people_pairs", "number_of_events"}


def test_a_schema_without_events_is_refused():
    codes = encode_linked(SCHEMA, *frames(30), person="id")
    with pytest.raises(InputError, match="no \\[events\\]"):
        evaluate_linked(codes, codes, SCHEMA.people)
