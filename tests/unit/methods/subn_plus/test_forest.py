"""A forest of pairs for wide tables: which pairs, which model, at what cost."""

import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.marginals import count
from common.methods.network_model import NetworkModel
from common.methods.subn_plus.dependence import (
    Departure,
    candidates,
    departure,
    spanning_forest,
)
from common.methods.subn_plus.facts import PublicFacts, pair_groups
from common.methods.subn_plus.joined import JoinedModel
from common.methods.subn_plus.losses import Measurement
from common.methods.subn_plus.models import fit_forest, pairs_within
from common.methods.subn_plus.plans import best_plan
from common.methods.subn_plus.requests import Agreements
from common.methods.subn_plus.script import measure
from common.privacy import sensitivity
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.study.script import ScriptRun
from tests.harness.run_script import feed

CLEAR = Fraction(10**6)


def apart(squares) -> Departure:
    """Of a table of halves, in a noise of variance 1."""
    return Departure(Fraction(squares), Fraction(1), (2, 2))


def has_circle(edges) -> bool:
    trees: list[set[int]] = []
    for edge in edges:
        met = [tree for tree in trees if tree & set(edge)]
        if any(set(edge) <= tree for tree in met):
            return True
        trees = [tree for tree in trees if tree not in met] + [set(edge).union(*met)]
    return False


def facts(sizes, rows, epsilon=Fraction(1)) -> PublicFacts:
    return PublicFacts(sizes=tuple(sizes), parties=("a", "b"), rows=rows, promise=Promise(epsilon))


def bits(columns: int, rows: int, edges, seed: int = 0) -> Codes:
    """Fair bits; the child of an edge differs from its parent in a twentieth of the rows."""
    rng = np.random.default_rng(seed)
    made = [rng.integers(0, 2, rows) for _ in range(columns)]
    for parent, child in edges:
        made[child] = made[parent] ^ (rng.random(rows) < 0.05)
    return Codes.from_columns(made, (2,) * columns)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 5), st.data())
def test_the_forest_is_the_heaviest_set_of_pairs_without_a_circle(attributes, data):
    pairs = list(combinations(range(attributes), 2))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(pairs), max_size=len(pairs)))
    found = {pair: apart(weight) for pair, weight in zip(pairs, weights, strict=True)}
    best = max(
        sum(found[pair].strength for pair in chosen)
        for size in range(len(pairs) + 1)
        for chosen in combinations(pairs, size)
        if not has_circle(chosen)
    )
    forest = spanning_forest(found)
    assert not has_circle(forest)
    assert sum(found[pair].strength for pair in forest) == best


def test_candidates_are_two_forests_of_clear_pairs():
    found = {pair: apart(CLEAR + sum(pair)) for pair in combinations(range(5), 2)}
    found |= {(a, 9): apart(7) for a in range(5)}  # less than three deviations
    chosen = candidates(found)
    assert chosen[:4] == spanning_forest({p: own for p, own in found.items() if own.clear})
    assert (
        len(set(chosen)) == len(chosen) == 4 + 3
    )  # the first is a star: what is left has four attributes
    assert not has_circle(chosen[4:])
    assert all(found[pair].clear for pair in chosen)
    assert candidates({(0, 1): apart(0)}) == ()


@pytest.mark.parametrize(("deviations", "seen"), [(2.9, False), (3.2, True)])
def test_a_pair_of_halves_is_clear_from_three_deviations_on(deviations, seen):
    assert apart(Fraction(deviations) ** 2 - 1).clear is seen


@pytest.mark.parametrize(("high", "wide"), [(2, 2), (3, 5), (6, 6)])
def test_noise_is_hardly_ever_clear_and_five_deviations_are(high, wide):
    rng = np.random.default_rng(3)
    rows, variance = 10**6, Fraction(1000**2)
    signal = np.zeros((high, wide))
    signal[:2, :2] = [[1, -1], [-1, 1]]
    freedom = (high - 1) * (wide - 1)
    signal *= 1000 * np.sqrt(5 * np.sqrt(2 * freedom) + 10) / 2
    clear = {
        name: np.mean(
            [
                departure(
                    np.rint(rows / (high * wide) + there + rng.normal(0, 1000, (high, wide)))
                    .astype(np.int64),
                    (1,) * high, (1,) * wide, variance, rows,
                ).clear
                for _ in range(600)
            ]
        )
        for name, there in {"noise": 0 * signal, "signal": signal}.items()
    }  # fmt: skip
    assert clear["noise"] < 0.015
    assert clear["signal"] > 0.6


