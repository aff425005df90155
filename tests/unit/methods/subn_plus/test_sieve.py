"""Looks at ever fewer pairs of a wide table, and the forest that is left of them."""

from fractions import Fraction

import numpy as np

from common.marginals import count
from common.methods.subn_plus.dependence import Departure, shrinkage, standing_out
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.plans import best_plan
from common.methods.subn_plus.requests import Agreements
from common.methods.subn_plus.script import measure
from common.methods.subn_plus.sieve import forest_of, in_detail
from common.privacy import sensitivity
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.study.script import ScriptRun
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import feed


def apart(squares, absolute=0) -> Departure:
    """Of a table of halves, in a noise of variance 1."""
    return Departure(Fraction(squares), Fraction(1), (2, 2), Fraction(absolute))


def sieved(sizes, rows):
    promise = Promise(Fraction(1), Fraction(1, 10**9))
    return PublicFacts(sizes=tuple(sizes), parties=("a", "b"), rows=rows, promise=promise)


def test_a_second_look_is_at_the_strongest_pairs_that_noise_does_not_explain():
    found = {(0, 1): apart(9), (0, 2): apart(4), (1, 2): apart(1), (2, 3): apart(25)}
    assert standing_out(found | {(1, 3): apart(0)}, 5) == ((0, 1), (0, 2), (1, 2), (2, 3))
    assert standing_out(found, 2) == ((0, 1), (2, 3))
    assert standing_out({(0, 1): apart(-1)}, 4) == ()


def test_a_sieve_keeps_planted_pairs_of_a_wide_small_table():
    edges = [(a, a + 5) for a in range(0, 60, 13)]
    rng = np.random.default_rng(9)
    columns = [rng.integers(0, 2, 8_000) for _ in range(69)]
    for parent, child in edges:
        columns[child] = columns[parent] ^ (rng.random(8_000) < 0.05)
    table = Codes.from_columns([*columns, rng.integers(0, 9, 8_000)], (*[2] * 69, 9))
    given = sieved(table.sizes, table.rows)
    assert best_plan(given).name == "sieve"
    plan = ScriptRun(measure(given))
    steps = feed(plan, table, SeededRandomSource("sieve"))
    assert steps[:4] == ["margins", "correlations", "second look", "third look"]
    assert steps[-1] == "pairs"
    model = plan.model()
    made = model.sample(table.rows, SeededRandomSource(2))
    off = [
        np.abs(real - own).sum() / 2 / table.rows
        for real, own in zip(count(table, edges), count(made, edges), strict=True)
    ]
    assert np.mean(off) < 0.15  # independence is at .45


def test_one_look_that_sees_nothing_does_not_lose_all_pairs_of_a_wide_table():
    given = sieved([9] * 40, 8_000)
    assert best_plan(given).name == "contrasts"
    plan, names, spent = ScriptRun(measure(given)), [], Fraction(0)
    while (step := plan.step()) is not None:
        names.append(step.name)
        spent += step.costs["a"]
        answer = np.full(step.request.cells, 890)
        if isinstance(step.request, Agreements):
            answer = np.full(step.request.cells, 4_000)  # by chance, if halves are even
            answer[0] += 1_200 if names[-1] == "look" else 2_500
        plan.advance(answer)
    assert names[:2] == ["margins", "look"]
    assert names[-4:] == ["second look", "third look", "margins again", "pairs"]
    assert given.budget * Fraction(999, 1000) < spent <= given.budget


def test_a_few_dependent_pairs_of_many_columns_are_sieved_though_the_look_sees_them():
    given = sieved([9] * 40, 8_000)
    names = []
    for clear in (1, 100):
        plan, steps = ScriptRun(measure(given)), []
        while (step := plan.step()) is not None:
            steps.append(step.name)
            answer = np.full(step.request.cells, 890)
            if isinstance(step.request, Agreements):
                answer = np.full(step.request.cells, 4_000)
                answer[:clear] += 3_000
            plan.advance(answer)
        names.append(steps)
    assert "third look" in names[0]
    assert "correlations" in names[1]


def test_a_column_of_which_a_copy_would_not_be_seen_is_in_no_look():
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 9, 8_000) for _ in range(69)]
    rare = (rng.random(8_000) < 0.02).astype(int)
    table = Codes.from_columns([*columns, rare], (*[9] * 69, 2))
    plan = ScriptRun(measure(sieved(table.sizes, table.rows)))
    while plan.step().name != "correlations":
        plan.advance(plan.step().request.answer(RowsInMemory(table)))
    assert plan.step().request.cut == tuple(range(69))
    assert plan.step().sensitivity == sensitivity.agreements(69)


def test_what_is_within_noise_is_taken_off_and_strong_pairs_stay():
    assert shrinkage(apart(Fraction(21, 4))) == 0  # 2.5 deviations
    assert shrinkage(apart(24)) == Fraction(3, 4)
    assert shrinkage(apart(-1)) == 0


def test_a_sieve_costs_the_budget_and_no_more_whatever_the_noise():
    for seed in range(3):
        given = sieved([2, 3, 5, 2] * 12, 8_000)
        plan, twin = (ScriptRun(measure(given)) for _ in range(2))
        rng, spent = np.random.default_rng(seed), Fraction(0)
        spread = (0, 300, 3_000)[seed]  # nothing stands out, some pairs do, all do
        while (step := plan.step()) is not None:
            assert step.canonical == twin.step().canonical
            if isinstance(step.request, Agreements):
                assert step.sensitivity == step.request.sensitivity
            spent += step.costs["a"]
            noisy = 4_000 + rng.integers(-spread, spread + 1, step.request.cells)
            plan.advance(noisy)
            twin.advance(noisy)
        assert given.budget * Fraction(999, 1000) < spent <= given.budget


def test_a_forest_has_what_is_more_than_noise_and_tables_only_of_strong_pairs():
    found = {
        (0, 1): apart(900, 60),
        (1, 2): apart(100, 20),
        (0, 2): apart(50, 15),  # closes a circle
        (2, 3): apart(5, 5),  # within noise
    }
    assert forest_of(found, 70) == (((0, 1), (1, 2)), ((0, 1), (1, 2)))
    assert forest_of(found, 150) == (((0, 1), (1, 2)), ((0, 1),))  # at .19 and .06 of the rows
    given = sieved([2] * 40, 8_000)
    assert in_detail(given, ()) == 0
    assert in_detail(given, [(0, 1)]) == Fraction(1, 5)
    assert in_detail(given, [(0, 1)] * 9) == 1
