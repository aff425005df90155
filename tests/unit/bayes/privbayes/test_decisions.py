"""What is decided before any row is read, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.bayes.privbayes.decisions import Encoding, PrivBayesOptions, make_plan
from common.bayes.privbayes.parent_sets import Constraints
from common.bayes.privbayes.scores import Score
from common.errors import InputError

BITS = Domain.flat([2] * 16)
MIXED = Domain(((np.arange(16), np.arange(16) // 2), (np.arange(5),), (np.arange(2),)))


def plan(domain, epsilon, rows=21574, **options):
    return make_plan(
        domain, rows=rows, epsilon=Fraction(epsilon), options=PrivBayesOptions(**options)
    )


def test_binary_tables_take_the_binary_path_with_score_f():
    made = plan(BITS, "0.4")
    assert (made.encoding, made.score, made.degree) == (Encoding.BINARY, Score.MAXIMUM_JOINT, 5)
    assert made.network_epsilon == Fraction(12, 100)
    assert made.network_epsilon + made.table_epsilon == Fraction(4, 10)


def test_other_tables_take_the_hierarchical_path_with_score_r():
    made = plan(MIXED, "1", rows=1000)
    assert (made.encoding, made.score) == (Encoding.HIERARCHICAL, Score.INDEPENDENCE)
    assert made.cells == int(Fraction(7, 10) * 1000 / (2 * 3 * 4))
    assert made.degree is None


def test_the_general_path_is_stricter_than_the_binary_one():
    assert plan(BITS, "0.4").degree == 5
    assert plan(BITS, "0.4", encoding=Encoding.VANILLA).cells == 47  # 2^(4+1) fit, 2^(5+1) do not


@pytest.mark.parametrize(
    ("domain", "options"),
    [
        (BITS, {}),
        (MIXED, {}),
        (Domain.flat([5]), {}),
        (BITS, {"constraints": Constraints(max_parents=0)}),
    ],
)
def test_a_single_possible_network_gives_all_budget_to_the_tables(domain, options):
    rows = 21574 if options else 20
    made = plan(domain, "0.01", rows=rows, **options)
    assert made.network is not None
    assert made.network.edges == []
    assert (made.network_epsilon, made.table_epsilon) == (0, Fraction(1, 100))


def test_the_degree_is_not_chosen_again_with_the_larger_budget():
    """At beta = .9 the degree is 0 for ACS at .1; with all of the budget it would be 3."""
    domain = Domain.flat([2] * 23)
    made = plan(domain, "0.1", rows=47461, beta=Fraction(9, 10))
    assert made.degree == 0
    assert made.table_epsilon == Fraction(1, 10)


def test_required_edges_survive_when_nothing_is_learnt():
    wishes = Constraints(required=frozenset({(0, 1)}))
    made = plan(MIXED, "0.001", rows=10, constraints=wishes)
    assert made.network is not None
    assert Pair(1, (View(0, 1),)) in made.network.pairs  # at its coarsest


def test_a_network_of_ones_own_costs_nothing_to_learn():
    own = Network((Pair(2), Pair(0, (View(2),)), Pair(1, (View(0, 1),))))
    made = plan(MIXED, "1", network=own)
    assert made.network is own
    assert (made.network_epsilon, made.table_epsilon) == (0, 1)


def test_binary_encodings_count_bits():
    made = plan(Domain.flat([16, 7, 41, 2]), "1", encoding=Encoding.GRAY)
    assert made.domain.sizes == (2,) * (4 + 3 + 6 + 1)
    assert made.sizes == (16, 7, 41, 2)


def test_vanilla_forgets_the_levels():
    assert plan(MIXED, "1", encoding=Encoding.VANILLA).domain.height(0) == 1


@pytest.mark.parametrize(
    ("domain", "options", "message"),
    [
        (MIXED, {"score": Score.MAXIMUM_JOINT}, "score F needs a binary encoding"),
        (MIXED, {"beta": Fraction(1)}, "beta"),
        (MIXED, {"theta": Fraction(0)}, "theta"),
        (
            MIXED,
            {"encoding": Encoding.BINARY, "constraints": Constraints(required=frozenset({(0, 1)}))},
            "vanilla or hierarchical",
        ),
        (MIXED, {"network": Network((Pair(0), Pair(1)))}, "2 attributes, the table 3"),
        (
            MIXED,
            {"network": Network((Pair(0), Pair(1), Pair(2, (View(0, 7),))))},
            "no level 7",
        ),
        (Domain(()), {}, "no model"),
    ],
)
def test_what_cannot_be_done_is_refused(domain, options, message):
    with pytest.raises(InputError, match=message):
        plan(domain, "1", **options)


def test_an_empty_table_is_refused():
    with pytest.raises(InputError, match="no model"):
        plan(MIXED, "1", rows=0)
