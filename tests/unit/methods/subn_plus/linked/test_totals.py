"""Totals of people's and events' numbers: what they add up, and how far a person moves them."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest

import parley
from common.analysis.statistics import mean
from common.methods.subn_plus.linked.totals import QUARTERS, AveragedTotals, largest_total, over
from common.methods.subn_plus.totals import LARGEST, NO_CLASS, distances
from common.release.totals import averaged_shares
from common.schema import Schema
from common.schema.codes import MIDDLE, PLACES, Codes
from common.schema.linked import LinkedCodes, encode_linked
from common.study.requests import RowsInMemory

SCHEMA = Schema.from_toml("""
attribute = [
  { name = "age", kind = "integer", min = 0, max = 99, bins = 5 },
]

[events]
name = "stays"
most = 3
attribute = [
  { name = "ward", kind = "categorical", values = ["x", "y"] },
  { name = "nights", kind = "integer", min = 0, max = 39, bins = 4, clip = true },
]
""")
# age, number of stays, ward, nights
REQUEST = AveragedTotals(
    (0, 3), ((0, 0, 1, 1, 1), (0, 0, 1, NO_CLASS)), ((9,) * 5, (4, 2, 3, 0)), 4, 2, 3
)


def tables(people, seed=0):
    """Stays heap at 7 nights, and people with many stays stay longer."""
    rng = np.random.default_rng(seed)
    first = pd.DataFrame({"id": np.arange(people), "age": rng.integers(0, 50, people) * 2})
    owner = np.repeat(first.id, rng.integers(0, 4, people))
    many = owner.map(owner.value_counts()) == 3
    nights = np.where(rng.random(len(owner)) < np.where(many, 0.3, 0.7), 7, 31)
    wards = rng.choice(["x", "y"], len(owner))
    return first, pd.DataFrame({"id": owner.to_numpy(), "ward": wards, "nights": nights})


def test_totals_are_those_of_a_naive_sum_over_people():
    codes = encode_linked(SCHEMA, *tables(200), person="id")
    far = [distances(own, spans) for own, spans in zip(REQUEST.classes, REQUEST.spans, strict=True)]
    naive = [np.zeros(2, int), np.zeros(2, int)]
    for person, (start, number) in enumerate(zip(codes.starts, codes.numbers, strict=True)):
        code = codes.columns[0][person]
        naive[0][REQUEST.classes[0][code]] += 4 * far[0][code, codes.places[0][person]]
        for event in range(start, start + number):
            code, place = codes.events.columns[1][event], codes.events.places[1][event]
            own = REQUEST.classes[1][code]
            if own != NO_CLASS:
                part = Fraction(4 * int(far[1][code, place]), int(number))
                naive[1][own] += int((part + Fraction(1, 2)) // 1)
    answer = REQUEST.answer(RowsInMemory(codes))
    assert answer.tolist() == np.concatenate(naive).tolist()
    assert [own.tolist() for own in REQUEST.split(answer).values()] == [n.tolist() for n in naive]
    assert np.abs(answer).max() <= REQUEST.limit(codes.rows)


def histories():
    """Every history of up to three stays at the ends and the middles of two bins."""
    cells = [(code, place) for code in (0, 2, 3) for place in (0, MIDDLE, 40, PLACES - 1)]
    for number in range(4):
        yield from combinations_with_replacement(cells, number)


def one_person(age, events):
    wards = np.zeros(len(events), np.uint8)
    codes, places = (np.array([e[own] for e in events], np.uint8) for own in (0, 1))
    return LinkedCodes(
        (np.array([age[0]], np.uint8),), (5,), Codes((wards, codes), (2, 4), places=(None, places)),
        np.array([len(events)]), 3, places=(np.array([age[1]], np.uint8),),
    )  # fmt: skip


def test_no_two_people_with_all_their_events_are_further_apart_than_the_sensitivity():
    """Every history against every other, and every age: the norms of columns add up."""
    ages = [one_person(age, ()) for age in product(range(5), (0, MIDDLE, PLACES - 1))]
    stays = [one_person((0, MIDDLE), own) for own in histories()]
    added = [np.unique([REQUEST.answer(RowsInMemory(p)) for p in some], axis=0)
             for some in (ages, stays)]  # fmt: skip
    apart = [own[:, None] - own[None] for own in added]
    moved = REQUEST.sensitivity
    assert moved.l1 == 2 * 2 * largest_total(3)
    assert sum(np.abs(each).sum(2).max() for each in apart) <= moved.l1
    assert sum((each**2).sum(2).max() for each in apart) <= moved.l2_squared
    # Events at one end of a bin against events at the other: two units less by rounding, at most.
    assert np.abs(apart[1]).sum(2).max() >= 2 * QUARTERS * LARGEST - 3


@pytest.mark.parametrize("most", [1, 2, 7, 8, 64])
def test_no_history_adds_more_than_the_largest_total(most):
    far = np.arange(-LARGEST, LARGEST + 1)
    sizes = [number * np.abs(over(far, number)).max() for number in range(1, most + 1)]
    assert max(sizes) == largest_total(most) <= 1.05 * QUARTERS * LARGEST


def test_the_request_is_told_apart_by_all_of_it():
    columns, classes, spans = REQUEST.columns, REQUEST.classes, REQUEST.spans
    others = [
        AveragedTotals(columns, classes, spans, 4, 2, 4),
        AveragedTotals(columns, classes, spans, 4, 1, 3),
        AveragedTotals(columns, classes[::-1], spans, 4, 2, 3),
    ]
    assert len({REQUEST.canonical, *(own.canonical for own in others)}) == 4
    assert REQUEST.links == ((0,), ())


def test_means_of_people_and_of_events_are_those_of_the_numbers_and_not_of_bins():
    """Stays are of 7 or 31 nights, in bins whose middles are 4.5 and 34.5."""
    first, stays = tables(3000)
    owners = [(first[first.id % 2 == own], stays[stays.id % 2 == own]) for own in range(2)]
    with pytest.warns(parley.PrivacyWarning):
        fitted = parley.simulate(
            owners, SCHEMA, epsilon=40, aggregation="clear", seed=3, person="id",
            analyses=['mean = "nights"'],
        )  # fmt: skip
    assert fitted.steps[-1].name == "totals"
    view = fitted.view("stays")
    (found,) = fitted.estimate(mean(view.schema, "nights"), of="stays")
    assert found.low < stays.nights.mean() < found.high
    assert found.estimate == pytest.approx(stays.nights.mean(), abs=0.6)
    # The mean of people's averages is what was counted; the two differ by more than the interval.
    averages = stays.groupby("id").nights.mean().mean()
    assert abs(averages - stays.nights.mean()) > 1
    shares = averaged_shares(fitted.study, fitted.steps, fitted.results)[3]
    told = shares @ [4.5, 14.5, 24.5, 34.5] + fitted.totals[3].distance
    assert told / shares.sum() == pytest.approx(averages, abs=0.3)
    people, drawn = fitted.sample(3000)
    assert drawn.nights.mean() == pytest.approx(stays.nights.mean(), abs=1)
    assert people.age.mean() == pytest.approx(first.age.mean(), abs=2)
