"""What is asked about pairs and triples, by what there is to spend."""

from fractions import Fraction

from common.methods.subn_plus.contrast_plan import plan_contrasts
from tests.unit.methods.subn_plus.test_contrasts import facts


def test_the_plan_is_finer_the_more_there_is_to_spend():
    groups, triples = [], []
    for epsilon in (Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(10), Fraction(100)):
        plan = plan_contrasts(facts([16] * 12, 40_000, epsilon))
        groups.append(plan.pair_groups if plan else 0)
        triples.append(plan.triple_groups if plan else 0)
    assert groups == sorted(groups)
    assert triples == sorted(triples)
    assert (groups[0], groups[-1], triples[0]) == (0, 16, 0)
    assert triples[-1] > 4


def test_pairs_are_asked_in_two_groups_or_more_beside_triples():
    """A budget that just allows pairs in two groups allows no triples beside them."""
    for epsilon in range(8, 81):
        plan = plan_contrasts(facts([10] * 10 + [2], 442, Fraction(epsilon, 8)))
        if plan is not None:
            assert plan.pair_groups >= 2
            assert (plan.triples > 0) == (plan.triple_groups >= 2)
