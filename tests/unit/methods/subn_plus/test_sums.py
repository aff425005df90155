"""The sums of subn+ with their noise: margins, first and alone, and histograms from them."""

from fractions import Fraction

import numpy as np
import pytest

from common.methods.designs.blocks import margin_sums
from common.methods.subn_plus.facts import PublicFacts, margin_blocks
from common.methods.subn_plus.requests import GroupedTables
from common.methods.subn_plus.sums import (
    every_value,
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
