import json
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.bayes.postprocessing import onto_simplex
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.errors import LocalError
from common.marginals import count
from common.methods.registry import run_of
from common.methods.subn_plus.facts import PublicFacts, halves_noise
from common.methods.subn_plus.joined import JoinedModel
from common.methods.subn_plus.plans import (
    CLEAR_LOOK,
    HALVES,
    HALVES_BELOW,
    LOOK_NOISE,
    VIEWS,
    best_plan,
    look_fraction,
)
from common.methods.subn_plus.requests import Agreements
from common.methods.subn_plus.script import measure
from common.privacy import sensitivity
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema import Schema
from common.schema.codes import Codes
from common.study.document import Study
from common.study.members import Member
from common.study.script import ScriptRun
from parley.simulation.in_process import RowsInMemory, run_study
from tests.harness.run_script import feed


def facts(sizes, rows=40_000, epsilon=Fraction(1), **more) -> PublicFacts:
    return PublicFacts(
        sizes=tuple(sizes), parties=("a", "b"), rows=rows, promise=Promise(epsilon), **more
    )


def pair_distance(real: Codes, other: Codes) -> float:
    pairs = list(combinations(range(real.width), 2))
    return float(
        np.mean(
            [
                0.5 * np.abs(p / real.rows - q / other.rows).sum()
                for p, q in zip(count(real, pairs), count(other, pairs), strict=True)
            ]
        )
    )


def independent_columns(table: Codes, epsilon: Fraction, source: SeededRandomSource) -> Codes:
    """The floor: noisy histograms, nothing else."""
    scale = 2 * table.width / epsilon
    rng = np.random.default_rng(int(source.words(1)[0]))
    columns = []
    for (histogram,) in ([h] for h in count(table, [(a,) for a in range(table.width)])):
        noisy = histogram + discrete_laplace(scale, len(histogram), source)
        share = onto_simplex(noisy.astype(float), total=table.rows) / table.rows
        columns.append(rng.choice(len(share), table.rows, p=share / share.sum()))
    return Codes.from_columns(columns, table.sizes)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.integers(1, 10**6),
    st.fractions(Fraction(1, 100), 8),
    st.integers(0, 2**32),
)
def test_the_steps_cost_exactly_epsilon_whatever_the_noise(sizes, rows, epsilon, seed):
    plan, twin = (ScriptRun(measure(facts(sizes, rows, epsilon))) for _ in range(2))
    rng = np.random.default_rng(seed)
    spent, names = Fraction(0), []
    while (step := plan.step()) is not None:
        assert step.canonical == twin.step().canonical
        if isinstance(step.request, Agreements):
            cut = sum(size > 1 for size in sizes)
            assert step.sensitivity == sensitivity.agreements(cut + step.request.alone)
        else:
            assert step.sensitivity == sensitivity.histograms(len(step.tables))
        assert dict(step.costs) == dict.fromkeys(("a", "b"), step.sensitivity.l1 / step.law.scale)
        spent += step.costs["a"]
        if step.name.endswith(" of large domains"):
            assert step.name == f"{names[-1]} of large domains"
        else:
            names.append(step.name)
        noisy = rng.integers(-rows, 2 * rows + 1, step.request.cells)
        plan.advance(noisy)
        twin.advance(noisy)
    assert spent == epsilon
    assert names in (
        ["margins"],
        ["correlations"],
        ["margins", "crossed"],
        ["margins", "correlations", "crossed", "pairs"],
        ["margins", "correlations", "crossed", "margins again"],
        ["first margins", "look", "margins"],
        ["first margins", "look", "margins", "correlations", "pairs"],
        ["first margins", "look", "margins", "correlations", "margins again"],
    )


def test_small_domains_are_asked_for_views_only():
    plan = best_plan(facts([2] * 16))
    assert [ask.what for ask in plan.asks] == [VIEWS]
    plan = ScriptRun(measure(facts([2] * 16)))
    assert plan.step().name == "correlations"
    assert len(plan.step().request.sets) == 20


