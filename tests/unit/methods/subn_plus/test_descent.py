"""Counts that descend a hierarchy: which cells come of it, what is asked, and what it costs."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import parley
from common.errors import InputError
from common.methods.registry import run_of
from common.methods.subn_plus import descent
from common.methods.subn_plus.descent import HierarchyTree, descend, is_heavy, spread
from common.methods.subn_plus.facts import PublicFacts
from common.privacy import sensitivity
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.release.verify import verify
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.conditions import parse, weights_of
from common.schema.dictionary import with_frequencies
from common.schema.hierarchy import Hierarchy, Node, leaf
from common.study.accounting import account
from common.study.script import Total
from parley.cli.main import app
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

    return HierarchyTree.of(Hierarchy(made(shape)))


def descended(tree, counts_of):
    """Drive the descent of attribute 1 with made-up counts."""
    facts = PublicFacts(
        sizes=(2, tree.size, 5), parties=("p",), rows=4000, promise=Promise(Fraction(1))
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
        if len(run.steps) == 1:
            run.leave_out(["p2"])
            step = run.step()
        exact = sum(step.request.answer(data[name]) for name in step.parties)
        run.advance(exact + step.law.draw(step.cells, source))
    assert {step.parties for step in run.steps[1:]} == {("p0", "p1")}
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
    tree = HierarchyTree.of(SCHEMA.attributes[0].hierarchy)

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


def test_values_of_a_cell_follow_public_frequencies():
    """Chi-square with power: frequencies of 0.7 and 1.3 times as much are told from these."""
    cell_of, frequencies = np.array([0, 1, 0, 1, 1, 2, 2]), np.array([1.0, 5, 3, 0, 5, 0, 0])
    drawn = spread(cell_of, np.repeat([0, 1, 2], 30_000), SeededRandomSource(2), frequencies)
    counts = np.bincount(drawn, minlength=7)
    assert counts[3] == 0
    expected = 30_000 * np.array([1 / 4, 1 / 2, 3 / 4, 0, 1 / 2, 1 / 2, 1 / 2])
    there = expected > 0
    apart = (counts - expected)[there] ** 2
    assert (apart / expected[there]).sum() < 22  # 4 degrees of freedom: p < .0002
    for tilt in (0.7, 1.3):
        other = expected * np.array([tilt, 1, 1, 1, 1, 1, 1])
        assert ((counts - other)[there] ** 2 / other[there]).sum() > 22


def weighed(frequencies):
    lines = SCHEMA.to_toml().replace("hierarchy =", f"frequencies = {frequencies}\nhierarchy =")
    return Schema.from_toml(lines)


def test_public_frequencies_are_used_in_rows_conditions_and_the_report(tmp_path):
    """Below a light node the even codes are nine times as frequent in public as the odd ones."""
    own = weighed([9 if v % 2 == 0 else 1 for v in range(SIZE)])
    assert own.digest() != SCHEMA.digest()
    assert Schema.from_toml(own.to_toml()) == own
    parts = [SCHEMA.decode(each, SeededRandomSource(1)) for each in tables().values()]
    fitted = parley.simulate(parts, own, epsilon=2, method="floor", aggregation="masked")
    fitted.save(tmp_path / "release")
    assert not verify(tmp_path / "release", unsigned=True).problems
    report = (tmp_path / "release" / "report.html").read_text("utf-8")
    assert "rare values drawn by public frequencies of" in report
    cells = np.array(fitted.model.parts[0])
    light = np.flatnonzero(np.bincount(cells)[cells] >= 10)
    for drawn in (fitted.draw(60_000, SeededRandomSource(1)), given_female(fitted, 60_000)):
        rare = drawn.columns[0][np.isin(drawn.columns[0], light) & (drawn.columns[0] < SIZE)]
        assert len(rare) > 2000
        assert abs((rare % 2 == 0).mean() - 0.9) < 0.03


def given_female(fitted, rows):
    condition = weights_of(parse("sex = F", fitted.schema), fitted.schema.sizes)
    return fitted.given(condition)(rows, SeededRandomSource(2))


def test_frequencies_come_from_a_public_file(tmp_path):
    schema, public, out = (tmp_path / name for name in ("schema.toml", "public.csv", "new.toml"))
    schema.write_text(SCHEMA.to_toml(), encoding="utf-8")
    public.write_text("code,count\nv7,120\nv3,5\n", encoding="utf-8")
    words = ["schema", "frequencies", str(schema), "code", str(public), "--out", str(out)]
    assert CliRunner().invoke(app, words).exit_code == 0
    found = Schema.load(out).attributes[0].frequencies
    assert (found[7], found[3], sum(found)) == (120, 5, 125)
    public.write_text("code,count\nv7,many\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"public.csv: line 2: expected a value of 'code'"):
        with_frequencies(SCHEMA, "code", public)


@pytest.mark.parametrize("wrong", ["[1, 2]", "[-1]", '["a"]', "[1.5]"])
def test_frequencies_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError, match="frequencies"):
        weighed(wrong)


def two_trees():
    """Codes and towns, each with a hierarchy, and a small column."""
    code = SCHEMA.to_toml().split("[[attribute]]")[1]
    town = code.replace('"code"', '"town"').replace("missing = true\n", "")
    return Schema.from_toml(
        f'[[attribute]]{code}[[attribute]]{town}[[attribute]]\nname = "sex"\n'
        'kind = "categorical"\nvalues = ["F", "M"]\n'
    )


def two_tables(schema, rows=(700, 600, 500, 600)):
    made = {}
    for party, number in enumerate(rows):
        rng = np.random.default_rng(party)
        code = np.where(rng.random(number) < 0.5, 7, rng.integers(0, SIZE + 1, number))
        town = np.where(rng.random(number) < 0.6, 200, rng.integers(0, SIZE, number))
        made[f"p{party}"] = Codes.from_columns([code, town, town % 2], schema.sizes)
    return made


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)])
def test_two_attributes_of_many_values_descend_together(delta):
    schema = two_trees()
    own = two_tables(schema)
    plan = study(own, schema=schema, epsilon=Fraction(3, 2), delta=delta)
    driven = drive(run_of(plan), plan, own)
    rounds = [step for step in driven.steps if step.phase == "descent"]
    assert rounds[0].request.sets == ((0,), (1,))
    assert rounds[0].sensitivity == sensitivity.histograms(2)
    spent = sum(step.costs["p0"] for step in rounds)
    assert spent <= plan.promise.budget / 2
    assert account(plan, driven.steps).most_spent <= plan.promise.budget
    code, town = (np.array(driven.model.parts[a]) for a in (0, 1))
    assert (code == code[7]).sum() == (town == town[200]).sum() == 1
    before, rng = own["p0"], np.random.default_rng(1)
    for _ in range(10):
        changed = [column.copy() for column in before.columns]
        for column, size in zip(changed, schema.sizes, strict=True):
            column[3] = rng.integers(size)
        after = Codes(tuple(changed), schema.sizes)
        for step in driven.steps:
            one, other = (step.request.answer(RowsInMemory(each)) for each in (before, after))
            moved = np.abs(one - other)
            assert moved.sum() <= step.sensitivity.l1
            assert (moved**2).sum() <= step.sensitivity.l2_squared


def test_two_descents_go_on_without_an_owner_in_the_protocol_itself(tmp_path):
    schema = two_trees()
    parts = [schema.decode(each, SeededRandomSource(1)) for each in two_tables(schema).values()]
    fitted = parley.simulate(
        parts, schema, epsilon=1.5, method="floor", aggregation="masked", may_miss=1,
        drop={"party 2": 1},
    )  # fmt: skip
    assert fitted.missing == {"party 2": 1}
    assert [step.phase for step in fitted.steps][:2] == ["descent", "descent"]
    fitted.save(tmp_path / "release")
    assert not verify(tmp_path / "release", unsigned=True).problems
    drawn = fitted.sample_codes(4000)
    assert abs((drawn.columns[0] == 7).mean() - 0.5) < 0.08
    assert abs((drawn.columns[1] == 200).mean() - 0.6) < 0.08


@pytest.mark.parametrize("method", ["floor", pytest.param("subn+", marks=pytest.mark.slow)])
def test_a_release_of_many_values_is_verified_and_drawn_given_a_condition(tmp_path, method):
    parts = [SCHEMA.decode(each, SeededRandomSource(1)) for each in tables().values()]
    fitted = parley.simulate(parts, SCHEMA, epsilon=2, method=method, aggregation="masked")
    folder = tmp_path / "release"
    fitted.save(folder)
    assert not verify(folder, unsigned=True).problems
    given_code = fitted.sample(200, where="code = v7 and sex = M")
    assert set(given_code["code"]) == {"v7"}
    rare = fitted.sample(500)["code"].dropna().value_counts().index[-1]
    assert set(fitted.sample(50, where=f"code = {rare}")["code"]) == {rare}
