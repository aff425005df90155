"""The loss: its sums are those of every path through the model, its slopes those of differences."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from common.methods.subn_plus.linked.fit import Column, Logits, numbered_of, side_of, unmeasured
from common.methods.subn_plus.linked.loss import Loss, Prices, Seen, SeenPair, Sums

MOST = 3
NUMBERS = np.array([0, 1, 1])  # the group of a person with 1, 2, ... events
SHARE, LATER = np.array([1.0, 1.0, 0.9]), np.array([1.0, 0.8])
FREE = Prices(0.0, 0.0, 0.0, 0.0)


def column(rng, size, groups, later):
    margin = rng.dirichlet(np.ones(size))
    numbered = np.stack([0.6 * margin, 0.3 * rng.dirichlet(np.ones(size))])
    return Column(margin, 1e-4, np.arange(size) % groups, np.arange(size) % later, numbered)


def small_model(seed=0, *, walks=True):
    rng = np.random.default_rng(seed)
    people = [column(rng, 4, 3, 1), column(rng, 2, 2, 1), column(rng, MOST + 1, 3, MOST + 1)]
    events = [column(rng, 4, 2, 3), column(rng, 3, 3, 2)]
    sides = side_of(people), side_of(events)
    logits = Logits(*sides, classes=2, event_classes=3, walks=walks)
    vector = logits.vector + 0.5 * rng.normal(size=len(logits.vector))
    return sides, numbered_of(events, NUMBERS), logits, vector


def widths(sights):
    return sum(own.shape[1] for own in sights)


def apart(sights):
    """1 where two groups are of different columns."""
    column = np.repeat(np.arange(len(sights)), [own.shape[1] for own in sights])
    return (column[:, None] != column[None, :]).astype(float)


def known(sides, shares, precisions=(1.0, 1.0, 1.0, 1.0)):
    """Sums of which all pairs of different columns are known."""
    masks = apart(sides[0].sights), apart(sides[1].sights), 1.0, 1.0
    return Sums(
        *(
            Seen(own, precision * mask * np.ones_like(own))
            for own, precision, mask in zip(shares, precisions, masks, strict=True)
        )
    )


def paths(parts):
    """Every person's class, number of events and classes of events, with their probability."""
    classes, kinds = parts.first.shape
    for z, number in product(range(classes), range(MOST + 1)):
        for walk in product(range(kinds), repeat=number):
            odds = parts.weights[z] * parts.people[-1][z, number]
            for place, w in enumerate(walk):
                if place == 0:
                    odds *= parts.first[z, w]
                else:
                    before, back = walk[place - 1], parts.returns[walk[place - 1]]
                    odds *= (1 - back) * parts.step[before, w] + back * parts.back[z, w]
            yield z, number, walk, odds


def enumerated(sides, parts):
    """The sums of a model by going through all of its paths."""
    people, events = sides
    seen = [c @ s for c, s in zip(parts.people, people.sights, strict=True)]
    told = np.concatenate([c @ s for c, s in zip(parts.events, events.sights, strict=True)], axis=1)
    after = np.concatenate([c @ s for c, s in zip(parts.events, events.later, strict=True)], axis=1)
    beside = np.concatenate(seen, axis=1)
    of_people = sum(
        parts.weights[z] * np.outer(beside[z], beside[z]) for z in range(len(parts.weights))
    )
    of_events = np.zeros((told.shape[1],) * 2)
    both = np.zeros((beside.shape[1] - seen[-1].shape[1], told.shape[1]))
    by_number = [np.zeros((2, column.shape[1])) for column in parts.events]
    later = np.zeros((after.shape[1],) * 2)
    for z, number, walk, odds in paths(parts):
        alone = np.concatenate([own[z] for own in seen[:-1]])
        for w in walk:
            each = odds * SHARE[number - 1] / number
            of_events += each * np.outer(told[w], told[w])
            both += each * np.outer(alone, told[w])
            for table, column in zip(by_number, parts.events, strict=True):
                table[NUMBERS[number - 1]] += each * column[w]
        for one, other in pairwise(walk):
            later += odds * LATER[number - 2] / (number - 1) * np.outer(after[one], after[other])
    return (of_people, of_events, both, later), by_number


def test_the_sums_of_a_model_are_those_of_all_its_paths():
    sides, numbered, logits, vector = small_model()
    parts = logits.parts(vector)
    pairs, by_number = enumerated(sides, parts)
    sums = known(sides, pairs)
    numbered = replace(numbered, tables=tuple(by_number))
    loss = Loss(unmeasured(sides[0]), sides[1], numbered, sums, SHARE, LATER, FREE)
    assert loss.evaluate(parts)[0] == pytest.approx(0, abs=1e-20)
    sums.both.proportions[0, 0] += 1e-3  # and another table is noticed
    assert loss.evaluate(parts)[0] == pytest.approx(0.5e-6)
    by_number[0][0, 0] += 1e-3
    assert loss.evaluate(parts)[0] == pytest.approx(0.5e-6 * (1 + numbered.precisions[0][0]))


