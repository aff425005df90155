"""The sums of subn+ with their noise: margins, first and alone, and histograms from them."""

from fractions import Fraction

import numpy as np
import pytest

from common.methods.designs.blocks import margin_sums
from common.methods.subn_plus.facts import PublicFacts, margin_blocks
from common.methods.subn_plus.losses import Measurement
from common.methods.subn_plus.requests import Agreements, GroupedTables
from common.methods.subn_plus.sums import (
    Halves,
    every_value,
    finer,
    margins_alone,
    margins_only,
    one_way,
    tables_of,
)
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import random_tables

SIZES = (2, 2, 2, 3, 40)
TABLE = random_tables(SIZES, [4000])["p0"]


def facts_at(epsilon):
    return PublicFacts(
        sizes=SIZES, parties=("p0",), rows=TABLE.rows, promise=Promise(Fraction(epsilon))
    )


def fed(script, seed="sums"):
    """Run a script of sums; return its steps and what it returns."""
    source, steps, answer = SeededRandomSource(seed), [], None
    while True:
        try:
            step = script.send(answer)
        except StopIteration as end:
            return steps, end.value
        exact = step.request.answer(RowsInMemory(TABLE))
        answer = exact + step.law.draw(len(exact), source)
        steps.append(step)


def cost_of(steps):
    return sum(step.costs["p0"] for step in steps)


@pytest.mark.parametrize("epsilon", ["1/7", "3"])
def test_margins_only_spend_all_of_the_budget_on_blocks(epsilon):
    facts = facts_at(epsilon)
    steps, fit = fed(margins_only(facts))
    assert cost_of(steps) == Fraction(epsilon)
    assert len(steps) == len(margin_sums(SIZES, margin_blocks(facts), facts.norm))
    assert sorted(own for step in steps for own in step.request.sets) == sorted(
        margin_blocks(facts)
    )
    assert fit().sample(100, SeededRandomSource(1)).sizes == SIZES


def test_margins_that_are_asked_for_twice_are_averaged_by_their_noise():
    facts = facts_at("1/4")
    blocks = GroupedTables(margin_blocks(facts), every_value(facts))
    exact = [
        np.bincount(column, minlength=size)
        for column, size in zip(TABLE.columns, SIZES, strict=True)
    ]

    def script(first, rest):
        seen = yield from tables_of(facts, "first margins", Fraction(first), blocks)
        return (yield from margins_alone(facts, "margins", Fraction(rest), seen))

    def error(first, rest):
        total = 0.0
        for seed in range(12):
            steps, fit = fed(script(first, rest), seed=f"{first} {seed}")
            assert cost_of(steps) == Fraction(1, 4)
            drawn = fit().sample(4000, SeededRandomSource(1))
            for column, truth in zip(drawn.columns, exact, strict=True):
                total += np.abs(np.bincount(column, minlength=len(truth)) - truth).sum()
        return total

    # A first sum of a fiftieth tells little, and must not spoil what the rest tells.
    assert error("1/200", "49/200") < error("1/8", "1/8")


def test_histograms_are_those_of_the_blocks():
    facts = facts_at(10**7)
    blocks = GroupedTables(margin_blocks(facts), every_value(facts))
    _, seen = fed(tables_of(facts, "first margins", facts.budget, blocks))
    for found, column, size in zip(one_way(seen), TABLE.columns, SIZES, strict=True):
        assert (found == np.bincount(column, minlength=size)).all()


CUT = ((0, 1), (0, 1), (0, 1), (0, 0, 1), (0,) * 20 + (1,) * 20)


def two_looks():
    """Look at all pairs, and at two of them with a quarter of the variance."""
    facts = facts_at(1)
    request = Agreements(CUT)
    first = facts.promise.law(Fraction(1, 4), request.sensitivity)
    later = facts.promise.law(Fraction(1, 2), request.sensitivity)
    counts = np.arange(10) * 100 + 1000
    chosen = Agreements(CUT, chosen=((0, 1), (2, 4)))
    one, other = Halves.of(request, counts, first), Halves.of(chosen, np.array([1300, 900]), later)
    return facts, one, other, first.nominal_variance / later.nominal_variance


def test_looks_at_a_pair_count_by_their_precision():
    facts, one, other, more = two_looks()
    both = one.again(other)
    assert both.counts[0, 1] == ((1000 + more * 1300) / (1 + more), 1 + more)
    assert both.counts[0, 2] == one.counts[0, 2]
    assert one.moments(facts).looks == ()
    assert both.moments(facts).looks[0] == float(1 + more)
    assert both.moments(facts).looks[1] == 1
    weights = [(2000, 2000)] * 5
    found = both.departures(facts, weights, ((0, 1),))[0, 1]
    assert found.variance == one.departures(facts, weights)[0, 1].variance / (1 + more)


def test_a_pair_in_halves_has_its_margins_and_agrees_as_often_as_it_is_told_to():
    facts, one, _, _ = two_looks()
    weights = [(1000, 3000)] * 5
    by_chance = TABLE.rows * (1 / 16 + 9 / 16)
    for part in (Fraction(0), Fraction(1, 3), Fraction(1)):
        table = one.table(facts, (2, 4), weights, part)
        agreed = by_chance + float(part) * (float(one.counts[2, 4][0]) - by_chance)
        assert np.trace(table.counts) == pytest.approx(agreed)
        assert table.counts.sum(axis=1) == pytest.approx(np.array([1000, 3000]))
        assert table.counts.sum(axis=0) == pytest.approx(np.array([1000, 3000]))


def test_a_finer_table_is_the_mean_of_both_by_least_squares():
    rng = np.random.default_rng(4)
    halved = Measurement(
        (0, 1), (np.array([0, 0, 1, 1]), np.array([0, 1])), rng.random((2, 2)), 2.0
    )
    table = Measurement((0, 1), (np.array([0, 0, 1, 2]), None), rng.random((3, 2)), 0.5)
    design = np.concatenate([np.eye(6) / 0.5**0.5, np.zeros((4, 6))])
    for row, cells in enumerate([(0,), (1,), (2, 4), (3, 5)]):
        design[6 + row, cells] = 1 / 2.0**0.5
    known = np.concatenate([table.counts.ravel() / 0.5**0.5, halved.counts.ravel() / 2.0**0.5])
    best = np.linalg.lstsq(design, known, rcond=None)[0]
    assert finer(halved, table).counts.ravel() == pytest.approx(best)