def test_pairs_are_summed_out_of_larger_tables_with_their_noise():
    counts = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    maps = (None, np.array([0, 1, 2, 2]), None)
    alone = Measurement((4, 6), (None, None), np.ones((4, 5)), 1.0)
    found = pairs_within([Measurement((4, 1, 7), maps, counts, 2.0), alone])
    assert set(found) == {(1, 4), (1, 7), (4, 7), (4, 6)}
    assert np.array_equal(found[1, 4].counts, counts.sum(axis=2).T)
    assert found[1, 4].variance == 2.0 * 4
    assert found[1, 4].groupings[0] is maps[1]
    assert found[4, 6].counts is not None
    assert found[4, 6].variance == 1.0


def joint_of(model: NetworkModel, sizes) -> np.ndarray:
    """Every cell's probability, by multiplying the conditionals out."""
    joint = np.ones(sizes)
    cells = np.indices(sizes)
    for pair, table in zip(model.network.pairs, model.conditionals, strict=True):
        parent = cells[pair.parents[0].attribute] if pair.parents else np.zeros(sizes, dtype=int)
        joint *= table[parent, cells[pair.child]]
    return joint


def test_a_tree_comes_back_from_its_own_tables():
    sizes, edges = (2, 3, 2, 4, 3), ((1, 2), (0, 2), (2, 4))  # attribute 3 stands alone
    rng = np.random.default_rng(5)
    truth = np.ones(sizes)
    for a, b in edges:
        shape = [sizes[x] if x in (a, b) else 1 for x in range(5)]
        truth = truth * rng.uniform(0.2, 1, shape)
    truth = truth * rng.uniform(0.2, 1, (1, 1, 1, 4, 1))
    truth /= truth.sum()

    def margin(*kept):
        return truth.sum(axis=tuple(a for a in range(5) if a not in kept))

    rows = 10**6
    tables = {
        (a, b): Measurement((a, b), (None, None), rows * margin(a, b), 0.01)
        for a, b in ((0, 2), (1, 2), (2, 4), (0, 1))
    }
    weight = {(0, 2): 9, (1, 2): 8, (2, 4): 7, (0, 1): 6}
    found = {pair: apart(CLEAR * weight[pair]) for pair in tables}
    margins = [margin(a) for a in range(5)]
    model = fit_forest(margins, rows, found, tables, price=1e-9)
    assert sorted(tuple(sorted(edge)) for edge in model.network.edges) == [(0, 2), (1, 2), (2, 4)]
    assert np.abs(joint_of(model, sizes) - truth).sum() < 0.005  # independence has a share of .001


def test_groups_of_values_share_what_the_margins_say():
    first, second = np.array([0.1, 0.3, 0.0, 0.6]), np.array([0.5, 0.5])
    map_of = np.array([0, 0, 1, 1])
    table = Measurement((0, 1), (map_of, None), np.array([[400.0, 0.0], [100.0, 500.0]]), 0.01)
    found = {(0, 1): apart(CLEAR)}
    model = fit_forest([first, second], 1000, found, {(0, 1): table}, price=1e-9)
    joint = joint_of(model, (4, 2))
    assert joint.sum(axis=1) == pytest.approx(first, abs=1e-4)
    assert joint.sum(axis=0) == pytest.approx(second, abs=1e-4)
    assert joint[1] == pytest.approx(3 * joint[0])
    assert joint[3, 1] == pytest.approx(0.5, abs=0.01)


