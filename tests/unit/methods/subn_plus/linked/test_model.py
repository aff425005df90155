"""The model of people and events: what it draws is what it says."""

import itertools
import json

import numpy as np
import pytest
from scipy.stats import chisquare

from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.linked.model import LinkedModel, Walk, _drawn_by_class, drawn_places
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes

MODEL = LinkedModel(
    LatentModel(np.array([0.3, 0.7]), (np.array([[0.9, 0.1], [0.2, 0.8]]),)),
    np.array([[0.5, 0.2, 0.2, 0.1], [0.0, 0.1, 0.3, 0.6]]),
    Walk(
        np.array([[0.9, 0.1], [0.3, 0.7]]),
        np.array([[0.6, 0.4], [0.2, 0.8]]),
        np.array([[0.8, 0.2], [0.1, 0.9]]),
        np.array([0.3, 0.5]),
    ),
    (np.array([[1.0, 0.0], [0.0, 1.0]]),),  # the only attribute is the class
)
PEOPLE = 200_000


def drawn(rows=PEOPLE, seed="model"):
    return MODEL.sample(rows, SeededRandomSource(seed))


def expected_walks(value, number):
    """The probability of each walk of a person with this value and so many events."""
    weights = MODEL.people.weights * MODEL.people.columns[0][:, value] * MODEL.numbers[:, number]
    walk, found = MODEL.walk, np.zeros((2,) * number)
    for place in np.ndindex(found.shape):
        odds = weights * walk.first[:, place[0]]
        for before, after in itertools.pairwise(place):
            back = walk.returns[before]
            odds = odds * ((1 - back) * walk.step[before, after] + back * walk.back[:, after])
        found[place] = odds.sum()
    return found


def test_people_events_and_walks_have_the_models_distribution():
    linked = drawn()
    starts = linked.starts
    for value in (0, 1):
        for number in (1, 2, 3):
            who = (linked.columns[0] == value) & (linked.numbers == number)
            steps = [linked.events.columns[0][starts[who] + place] for place in range(number)]
            seen = np.zeros((2,) * number)
            np.add.at(seen, tuple(steps), 1)
            expected = expected_walks(value, number) * PEOPLE
            assert seen.sum() == pytest.approx(expected.sum(), rel=0.05)
            assert chisquare(
                seen.ravel(), expected.ravel() * seen.sum() / expected.sum()
            ).pvalue > (1e-4)


def test_events_of_given_people_are_drawn_from_what_their_attributes_tell():
    people = Codes.from_columns([np.zeros(PEOPLE, dtype=np.int64)], [2])
    linked = MODEL.with_events(people, SeededRandomSource("given"))
    expected = np.array([0.27, 0.14]) @ MODEL.numbers / 0.41
    seen = np.bincount(linked.numbers, minlength=4)
    assert chisquare(seen, expected * PEOPLE).pvalue > 1e-4
    assert chisquare(seen, MODEL.numbers.mean(axis=0) * PEOPLE).pvalue < 1e-9  # with power


def test_nobody_is_drawn_if_nobody_is_asked_for():
    assert (drawn(0).rows, drawn(0).events.rows) == (0, 0)


def test_equal_sources_draw_equal_histories():
    one, other = drawn(100, "same"), drawn(100, "same")
    assert np.array_equal(one.events.columns[0], other.events.columns[0])
    assert np.array_equal(one.numbers, other.numbers)


def test_the_model_is_plain_values():
    document = json.loads(json.dumps(MODEL.as_json()))
    assert document["format"] == "parley model of people and events 1"
    assert document["returns"] == [0.3, 0.5]


def test_columns_are_drawn_class_by_class_as_they_were_event_by_event():
    rng = np.random.default_rng(5)
    odds, classes = rng.random((7, 40)), rng.integers(0, 7, 5000)
    together = drawn_places(odds[classes], SeededRandomSource("events"))
    assert np.array_equal(_drawn_by_class(odds, classes, SeededRandomSource("events")), together)
