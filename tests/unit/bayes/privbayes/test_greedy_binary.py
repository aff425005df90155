"""Networks of binary attributes, learnt greedily: against brute force and the reference."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

from common.bayes.network import Pair
from common.bayes.privbayes.constraints import Constraints
from common.bayes.privbayes.scores import Score, mutual_information, scores
from common.marginals import count
from common.schema.codes import Codes
from tests.unit.bayes.privbayes.learnt import chain, learn, random_choice


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
