"""Networks learnt greedily: against brute force, the reference, and the user's constraints."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

from common.bayes.domain import Domain, View
from common.bayes.network import Pair
from common.bayes.privbayes.learning import learn_general_network
from common.bayes.privbayes.parent_sets import Constraints, affordable_cells, candidates, has_choice
from common.bayes.privbayes.scores import Score, Scoring, mutual_information, scores
from common.errors import LocalError
from common.marginals import count
from common.schema.codes import Codes
from tests.unit.bayes.privbayes.learnt import chain, learn, random_choice, select_best


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_every_attribute_gets_the_full_number_of_parents(degree):
    for seed in range(5):
        network = learn(chain(7), degree, root=seed, select=random_choice(seed))
        placed = []
        for position, pair in enumerate(network.pairs):
            parents = {view.attribute for view in pair.parents}
            assert parents <= set(placed)
            assert len(parents) == min(degree, position)
            placed.append(pair.child)
        assert {v.attribute for v in network.pairs[degree].parents} == set(placed[:degree])


def test_candidates_are_all_pairs_of_the_papers_omega():
    seen = []

    def record(values, **_):
        seen.append(len(values))
        return len(values) - 1

    learn(chain(7), 2, select=record)
    # children not placed times parent sets of min(2, placed)
    assert seen == [6 * 1, 5 * 1, 4 * 3, 3 * 6, 2 * 10, 1 * 15]


def test_incremental_scores_equal_scores_from_scratch():
    codes = chain(6)
    placed, offered = [0], []

    def check(values, **_):
        rest = [a for a in range(6) if a not in placed]
        expected = []
        for child in rest:
            for parents in combinations(sorted(placed), min(2, len(placed))):
                (table,) = count(codes, [(child, *parents)])
                expected += scores(Score.INDEPENDENCE, table.reshape(1, 2, -1)).tolist()
        assert sorted(values.tolist()) == sorted(expected)
        offered.append(len(values))
        return 0

    def select(values, **_):
        chosen = check(values)
        placed.append(min(a for a in range(6) if a not in placed))
        return chosen

    learn(codes, 2, select=select, score=Score.INDEPENDENCE)
    assert len(offered) == 5


def test_degree_one_without_noise_is_the_maximum_spanning_tree_from_every_root():
    codes = chain(8)
    weights = np.zeros((8, 8))
    for a, b in combinations(range(8), 2):
        weights[a, b] = mutual_information(count(codes, [(a, b)])[0][None])[0]
    best = -minimum_spanning_tree(-weights).sum()
    for root in range(8):
        network = learn(codes, 1, root=root)
        found = sum(weights[min(e), max(e)] for e in network.edges)
        assert found == pytest.approx(best, rel=1e-12)


def test_noise_free_information_on_nltcs_equals_the_reference(shared_data):
    table = np.loadtxt(shared_data / "nltcs.csv", delimiter=",", skiprows=1, dtype=np.int64)
    codes = Codes.from_columns(list(table.T), [2] * 16)
    for degree, expected in [(1, 3.634), (2, 4.319), (3, 4.585)]:
        network = learn(codes, degree)
        families = [[p.child, *(v.attribute for v in p.parents)] for p in network.pairs[1:]]
        total = sum(mutual_information(t.reshape(1, 2, -1))[0] for t in count(codes, families))
        # degree 1 does not depend on the root; higher degrees move slightly with it
        assert total / codes.rows == pytest.approx(expected, abs=1e-3 if degree == 1 else 4e-2)


@pytest.mark.parametrize("score", list(Score))
def test_required_and_forbidden_edges_are_obeyed_on_the_binary_path(score):
    wishes = Constraints(
        required=frozenset({(1, 0), (2, 0), (3, 0), (4, 5)}),
        forbidden=frozenset({(a, 6) for a in range(6)} | {(5, 2)}),
    )
    for seed in range(10):
        network = learn(
            chain(7), 2, root=1, select=random_choice(seed), constraints=wishes, score=score
        )
        assert wishes.required <= set(network.edges)
        assert not wishes.forbidden & set(network.edges)
        by_child = {pair.child: pair for pair in network.pairs}
        assert len(by_child[0].parents) == 3  # the user's wish outranks the degree
        assert by_child[6].parents == ()


def test_an_empty_parent_set_never_competes_under_score_f():
    """F of an empty set is the largest there is; it must wait until nothing else is left."""
    wishes = Constraints(forbidden=frozenset({(a, 3) for a in range(7) if a != 3}))
    for root in (0, 1, 2):
        network = learn(chain(7), 2, root=root, constraints=wishes, score=Score.MAXIMUM_JOINT)
        assert network.pairs[-1] == Pair(3)


DOMAIN = Domain(
    (
        (np.arange(8), np.arange(8) // 2, np.arange(8) // 4),
        (np.arange(3),),
        (np.arange(2),),
        (np.arange(6), np.arange(6) // 3),
    )
)


def mixed(rows=3000, seed=6):
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 8, rows)
    b = (a // 3 + (generator.random(rows) < 0.2)) % 3
    c = (a >= 4) ^ (generator.random(rows) < 0.1)
    return Codes.from_columns([a, b, c.astype(int), generator.integers(0, 6, rows)], DOMAIN.sizes)


def learn_mixed(codes, cells, *, domain=DOMAIN, select=select_best, root=0, **options):
    expanded, columns = domain.expand(codes), {v: i for i, v in enumerate(domain.views)}
    return learn_general_network(
        lambda families: count(expanded, [[columns[v] for v in f] for f in families]),
        Scoring(Score.INDEPENDENCE, codes.rows),
        domain=domain,
        cells=cells,
        root=root,
        select=select,
        **options,
    )


def test_tables_stay_within_the_useful_size():
    for cells in (6, 12, 24, 48):
        for seed in range(4):
            network = learn_mixed(mixed(), cells, root=seed, select=random_choice(seed))
            for pair in network.pairs:
                assert not pair.parents or np.prod(DOMAIN.shape(pair.family)) <= cells


def test_a_child_whose_histogram_is_not_useful_is_offered_without_parents():
    omega = candidates(DOMAIN, [1, 2], 5, Constraints())
    assert Pair(0) in omega  # 8 values do not fit 5 cells
    assert not any(pair.parents for pair in omega if pair.child == 0)


def test_hierarchies_of_height_one_are_the_vanilla_encoding():
    flat = DOMAIN.without_levels()
    learnt = learn_mixed(mixed(), 24, domain=flat, select=random_choice(1))
    again = learn_mixed(mixed(), 24, domain=Domain.flat(DOMAIN.sizes), select=random_choice(1))
    assert learnt == again
    assert all(view.level == 0 for pair in learnt.pairs for view in pair.parents)


def test_required_and_forbidden_edges_are_obeyed_on_the_general_path():
    wishes = Constraints(required=frozenset({(0, 3), (2, 1)}), forbidden=frozenset({(0, 1)}))
    for cells in (4, 12, 48):
        for seed in range(4):
            network = learn_mixed(
                mixed(), cells, root=0, select=random_choice(seed), constraints=wishes
            )
            assert wishes.required <= set(network.edges)
            assert not wishes.forbidden & set(network.edges)


def test_the_cap_on_parents_is_obeyed():
    for cap in (0, 1, 2):
        network = learn_mixed(mixed(), 500, constraints=Constraints(max_parents=cap))
        assert max(len(pair.parents) for pair in network.pairs) <= cap


def test_nothing_is_learnt_when_no_attribute_could_have_parents():
    assert not has_choice(DOMAIN, 3, Constraints())
    assert has_choice(DOMAIN, 4, Constraints())
    assert not has_choice(DOMAIN, 10**6, Constraints(max_parents=0))


def test_sensitivity_of_a_round_covers_every_candidate():
    seen = []

    def record(values, *, sensitivity, score_error):
        seen.append((sensitivity, score_error))
        return 0

    codes = mixed()
    learn_mixed(codes, 48, select=record)
    assert seen[0] == (3 * codes.rows, 0)  # candidates beyond binary: 3/n in units of n^2
    binary = chain(4)
    seen.clear()
    learn_mixed(binary, 4, domain=Domain.flat([2] * 4), select=record)
    assert set(seen) == {(2 * binary.rows - 2, 0)}


def test_wide_tables_shrink_their_limit_by_a_public_rule():
    wide = Domain.flat([2] * 40)
    cells = affordable_cells(wide, 1 << 12, Constraints(), 1 << 10)
    assert 1 < cells < 1 << 12
    assert affordable_cells(DOMAIN, 48, Constraints(), 1 << 10) == 48


def test_score_f_is_refused_on_the_general_path():
    with pytest.raises(LocalError, match="binary"):
        learn_general_network(
            lambda families: [],
            Scoring(Score.MAXIMUM_JOINT, rows=1),
            domain=DOMAIN,
            cells=4,
            root=0,
            select=select_best,
        )
    with pytest.raises(LocalError, match="degree"):
        learn(chain(3), 3)


def test_generalised_parents_are_counted_as_sums_of_their_groups():
    codes = mixed()
    expanded = DOMAIN.expand(codes)
    columns = {view: i for i, view in enumerate(DOMAIN.views)}
    fine, coarse = count(
        expanded, [(columns[View(2)], columns[View(0)]), (columns[View(2)], columns[View(0, 1)])]
    )
    assert np.array_equal(fine.reshape(2, 4, 2).sum(axis=2), coarse)
