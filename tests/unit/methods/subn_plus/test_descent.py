"""Counts that descend a hierarchy: which cells come of it, what is asked, and what it costs."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from common.methods.registry import run_of
from common.methods.subn_plus import descent
from common.methods.subn_plus.budget import PublicFacts
from common.methods.subn_plus.descent import Tree, descend, is_heavy, spread
from common.privacy.promise import promise_of
from common.privacy.randomness import SeededRandomSource
from common.release.verify import verify
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.hierarchy import Hierarchy, Node, leaf
from common.study.accounting import account
from common.study.script import Total
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import drive, study_of

SIZE = 320  # four groups of eight groups of ten values


def hierarchy_text():
    groups = [
        f"G{g} = {{ "
        + ", ".join(f"g{s} = {[f'v{v}' for v in range(10 * s, 10 * s + 10)]}" for s in part)
        + " }"
        for g, part in enumerate(np.arange(32).reshape(4, 8).tolist())
    ]
    return f"hierarchy = {{ {', '.join(groups)} }}"


SCHEMA = Schema.from_toml(
    f'[[attribute]]\nname = "code"\nkind = "categorical"\nmissing = true\n'
    f"values = {[f'v{v}' for v in range(SIZE)]}\n{hierarchy_text()}\n"
    '[[attribute]]\nname = "sex"\nkind = "categorical"\nvalues = ["F", "M"]\n'
    '[[attribute]]\nname = "band"\nkind = "categorical"\nvalues = ["a", "b", "c"]\n'
)


def tables(rows=(500, 400, 600), seed=0):
    """Half of all rows have value 7, a third are in the second group of ten."""
    rng = np.random.default_rng(seed)
    made = {}
    for party, number in enumerate(rows):
        kind = rng.random(number)
        code = np.where(kind < 0.5, 7, rng.integers(10, 20, number))
        code = np.where(kind > 0.85, rng.integers(0, SIZE + 1, number), code)
        columns = [code, (code == 7).astype(int), rng.integers(0, 3, number)]
        made[f"p{party}"] = Codes.from_columns(columns, SCHEMA.sizes)
    return made


def study(own, **changes):
    return study_of(own, **({"schema": SCHEMA, "method": "floor"} | changes))


@st.composite
def trees(draw):
    """Trees of up to four levels, with values in any order and leaves at any depth."""
    number = 0

    def node(depth):
        nonlocal number
        if depth and (depth == 4 or draw(st.booleans())):
            number += 1
            return number - 1
        return [node(depth + 1) for _ in range(draw(st.integers(2, 4)))]

    shape = node(0)
    order = draw(st.permutations(range(number)))

    def made(own):
        return leaf("", order[own]) if isinstance(own, int) else Node("", tuple(map(made, own)))

    return Tree.of(Hierarchy(made(shape)))


def descended(tree, counts_of):
    """Drive the descent of attribute 1 with made-up counts."""
    facts = PublicFacts(
        sizes=(2, tree.size, 5), parties=("p",), rows=4000, promise=promise_of(Fraction(1))
    )
    script = descend(facts, {1: tree})
    rounds, step = [], next(script)
    while True:
        (table,) = step.tables
        assert table.variables == (1,)
        counts = counts_of(table.cells)
        rounds.append((step, counts))
        try:
            step = script.send(Total(counts))
        except StopIteration as end:
            return rounds, *end.value


def cell_by_definition(tree, rounds):
    """Of each value: its heaviest known node, found from the published sums alone."""
    asked = {}  # the values of a node -> its noisy count and variance
    first = set()
    for number, (step, counts) in enumerate(rounds):
        groups = np.array(step.request.groups[1])
        for group in range(1, groups.max() + 1):
            node = frozenset(np.flatnonzero(groups == group).tolist())
            asked[node] = (int(counts[group]), step.law.nominal_variance)
            if number == 0:
                first.add(node)
    children = {
        frozenset(tree.codes[n]): [frozenset(tree.codes[c]) for c in tree.children[n]]
        for n in range(len(tree.codes))
    }

    def opened(node):
        return any(child in asked for child in children[node])

    def left(node):
        """Values below an opened node that are in no cell of a child, and their count."""
        values, total, variance = set(), 0, 0
        for child in children[node]:
            if not is_heavy(*asked[child]):
                part, (count, noise) = child, asked[child]
            elif opened(child) and not own_rest(child):
                part, count, noise = left(child)
            else:
                continue
            values |= part
            total, variance = total + count, variance + noise
        return values, total, variance

    def own_rest(node):
        _, total, variance = left(node)
        return node in first or is_heavy(total, variance)

    cells = set()
    for node in asked:
        if not opened(node) and (node in first or is_heavy(*asked[node])):
            cells.add(node)
        elif opened(node) and own_rest(node):
            cells.add(frozenset(left(node)[0]))
    return cells - {frozenset()}


@given(trees(), st.integers(0, 2**32))
def test_cells_are_what_the_published_sums_say(tree, seed):
    rng = np.random.default_rng(seed)
    rounds, found, left = descended(
        tree, lambda cells: (rng.integers(-60, 60, cells) * rng.integers(1, 30)).astype(np.int64)
    )
    cells = np.array(found[1])
    made = {frozenset(np.flatnonzero(cells == c).tolist()) for c in range(cells.max() + 1)}
    assert made == cell_by_definition(tree, rounds)
    assert sorted(v for each in made for v in each) == list(range(tree.size))
    spent = sum(step.law.cost(step.sensitivity) for step, _ in rounds)
    assert spent <= 1 - left
    assert left >= 1 / 2


def test_heavy_values_are_found_and_light_ones_stay_together():
    own = tables()
    plan = study(own, epsilon=Fraction(3))
    model = drive(run_of(plan), plan, own).model
    cells = np.array(model.parts[0])
    assert (cells == cells[7]).sum() == 1
    assert all((cells == cells[v]).sum() < 10 for v in range(10, 20))
    assert cells.max() + 1 < 60
    assert (cells == cells[200]).sum() >= 10
    drawn = model.sample(20_000, SeededRandomSource(1))
    assert drawn.sizes == SCHEMA.sizes
    assert abs((drawn.columns[0] == 7).mean() - 0.5) < 0.05


@pytest.mark.parametrize("method", ["floor", "subn+"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)])
@pytest.mark.parametrize("per_person", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_replaced_row_moves_no_step_by_more_than_it_says(method, delta, per_person):
    own = tables()
    plan = study(own, method=method, delta=delta, rows_per_person=per_person)
    driven = drive(run_of(plan), plan, own)
    assert driven.steps[0].phase == "descent"
    assert driven.steps[-1].phase != "descent"
    assert sum(step.phase == "descent" for step in driven.steps) >= 2
    before = own["p0"]
    rng = np.random.default_rng(5)
    for _ in range(10):
        changed = [column.copy() for column in before.columns]
        for row in rng.choice(before.rows, per_person, replace=False):
            for column, size in zip(changed, SCHEMA.sizes, strict=True):
                column[row] = rng.integers(size)
        after = Codes(tuple(changed), SCHEMA.sizes)
        for step in driven.steps:
            one, other = (step.request.answer(RowsInMemory(each)) for each in (before, after))
            moved = np.abs(one - other)
            assert moved.sum() <= step.sensitivity.l1
            assert (moved**2).sum() <= step.sensitivity.l2_squared
    spent = account(plan, driven.steps).spent("p0")
    assert Fraction(99, 100) * plan.promise.budget < spent <= plan.promise.budget


def test_who_drops_out_does_not_end_the_descent():
    own = tables()
    plan = study(own, epsilon=Fraction(3))
    run = run_of(plan)
    data = {name: RowsInMemory(each) for name, each in own.items()}
    source = SeededRandomSource(3)
    while (step := run.step()) is not None:
        if len(run.made) == 1:
            run.leave_out(["p2"])
            step = run.step()
        exact = sum(step.request.answer(data[name]) for name in step.parties)
        run.advance(exact + step.law.draw(step.cells, source))
    assert {step.parties for step in run.made[1:]} == {("p0", "p1")}
    cells = np.array(run.model().parts[0])
    assert (cells == cells[7]).sum() == 1


def test_every_copy_comes_to_the_same_steps():
    own = tables()
    plan = study(own, method="floor")
    one, other = (drive(run_of(plan), plan, own, seed="same") for _ in range(2))
    assert one.digests == other.digests
    third = drive(run_of(plan), plan, own, seed="another")
    assert third.digests != one.digests


def test_no_descent_without_a_hierarchy_or_with_rows_for_every_value():
    own = tables()
    assert "descent" not in {s.phase for s in drive(*_driven(own, schema=_flat())).steps}
    assert "descent" not in {s.phase for s in drive(*_driven(own, epsilon=Fraction(10**4))).steps}


def _driven(own, **changes):
    plan = study(own, **changes)
    return run_of(plan), plan, own


def _flat():
    text = SCHEMA.to_toml()
    return Schema.from_toml(
        "\n".join(line for line in text.splitlines() if not line.startswith("hierarchy"))
    )


def test_heavy_nodes_are_limited(monkeypatch):
    tree = Tree.of(SCHEMA.attributes[0].hierarchy)

    def cells():
        rounds, found, _ = descended(tree, lambda cells: np.full(cells, 10**6, dtype=np.int64))
        return rounds[0][0].cells - 1, max(found[1]) + 1

    first, every = cells()
    assert first < every == SIZE + 1
    monkeypatch.setattr(descent, "MOST_HEAVY", first + 3)
    assert cells() == (first, first + 3)


def test_values_of_a_cell_are_equally_likely():
    cell_of = np.array([0, 1, 0, 1, 1, 2])
    drawn = spread(cell_of, np.repeat([0, 1, 2], 30_000), SeededRandomSource(2))
    counts = np.bincount(drawn, minlength=6)
    expected = np.array([15_000, 10_000, 15_000, 10_000, 10_000, 30_000])
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < 20  # chi-square, 3 degrees of freedom: p < .0002
    tilted = np.array([0.7, 1, 1.3, 1, 1, 1]) * expected
    assert ((counts - tilted) ** 2 / tilted).sum() > 20


@pytest.mark.parametrize("method", ["floor", pytest.param("subn+", marks=pytest.mark.slow)])
def test_a_release_of_many_values_is_verified_and_drawn_given_a_condition(tmp_path, method):
    parts = [SCHEMA.decode(each, SeededRandomSource(1)) for each in tables().values()]
    fitted = parley.simulate(parts, SCHEMA, epsilon=2, method=method, aggregation="masked")
    folder = tmp_path / "release"
    fitted.save(folder)
    assert not verify(folder, unsigned=True).problems
    given_code = fitted.sample(200, where="code = v7 and sex = M")
    assert set(given_code["code"]) == {"v7"}
    rare = fitted.sample(50, where="code = v205")
    assert set(rare["code"]) == {"v205"}