def declared(sides, rng):
    """Noisy pairs of every kind: people, people and number, both, number and events, events."""
    sizes = [len(own) for side in sides for own in side.margins]
    last = len(sides[0].margins) - 1
    pairs = [(0, 1), (0, last), (0, last + 1), (last, last + 1), (last + 1, last + 2)]
    found = []
    for one, other in pairs:
        sights = tuple(np.eye(2)[np.arange(sizes[v]) % 2] for v in (one, other))
        found.append(SeenPair((one, other), sights, rng.random((2, 2)) / 4, 50.0))
    return tuple(found)


def test_declared_pairs_of_a_model_are_those_of_all_its_paths():
    sides, numbered, logits, vector = small_model()
    parts, last = logits.parts(vector), len(sides[0].margins) - 1
    expected = {pair: np.zeros((2, 2)) for pair in ((last, last + 1), (0, last + 1))}
    sight = [np.eye(2)[np.arange(own.shape[1]) % 2] for own in (*parts.people, *parts.events)]
    for z, number, walk, odds in paths(parts):
        for w in walk:
            told = odds * SHARE[number - 1] / number * (parts.events[0][w] @ sight[last + 1])
            expected[last, last + 1] += np.outer(sight[last][number], told)
            expected[0, last + 1] += np.outer(parts.people[0][z] @ sight[0], told)
    pairs = tuple(
        SeenPair((a, b), (sight[a], sight[b]), table, 1e4) for (a, b), table in expected.items()
    )
    shares, by_number = enumerated(sides, parts)
    numbered = replace(numbered, tables=tuple(by_number))
    sums = replace(known(sides, shares), declared=pairs)
    loss = Loss(unmeasured(sides[0]), sides[1], numbered, sums, SHARE, LATER, FREE)
    assert loss.evaluate(parts)[0] == pytest.approx(0, abs=1e-18)


@pytest.mark.parametrize(("seed", "walks"), [(0, True), (1, True), (2, False)])
def test_slopes_are_those_of_differences(seed, walks):
    sides, numbered, logits, vector = small_model(seed, walks=walks)
    rng = np.random.default_rng(seed)
    shapes = [widths(sides[0].sights), widths(sides[1].sights), widths(sides[1].later)]
    one, other = (rng.random((size, size)) for size in shapes[:2])
    both = rng.random((shapes[0] - sides[0].sights[-1].shape[1], shapes[1]))
    shares = one + one.T, other + other.T, both, rng.random((shapes[2],) * 2)
    sums = replace(known(sides, shares, (3e2, 2e2, 4e2, 1e2)), declared=declared(sides, rng))
    loss = Loss(*sides, numbered, sums, SHARE, LATER, Prices(5.0, 6.0, 7.0, 8.0))
    parts = logits.parts(vector)
    slopes = logits.slopes(parts, loss.evaluate(parts)[1])
    for at in range(len(vector)):
        ends = []
        for sign in (1, -1):
            moved = vector.copy()
            moved[at] += sign * 1e-5
            ends.append(loss.evaluate(logits.parts(moved))[0])
        assert slopes[at] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-4)


def test_a_model_of_one_class_tells_nothing():
    sides, numbered, _, _ = small_model()
    logits = Logits(*sides, classes=1, event_classes=1)
    parts = logits.parts(logits.vector)
    parts.people = [own[None, :] / own.sum() for own in sides[0].margins]
    parts.events = [own[None, :] / own.sum() for own in sides[1].margins]
    shapes = [widths(sides[0].sights), widths(sides[1].sights), widths(sides[1].later)]
    alone = shapes[0] - sides[0].sights[-1].shape[1]
    pairs = (shapes[0],) * 2, (shapes[1],) * 2, (alone, shapes[1])
    nothing = [np.zeros(shape) for shape in pairs]
    sums = known(sides, [*nothing, np.zeros((shapes[2],) * 2)], (0.0, 0.0, 0.0, 0.0))
    priced = Loss(*sides, numbered, sums, SHARE, LATER, Prices(1e6, 1e6, 1e6, 1e6)).evaluate(parts)[
        0
    ]
    free = Loss(*sides, numbered, sums, SHARE, LATER, FREE).evaluate(parts)[0]
    assert priced == pytest.approx(free, abs=1e-3)
