"""Histories that obey rules: by brute force over every history of small models."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from common.bayes import weighting
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.linked.model import LinkedModel, Walk
from common.methods.subn_plus.linked.ruled import RuledHistories, keeping_frequencies
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes
from tests.unit.schema.test_event_rules import some_rules

TWO = Schema.from_toml("""
attribute = [
  { name = "sex", kind = "categorical", values = ["F", "M"] },
]

[events]
name = "visits"
most = 3
attribute = [
  { name = "diagnosis", kind = "categorical", values = ["a", "b", "c"] },
  { name = "ward", kind = "boolean" },
]

[[events.rule]]
when = "sex = M"
then = "diagnosis != a"

[[events.rule]]
impossible = "diagnosis = b and ward = true"
""")
PEOPLE = 60_000


def some_model(schema, seed, classes=(2, 3)):
    """A model with the columns of a schema, of which nothing is known."""
    rng = np.random.default_rng(seed)
    rows = lambda *shape: rng.dirichlet(np.ones(shape[-1]), shape[:-1])  # noqa: E731
    r, s = classes
    return LinkedModel(
        LatentModel(rows(r), tuple(rows(r, size) for size in schema.sizes)),
        rows(r, schema.events.most + 1),
        Walk(rows(r, s), rows(r, s), rows(s, s), rng.random(s)),
        tuple(rows(s, size) for size in schema.of_events.sizes),
    )


def histories(model, weights, x):
    """Of a person with this value: each history's probability, times its values' weights."""
    walk, found = model.walk, {}
    cells = list(product(*(range(own.shape[1]) for own in model.columns)))
    emitted = {
        (w, cell): np.prod([own[w, code] for own, code in zip(model.columns, cell, strict=True)])
        for w in range(len(walk.returns))
        for cell in cells
    }
    for z in range(len(model.people.weights)):
        person = model.people.weights[z] * model.people.columns[0][z, x]
        for number in range(model.most + 1):
            for path in product(range(len(walk.returns)), repeat=number):
                chance = person * model.numbers[z, number]
                chance *= walk.first[z, path[0]] if path else 1
                for before, after in pairwise(path):
                    back = walk.returns[before]
                    chance *= back * walk.back[z, after] + (1 - back) * walk.step[before, after]
                for history in product(cells, repeat=number):
                    own = np.prod([emitted[w, c] for w, c in zip(path, history, strict=True)])
                    found[history] = found.get(history, 0.0) + chance * own
    times = lambda cell: np.prod([w[c] for w, c in zip(weights, cell, strict=True)])  # noqa: E731
    return found, {h: own * np.prod([times(c) for c in h]) for h, own in found.items()}


def obeys(x, cell):
    """What the rules of TWO say, in Python."""
    return not (x == 1 and cell[0] == 0) and not (cell[0] == 1 and cell[1] == 1)


def expected(model, weights):
    """The law of people with histories: people and numbers stay, histories obey."""
    law = {}
    for x in (0, 1):
        plain, weighted = histories(model, weights, x)
        for number in range(model.most + 1):
            mass = sum(own for h, own in plain.items() if len(h) == number)
            fine = {
                h: own
                for h, own in weighted.items()
                if len(h) == number and all(obeys(x, c) for c in h)
            }
            total = sum(fine.values())
            law |= {(x, h): mass * own / total for h, own in fine.items()}
    return law


def seen(linked):
    cells = list(zip(*(own.tolist() for own in linked.events.columns), strict=True))
    ends = np.cumsum(linked.numbers).tolist()
    parts = (tuple(cells[start:end]) for start, end in pairwise([0, *ends]))
    return Counter(zip(linked.columns[0].tolist(), parts, strict=True))


def far(counts, law):
    """The p-value of counts under a law, rare cells together."""
    common = [key for key, own in law.items() if own * PEOPLE >= 5]
    got = [counts[key] for key in common]
    want = [law[key] * PEOPLE for key in common]
    return chisquare([*got, PEOPLE - sum(got)], [*want, PEOPLE - sum(want)]).pvalue


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_histories_have_the_models_law_given_that_every_event_obeys(seed):
    model = some_model(TWO, seed)
    ones = tuple(np.ones(own.shape[1]) for own in model.columns)
    rng = np.random.default_rng(seed)
    for weights in (ones, tuple(rng.random(own.shape[1]) + 0.2 for own in model.columns)):
        law = expected(model, weights)
        assert sum(law.values()) == pytest.approx(1)
        people = model.people.sample(PEOPLE, SeededRandomSource(f"people {seed}"))
        ruled = RuledHistories(model, TWO.possible_events, weights)
        counts = seen(ruled.with_events(people, SeededRandomSource(f"events {seed}")))
        assert set(counts) <= set(law)
        assert far(counts, law) > 1e-4
        # With power: repaired events have another law, and so has the other weighting.
        plain = model.with_events(people, SeededRandomSource("plain"))
        events = TWO.possible_events.repaired(plain, plain.events, plain.of_person)
        repaired = type(plain)(plain.columns, plain.sizes, events, plain.numbers, plain.most)
        assert far(seen(repaired), law) < 1e-9
        assert weights is ones or far(counts, expected(model, ones)) < 1e-9


def test_values_stay_as_frequent_as_they_are_in_the_model():
    model = some_model(TWO, 7)
    people = Codes.from_columns([np.repeat([0, 1], 500)], [2])
    ruled = keeping_frequencies(model, TWO.possible_events, people)
    wanted, got = [np.zeros(3), np.zeros(2)], [np.zeros(3), np.zeros(2)]
    for x in (0, 1):
        plain, weighted = histories(model, ruled.weights, x)
        total = sum(plain.values())
        for number in range(1, model.most + 1):
            laws = {}
            for name, own in (("plain", plain), ("ruled", weighted)):
                fine = {
                    h: p
                    for h, p in own.items()
                    if len(h) == number and (name == "plain" or all(obeys(x, c) for c in h))
                }
                laws[name] = {h: p / sum(fine.values()) for h, p in fine.items()}
            mass = sum(own for h, own in plain.items() if len(h) == number) / total
            for name, counts in (("plain", wanted), ("ruled", got)):
                for history, chance in laws[name].items():
                    for cell in history:
                        for column, code in zip(counts, cell, strict=True):
                            column[code] += 0.5 * mass * chance
    for one, other in zip(got, wanted, strict=True):
        assert np.abs(one - other).sum() / other.sum() < 2e-4
    assert any(own.std() > 0.01 for own in ruled.weights)


def test_people_and_numbers_are_as_they_are_without_rules_and_equal_sources_draw_equally():
    model = some_model(TWO, 4)
    people = model.people.sample(500, SeededRandomSource("people"))
    ruled = keeping_frequencies(model, TWO.possible_events, people)
    plain, one, other = (
        own.with_events(people, SeededRandomSource("events")) for own in (model, ruled, ruled)
    )
    assert np.array_equal(plain.numbers, one.numbers)
    assert all(map(np.array_equal, plain.columns, one.columns))
    assert all(map(np.array_equal, one.arrays, other.arrays))
    nobody = ruled.with_events(people.take(slice(0)), SeededRandomSource("events"))
    assert (nobody.rows, nobody.events.rows) == (0, 0)


def drawn(schema, seed, rows=200):
    model = some_model(schema, seed, classes=(3, 4))
    people = model.people.sample(rows, SeededRandomSource(f"people {seed}"))
    ruled = keeping_frequencies(model, schema.possible_events, people)
    linked = ruled.with_events(people, SeededRandomSource(f"events {seed}"))
    return schema.possible_events.holds(linked, linked.events, linked.of_person)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_no_event_breaks_a_random_rule(seed):
    schema = some_rules(seed)
    assert schema is None or drawn(schema, seed).all()


def test_a_value_that_the_model_never_has_is_drawn_where_rules_leave_no_other():
    only = 'when = "sex = M"\nthen = "diagnosis = c"'
    schema = Schema.from_toml(
        TWO.to_toml().replace('when = "sex = M"\nthen = "diagnosis != a"', only)
    )
    model = some_model(schema, 5)
    model.columns[0][:, 2] = 0.0
    people = Codes.from_columns([np.ones(50, dtype=np.int64)], [2])
    ruled = keeping_frequencies(model, schema.possible_events, people)
    linked = ruled.with_events(people, SeededRandomSource("only"))
    assert set(linked.events.columns[0].tolist()) == {2}


@pytest.mark.parametrize(("most", "exact"), [(17, True), (6, True), (1, False)])
def test_columns_that_hang_together_are_drawn_in_parts_or_repaired(monkeypatch, most, exact):
    parts, plain = [], weighting.WeightedNetwork.by_value

    def counted(self, root, weights):
        parts.append(self.domain.sizes[root])
        return plain(self, root, weights)

    monkeypatch.setattr(weighting.WeightedNetwork, "by_value", counted)
    monkeypatch.setattr(weighting, "MOST_CELLS", most)
    model = some_model(TWO, 6)
    people = model.people.sample(PEOPLE, SeededRandomSource("people"))
    ones = tuple(np.ones(own.shape[1]) for own in model.columns)
    ruled = RuledHistories(model, TWO.possible_events, ones)
    linked = ruled.with_events(people, SeededRandomSource("parts"))
    assert TWO.possible_events.holds(linked, linked.events, linked.of_person).all()
    assert (far(seen(linked), expected(model, ones)) > 1e-4) == exact
    assert min(parts) == 1
