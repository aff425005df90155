"""The fit: independent without sums of pairs, equal for equal sums, close to exact sums."""

from dataclasses import astuple
from fractions import Fraction

import numpy as np
import pytest

from common.methods.subn_plus.linked.fit import Column, Logits, prices_of, side_of, split
from common.methods.subn_plus.linked.loss import Seen, Sums
from common.methods.subn_plus.linked.requests import AveragedTables, NextTables
from common.methods.subn_plus.thinning import HELD_BACK
from common.privacy.randomness import SeededRandomSource
from common.study.requests import RowsInMemory
from tests.harness.linked import linked_codes
from tests.harness.linked_runs import fitted

PAIRS = ((0, 3), (1, 3), (2, 4), (3, 4))


@pytest.fixture(scope="module")
def model():
    return fitted(linked_codes(1500), epsilon=20).model


def shares(linked):
    """Pairs of people and events, and consecutive events, as shares of their totals."""
    groups = tuple(tuple(range(size)) for size in (*linked.with_number.sizes, *linked.events.sizes))
    requests = AveragedTables(PAIRS, groups, 3, linked.most), NextTables(groups[3:], linked.most)
    answers = [request.answer(RowsInMemory(linked)) for request in requests]
    return [answer / answer.sum() for answer in answers]


def test_large_budgets_lead_close_to_the_rows():
    linked = linked_codes(4000)
    model = fitted(linked, epsilon=200)
    synthetic = model.sample(linked)
    for real, own in zip(shares(linked), shares(synthetic), strict=True):
        assert np.abs(real - own).sum() / 2 < 0.08
    independent = fitted(linked, epsilon=Fraction(1, 10)).sample(linked)
    assert np.abs(shares(linked)[1] - shares(independent)[1]).sum() / 2 > 0.25  # with power


def test_equal_sums_give_equal_models(model):
    assert fitted(linked_codes(1500), epsilon=20).model.as_json() == model.as_json()


def test_a_fit_near_a_model_of_like_sums_leads_to_where_a_fresh_one_does(model):
    drawn = model.sample(1500, SeededRandomSource("rows"))
    fresh, near = (fitted(drawn, epsilon=20, seed="noise") for _ in range(2))
    near.model = near.run.model(model)
    assert near.model.people.price == model.people.price
    assert near.model.as_json() != fresh.model.as_json()
    samples = [
        own.sample(100_000, SeededRandomSource("s")) for own in (model, fresh.model, near.model)
    ]
    for before, there, here in zip(*map(shares, samples), strict=True):
        assert np.abs(here - there).sum() < 0.5 * np.abs(before - there).sum()


def test_a_start_is_the_model_itself_in_the_atoms_of_its_columns(model):
    tables = (*model.people.columns, model.numbers, *model.columns)
    columns = [
        Column(own[0], 1e-4, np.arange(own.shape[1]), np.arange(own.shape[1]), own[:1])
        for own in tables
    ]
    cut = len(model.people.columns) + 1
    start = Logits(side_of(columns[:cut]), side_of(columns[cut:]), classes=48, event_classes=48)
    start = start.near(model, [own.atoms for own in columns])
    parts = start.parts(start.vector)
    assert np.allclose(parts.weights, model.people.weights)
    assert np.allclose(parts.returns, model.walk.returns)
    assert np.allclose(parts.step, model.walk.step)
    assert all(map(np.allclose, [*parts.people, *parts.events], tables))


def test_values_in_no_table_of_pairs_share_what_the_margin_says():
    margin = np.array([0.1, 0.2, 0.3, 0.4])
    column = Column(margin, 1e-4, np.array([0, 0, 1, 1]), np.zeros(4, int), margin[None, :])
    assert column.atoms.tolist() == [0, 0, 1, 1]
    spread = column.spread(np.array([[0.3, 0.7], [0.9, 0.1]]))
    assert spread[1] == pytest.approx([0.3, 0.6, 0.3 / 7, 0.4 / 7])


def sums_of(groups, precision):
    """Pairs of two columns, which are the same on both sides, at one precision."""
    shares = np.random.default_rng(0).random((2 * groups, 2 * groups))
    column = np.repeat([0, 1], groups)
    apart = precision * (column[:, None] != column[None, :])
    mirrored = Seen(np.triu(shares) + np.triu(shares, 1).T, apart)
    every = Seen(shares, np.full_like(shares, precision))
    return Sums(mirrored, mirrored, every, every)


def test_information_costs_more_where_sums_are_more_precise():
    even = np.full(4, 0.25)
    columns = [Column(even, 1e-4, np.arange(4), np.arange(4), even[None, :])] * 2
    low, high = (
        astuple(prices_of(columns, columns, sums_of(4, precision), 1.0)) for precision in (1e2, 1e4)
    )
    assert high == pytest.approx([10 * price for price in low])
    dearer = prices_of(columns, columns, sums_of(4, 1e2), 3.0)
    assert astuple(dearer) == pytest.approx([3 * price for price in low])


def test_two_looks_at_sums_have_independent_noise_around_them():
    sums = sums_of(60, 1e4)
    first, second = split(sums)
    assert np.array_equal(
        first.both.proportions, split(sums)[0].both.proportions
    )  # verifiers repeat it
    assert np.array_equal(first.people.proportions, first.people.proportions.T)
    assert np.array_equal(
        first.people.proportions[0, :60], sums.people.proportions[0, :60]
    )  # not seen
    moved = [
        100 * (look.both.proportions - sums.both.proportions).ravel() for look in (first, second)
    ]
    # e and -e (1 - f) / f: the noise of the sum, of variance 1, is added to both
    assert np.var(moved[0]) == pytest.approx(HELD_BACK / (1 - HELD_BACK), rel=0.05)
    assert moved[1] == pytest.approx(-moved[0] * (1 - HELD_BACK) / HELD_BACK)
    assert first.both.precisions[0, 0] + second.both.precisions[0, 0] == pytest.approx(1e4)
