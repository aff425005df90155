"""Diagnoses of many codes: counts descend their hierarchy, and what is heavy keeps its share."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.linked import LinkedCodes
from common.study.accounting import account
from common.study.dry_run import costs_without_rows
from common.study.requests import RowsInMemory
from tests.harness.linked_runs import dealt_out, fitted, linked_study

CHAPTERS, GROUPS, LEAVES = 8, 8, 16
SIZE = CHAPTERS * GROUPS * LEAVES
PEOPLE, MOST = 2000, 3
HEAVY = (7, 300, 900)


@cache
def schema():
    def group(chapter, number):
        start = (chapter * GROUPS + number) * LEAVES
        return f"G{start} = [{', '.join(f'{chr(34)}d{start + n}{chr(34)}' for n in range(LEAVES))}]"

    chapters = (
        f"C{chapter} = {{ {', '.join(group(chapter, n) for n in range(GROUPS))} }}"
        for chapter in range(CHAPTERS)
    )
    return Schema.from_toml(
        '[[attribute]]\nname = "sex"\nkind = "categorical"\nvalues = ["F", "M"]\n'
        f'[events]\nname = "visits"\nmost = {MOST}\n'
        '[[events.attribute]]\nname = "emergency"\nkind = "boolean"\n'
        '[[events.attribute]]\nname = "diagnosis"\nkind = "categorical"\n'
        f"values = {[f'd{code}' for code in range(SIZE)]}\n"
        f"hierarchy = {{ {', '.join(chapters)} }}\n"
    )


@cache
def people():
    """People of whom women have the first heavy diagnosis, and men the second."""
    rng = np.random.default_rng(1)
    sex, numbers = rng.integers(0, 2, PEOPLE), rng.integers(0, MOST + 1, PEOPLE)
    of_person = np.repeat(sex, numbers)
    events = len(of_person)
    heavy = np.where(rng.random(events) < 0.2, HEAVY[2], np.array(HEAVY)[of_person])
    codes = np.where(rng.random(events) < 0.8, heavy, rng.integers(0, SIZE, events))
    held = Codes.from_columns([codes % 2, codes], (2, SIZE))
    return LinkedCodes((sex.astype(np.uint8),), (2,), held, numbers.astype(np.int64), MOST)


@pytest.mark.parametrize(
    ("method", "delta"), [("subn+", Fraction(1, 10**9)), ("floor", Fraction(0))]
)
def test_heavy_diagnoses_are_found_and_keep_their_shares(method, delta):
    outcome = fitted(people(), schema=schema(), method=method, epsilon=4, delta=delta)
    rounds = [step for step in outcome.steps if step.phase == "descent"]
    assert rounds
    assert sum(step.costs["p0"] for step in rounds) <= outcome.study.promise.budget / 2
    assert account(outcome.study, outcome.steps).most_spent <= outcome.study.promise.budget
    drawn = outcome.model.sample(20_000, SeededRandomSource("rows"))
    assert drawn.events.sizes == (2, SIZE)
    real, synthetic = (
        np.bincount(each.events.columns[1], minlength=SIZE) / each.events.rows
        for each in (people(), drawn)
    )
    assert np.abs(real - synthetic)[list(HEAVY)].max() < 0.05
    assert (synthetic > 0).sum() > SIZE / 10  # what is left of a cell is spread over its values
    if method == "subn+":
        of_women = drawn.events.columns[1][drawn.columns[0][drawn.of_person] == 0]
        shares = np.bincount(of_women, minlength=SIZE) / len(of_women)
        assert shares[HEAVY[0]] > 2 * shares[HEAVY[1]]


def test_a_dry_run_descends_and_finds_the_budget():
    study = linked_study(dealt_out(people()), schema=schema(), epsilon=4, delta=Fraction(1, 10**9))
    costs = costs_without_rows(study, run_of(study))
    assert 0 < costs["p0"] <= study.promise.budget


def test_a_replaced_person_moves_no_round_by_more_than_is_paid_for():
    outcome = fitted(people(), schema=schema(), epsilon=4, delta=Fraction(1, 10**9))
    rng = np.random.default_rng(3)
    rest = people().take(slice(1, 200))
    for step in outcome.steps:
        before = step.counted.answer(RowsInMemory(rest))
        for _ in range(10):
            one, other = (people().take(rng.integers(0, PEOPLE, 1)) for _ in range(2))
            moved = [step.counted.answer(RowsInMemory(each)) for each in (one, other)]
            change = (moved[0] - moved[1]).astype(object)
            assert np.abs(change).sum() <= step.sensitivity.l1
            assert (change**2).sum() <= step.sensitivity.l2_squared
        assert len(before) == step.cells


def test_few_values_or_many_people_do_not_descend():
    large = fitted(people(), schema=schema(), epsilon=10**6)
    assert not [step for step in large.steps if step.phase == "descent"]