def test_a_pair_in_detail_is_joined_with_the_views_that_show_it_too():
    rng = np.random.default_rng(5)
    first = rng.integers(0, 9, 3000)
    table = Codes.from_columns([first, first // 2], (9, 5))
    plan, source = ScriptRun(measure(facts(table.sizes, table.rows))), SeededRandomSource("two")
    names = feed(plan, table, source)
    assert names == ["first margins", "look", "margins", "correlations", "pairs"]
    drawn = plan.model().sample(table.rows, source)
    (met,), (real,) = count(drawn, [(0, 1)]), count(table, [(0, 1)])
    assert np.abs(met - real).sum() / 2 < 0.03 * table.rows


def test_views_see_large_domains_in_groups():
    plan = ScriptRun(measure(facts([20, 3, 7, 4], rows=2000)))
    for name in ("first margins", "look", "margins"):
        assert plan.step().name == name
        every_row_agrees = np.full(plan.step().request.cells, 2000 * (name == "look"))
        plan.advance(every_row_agrees // (1 + (np.arange(len(every_row_agrees)) >= 6)))
    assert plan.step().name == "correlations"
    assert max(plan.step().request.sizes) <= 6
    assert plan.step().request.sizes[1] == 3


def test_where_three_groups_drown_and_two_do_not_pairs_are_looked_at_in_halves():
    given = facts([16] * 15, epsilon=Fraction(1, 5))
    plan = best_plan(given)
    assert plan.name == "halves"
    assert halves_noise(given, plan.cost(HALVES)) <= HALVES_BELOW[1][0]
    plan = ScriptRun(measure(given))
    plan.advance(np.full(plan.step().request.cells, 2500, dtype=np.int64))
    step = plan.step()
    assert step.name == "correlations"
    assert step.request == Agreements(((0,) * 8 + (1,) * 8,) * 15)
    assert step.sensitivity.l1 == 7 * 8


def test_what_halves_hide_crossed_tables_tell():
    """Answers share a "not known", their last and rarest value: no half shows it."""
    rng = np.random.default_rng(7)
    unknown = rng.random(5000) < 0.2
    answers = [np.where(unknown, 2, rng.integers(0, 2, 5000)) for _ in range(8)]
    others = [rng.integers(0, 9, 5000) for _ in range(4)]
    table = Codes.from_columns([*answers, *others], (3,) * 8 + (9,) * 4)
    given = facts(table.sizes, table.rows)
    assert best_plan(given).name == "halves"
    plan = ScriptRun(measure(given))
    names = feed(plan, table, SeededRandomSource("unknown"))
    assert names[:3] == ["margins", "correlations", "crossed"]
    made = plan.model().sample(table.rows, SeededRandomSource("rows"))
    known = [np.array(column) == 2 for column in made.columns[:8]]
    together = np.mean([(a & b).mean() for a, b in combinations(known, 2)])
    assert 0.12 < together < 0.28  # .2 of the rows; .04 if answers were independent


def one_determines_another(rows: int) -> Codes:
    """Attribute 2 determines attribute 0, in no order of values; nothing else depends."""
    rng = np.random.default_rng(2)
    sizes = (16, 16, 16, 2, 9)
    columns = [rng.integers(0, size, rows) for size in sizes]
    columns[0] = np.random.default_rng(5).permutation(16)[columns[2]]
    return Codes.from_columns(columns, sizes)


def test_a_pair_that_depends_strongly_is_counted_in_full_detail_and_met():
    table = one_determines_another(40_000)
    plan, source = ScriptRun(measure(facts(table.sizes, table.rows))), SeededRandomSource("chosen")
    steps = []
    while (step := plan.step()) is not None:
        exact = step.request.answer(RowsInMemory(table))
        plan.advance(exact + step.law.draw(len(exact), source))
        steps.append(step)
    assert steps[-1].name == "pairs"
    assert steps[-1].request.sets == ((0, 2),)
    assert steps[-1].request.sizes == table.sizes
    drawn = plan.model().sample(table.rows, source)
    (met,) = count(drawn, [(0, 2)])
    (real,) = count(table, [(0, 2)])
    assert np.abs(met - real).sum() / 2 < 0.03 * table.rows
    assert pair_distance(table, drawn) < 0.03


def test_how_rows_are_split_among_parties_changes_nothing():
    table = one_determines_another(6000)
    by_value = [np.flatnonzero(table.columns[2] == value) for value in range(16)]
    plan = ScriptRun(measure(facts(table.sizes, table.rows)))
    while (step := plan.step()) is not None:
        parts = [step.request.answer(RowsInMemory(table.take(own))) for own in by_value]
        assert np.array_equal(sum(parts), step.request.answer(RowsInMemory(table)))
        plan.advance(sum(parts))


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
def test_where_no_pair_depends_the_margins_get_all_but_the_look(delta):
    rng = np.random.default_rng(3)
    table = Codes.from_columns([rng.integers(0, 16, 40_000) for _ in range(6)], (16,) * 6)
    given = replace(facts(table.sizes, table.rows), promise=Promise(Fraction(1), delta))
    plan, costs = ScriptRun(measure(given)), {}
    while (step := plan.step()) is not None:
        exact = step.request.answer(RowsInMemory(table))
        plan.advance(exact + step.law.draw(len(exact), SeededRandomSource(f"{step.name}, once")))
        costs[step.name] = step.costs["a"]
    assert sum(costs.values()) <= given.budget
    looked = costs.pop("look") / given.budget
    assert 0 < looked <= Fraction(16, 100)
    assert any("margins" in name for name in costs)
    assert len(costs) == 2
    made = plan.model().sample(table.rows, SeededRandomSource("rows"))
    floor = independent_columns(table, given.promise.epsilon, SeededRandomSource("floor"))
    assert pair_distance(table, made) < pair_distance(table, floor)


def of_one_factor(rows: int, strength: float) -> Codes:
    """Nine columns of eight values and two bits that lean on one hidden number."""
    rng = np.random.default_rng(9)
    hidden = rng.normal(size=rows)
    columns = []
    for values in (8,) * 9 + (2, 2):
        number = strength * hidden + (1 - strength**2) ** 0.5 * rng.normal(size=rows)
        columns.append(
            np.searchsorted(np.sort(number)[rows // values :: rows // values][: values - 1], number)
        )
    return Codes.from_columns(columns, (8,) * 9 + (2, 2))


def correlation(table: Codes) -> float:
    matrix = np.corrcoef(np.array(table.columns, dtype=float))
    return float(matrix[np.triu_indices(len(matrix), 1)].mean())


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
def test_a_look_that_sees_nothing_clearly_is_fitted_all_the_same(delta, monkeypatch):
    monkeypatch.setattr(sys.modules[measure.__module__], "depends", lambda *_: False)
    table, kept = of_one_factor(9000, 0.4), []
    epsilon = Fraction(1, 3) if delta else Fraction(1)
    given = replace(facts(table.sizes, table.rows), promise=Promise(epsilon, delta))
    for run in range(3):
        plan, source = ScriptRun(measure(given)), SeededRandomSource(f"weak {run}")
        names = feed(plan, table, source)
        assert "correlations" not in names
        assert "look" in names
        kept.append(correlation(plan.model().sample(table.rows, source)))
    assert np.mean(kept) > 0.25 * correlation(table)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
def test_a_look_costs_less_of_a_larger_budget_but_never_too_little_to_cut_halves(delta):
    sizes, moved = (16,) * 13, sensitivity.agreements(14)
    shares = []
    for epsilon in (Fraction(2, 5), Fraction(1), Fraction(4), Fraction(20)):
        given = replace(facts(sizes, 45_000), promise=Promise(epsilon, delta))
        shares.append(look_fraction(given))
        assert given.deviation(given.budget * shares[-1], moved) <= LOOK_NOISE * given.rows
        assert look_fraction(replace(given, dependent=True)) == 0
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == (Fraction(1, 100) if delta else CLEAR_LOOK)


def test_a_strong_pair_of_a_small_table_is_not_missed():
    """With a hundredth of the budget for the look, two of three such releases lost the pair."""
    rng = np.random.default_rng(5)
    first = rng.choice(16, 5000, p=np.arange(16, 0, -1) / 136)
    table = Codes.from_columns(
        [first, rng.permutation(16)[first], *rng.integers(0, 16, (2, 5000))], (16,) * 4
    )
    given = replace(facts(table.sizes, table.rows), promise=Promise(Fraction(4)))
    for run in range(6):
        plan = ScriptRun(measure(given))
        assert "correlations" in feed(plan, table, SeededRandomSource(f"pair {run}"))


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1)])
def test_views_of_independent_bits_are_hardly_worse_than_bits_alone(epsilon):
    rng = np.random.default_rng(4)
    bits = [(rng.random(20_000) < share).astype(int) for share in np.linspace(0.1, 0.9, 9)]
    table = Codes.from_columns(bits, (2,) * 9)
    plan = ScriptRun(measure(replace(facts(table.sizes, table.rows), promise=Promise(epsilon))))
    assert feed(plan, table, SeededRandomSource("bits")) == ["correlations"]
    made = plan.model().sample(table.rows, SeededRandomSource("rows"))
    floor = independent_columns(table, epsilon, SeededRandomSource("floor"))
    assert pair_distance(table, made) < 1.5 * pair_distance(table, floor)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
def test_a_dependence_that_no_half_shows_is_found_where_pairs_are_clear(delta):
    """The second column is the first one's distance from the middle."""
    rng = np.random.default_rng(8)
    first = rng.integers(0, 10, 40_000)
    columns = [first, abs(2 * first - 9) // 2, rng.integers(0, 3, 40_000)]
    table = Codes.from_columns(columns, (10, 5, 3))
    plan = ScriptRun(
        measure(replace(facts(table.sizes, 40_000), promise=Promise(Fraction(4), delta)))
    )
    feed(plan, table, SeededRandomSource("square"))
    made = plan.model().sample(40_000, SeededRandomSource("rows"))
    assert pair_distance(table, made) < 0.03


def test_where_margins_get_everything_different_blocks_are_independent():
    rng = np.random.default_rng(6)
    first = rng.integers(0, 2, 3000)
    columns = [first ^ (rng.random(3000) < 0.1) for _ in range(6)]
    columns += [rng.integers(0, 20, 3000) for _ in range(9)]
    table = Codes.from_columns(columns, (2,) * 6 + (20,) * 9)
    plan = ScriptRun(measure(facts(table.sizes, table.rows)))
    assert feed(plan, table, SeededRandomSource("blocks")) == ["margins"]
    model = plan.model()
    assert isinstance(model, JoinedModel)
    assert len(model.mixture.weights) == 1
    assert set(model.joined.sets) == set(best_plan(facts(table.sizes, table.rows)).blocks)
    assert max(map(len, best_plan(facts(table.sizes, table.rows)).blocks)) > 1
    block = max(best_plan(facts(table.sizes, table.rows)).blocks, key=len)
    made = model.sample(table.rows, SeededRandomSource("rows"))
    inside, whole = list(combinations(block, 2)), table.rows
    for real, other in zip(count(table, inside), count(made, inside), strict=True):
        assert np.abs(real - other).sum() / 2 < 0.1 * whole


@pytest.mark.parametrize("epsilon", [10**3, 10**6, 10**9])
def test_budgets_that_hide_nothing_are_fitted_too(epsilon):
    rng = np.random.default_rng(4)
    first = rng.integers(0, 12, 500)
    table = Codes.from_columns([first, first // 2, rng.integers(0, 3, 500)], (12, 6, 3))
    plan = ScriptRun(measure(facts(table.sizes, rows=table.rows, epsilon=Fraction(epsilon))))
    feed(plan, table, SeededRandomSource("clear"))
    made = plan.model().sample(table.rows, SeededRandomSource("rows"))
    assert pair_distance(table, made) < 0.1


def test_what_is_not_the_current_result_is_refused_and_changes_nothing():
    plan = ScriptRun(measure(facts([2] * 5)))
    before = plan.step()
    for wrong in (b"choice", np.zeros(3, dtype=np.int64)):
        with pytest.raises(LocalError, match=r"not a result|32 cells"):
            plan.advance(wrong)
    assert plan.step() is before
    with pytest.raises(LocalError, match="no model before"):
        plan.model()
    plan.advance(np.zeros(before.request.cells, dtype=np.int64))
    with pytest.raises(LocalError, match="not a result"):
        plan.advance(np.zeros(before.request.cells, dtype=np.int64))


@pytest.mark.parametrize("sizes", [(7,), (1, 1), (1, 300), (2, 2)])
def test_odd_tables_work(sizes):
    rows = 5000
    rng = np.random.default_rng(4)
    table = Codes.from_columns([rng.integers(0, s, rows) for s in sizes], sizes)
    plan = ScriptRun(measure(facts(sizes, rows, Fraction(2))))
    feed(plan, table, SeededRandomSource("odd"))
    model = plan.model()
    drawn = model.sample(100, SeededRandomSource(1))
    assert (drawn.rows, drawn.sizes) == (100, sizes)
    json.dumps(model.as_json())


# Mean 2-way total variation distance over these seeds, plus a margin: regressions stand out.
@pytest.mark.parametrize(
    ("name", "epsilon", "most", "runs"),
    [
        ("nltcs", Fraction(1, 10), 0.045, 1),
        pytest.param("br2000", Fraction(2, 5), 0.040, 1, marks=pytest.mark.slow),
        ("adult", Fraction(1, 10), 0.115, 4),  # margins only, so they are close
        pytest.param("adult", Fraction(1, 5), 0.085, 1, marks=pytest.mark.slow),
        ("adult", Fraction(4, 5), 0.048, 1),
    ],
)
def test_real_tables_are_described_better_than_by_independent_columns(
    shared_data, name, epsilon, most, runs
):
    sizes = tuple(json.loads((shared_data / f"{name}-domain.json").read_text()).values())
    frame = pd.read_csv(shared_data / f"{name}.csv")
    table = Codes.from_columns([frame[column].to_numpy() for column in frame], sizes)
    source = SeededRandomSource(f"{name} {epsilon}")
    errors, floors = [], []
    for _ in range(runs):
        plan = ScriptRun(measure(facts(sizes, table.rows, epsilon)))
        feed(plan, table, source)
        errors.append(pair_distance(table, plan.model().sample(table.rows, source)))
        floors.append(pair_distance(table, independent_columns(table, epsilon, source)))
    assert np.mean(errors) < min(1.02 * np.mean(floors), most)  # a few runs tell no less apart


def test_the_plan_runs_on_the_real_roles_and_charges_exactly_epsilon():
    source = SeededRandomSource("roles")
    attributes = "".join(
        f'[[attribute]]\nname = "{name}"\nkind = "categorical"\nvalues = {list(values)}\n'
        for name, values in {"a": "xy", "b": "uvw", "c": "abcdefghij"}.items()
    )
    schema = Schema.from_toml(attributes)
    rng = np.random.default_rng(8)
    shared = rng.integers(0, 2, 6000)
    whole = Codes.from_columns([shared, shared + rng.integers(0, 2, 6000), 5 * shared], (2, 3, 10))
    tables = {name: whole.take(slice(i, None, 3)) for i, name in enumerate(("n", "e", "s"))}
    identities = {name: Identity.generate(source) for name in tables}
    members = tuple(
        Member(name=name, rows=tables[name].rows, identity=identity.public)
        for name, identity in identities.items()
    )
    study = Study(
        name="test",
        schema=schema,
        members=members,
        epsilon=Fraction(3, 2),
        aggregation=Aggregation.MASKED,
    )

    run_ = run_study(study, run_of, tables, identities, source=source)
    assert list(run_.traffic)[-3:-1] == ["margins", "correlations"]
    for charges in run_.charges.values():
        assert sum(charge.epsilon for charge in charges) == Fraction(3, 2)
    assert pair_distance(whole, run_.model.sample(6000, source)) < 0.1