@settings(deadline=None, max_examples=6)
@given(
    st.lists(st.integers(2, 8), min_size=33, max_size=40),
    st.fractions(Fraction(1, 10), 8),
    st.integers(0, 2**32),
)
def test_wide_plans_cost_exactly_epsilon_whatever_the_noise(sizes, epsilon, seed):
    rows = 10**8
    plan, twin = (ScriptRun(measure(facts(sizes, rows, epsilon))) for _ in range(2))
    rng = np.random.default_rng(seed)
    spent = Fraction(0)
    while (step := plan.step()) is not None:
        assert step.canonical == twin.step().canonical
        if isinstance(step.request, Agreements):
            assert step.sensitivity == sensitivity.agreements(sum(size > 1 for size in sizes))
        else:
            assert step.sensitivity == sensitivity.histograms(len(step.tables))
        spent += step.costs["a"]
        noisy = rng.integers(-rows, 2 * rows + 1, step.request.cells)
        plan.advance(noisy)
        twin.advance(noisy)
    assert spent == epsilon
    model = plan.model()
    assert json.loads(json.dumps(model.as_json())) == twin.model().as_json()
    assert model.sample(10, SeededRandomSource(1)).sizes == tuple(sizes)


def test_planted_pairs_are_found_and_others_are_not():
    edges = [(a, a + 5) for a in range(0, 50, 3)]
    table = bits(60, 60_000, edges)
    plan = ScriptRun(measure(facts(table.sizes, table.rows)))
    assert best_plan(facts(table.sizes, table.rows)).name == "forest"
    assert feed(plan, table, SeededRandomSource("planted")) == ["margins", "correlations", "pairs"]
    model = plan.model()
    assert isinstance(model, NetworkModel)
    found = {tuple(sorted(edge)) for edge in model.network.edges}
    assert set(edges) <= found
    assert len(found - set(edges)) <= 3
    made = model.sample(table.rows, SeededRandomSource(2))
    for real, own in zip(count(table, edges), count(made, edges), strict=True):
        assert np.abs(real - own).sum() / 2 / table.rows < 0.06  # independence is at .45


def test_without_dependence_the_columns_stay_independent():
    table = bits(60, 60_000, [])
    names = set()
    for seed in range(2):
        plan = ScriptRun(measure(facts(table.sizes, table.rows)))
        names |= set(feed(plan, table, SeededRandomSource(f"nothing {seed}")))
        model = plan.model()
        assert isinstance(model, JoinedModel) or len(model.network.edges) <= 3
    assert names <= {"margins", "correlations", "pairs", "margins again"}


def test_where_noise_names_no_pair_the_margins_are_asked_again():
    plan = ScriptRun(measure(facts([2] * 60, 60_000)))
    for name in ("margins", "correlations", "margins again"):
        assert plan.step().name == name
        evenly = 30_000 if name == "correlations" else 15_000  # blocks are pairs
        plan.advance(np.full(plan.step().request.cells, evenly))
    assert isinstance(plan.model(), JoinedModel)


def test_large_domains_are_grouped_as_far_as_their_tables_bear():
    many = facts([50] * 60, 300_000)
    assert best_plan(many).name == "forest"
    assert [pair_groups(many, Fraction(1, 5), tables) for tables in (1, 60, 10**6)] == [65, 8, 2]
    assert best_plan(facts([50] * 60, 30_000)).name != "forest"
    assert best_plan(facts([50] * 20, 300_000)).name != "forest"  # a mixture sees more


def test_a_forest_has_no_edge_whose_table_the_model_could_not_hold():
    sizes = (2000, 2000, *[7] * 33)
    given = PublicFacts(
        sizes=sizes, parties=("a", "b"), rows=10_000_000, promise=Promise(Fraction(4))
    )
    assert best_plan(given).name == "forest"
    plan = ScriptRun(measure(given))
    while plan.step().name != "pairs":
        plan.advance(np.zeros(plan.step().cells, np.int64))  # halves that agree in no row
    pairs = plan.step().request.sets
    assert (0, 1) not in pairs
    assert any(0 in pair for pair in pairs)
    assert any(1 in pair for pair in pairs)


def test_tables_of_a_forest_are_limited_however_many_rows_there_are():
    facts = PublicFacts(sizes=(9,) * 40, parties=("a",), rows=10**10, promise=Promise(Fraction(10)))
    assert pair_groups(facts, Fraction(2), 78) == 100
