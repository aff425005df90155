import math
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from common.errors import LocalError
from common.privacy.exponential import (
    _exact_losses,
    _losses,
    _settled_by_doubles,
    _settled_by_integers,
    exponential_mechanism,
)
from common.privacy.randomness import OsRandomSource, SeededRandomSource

NEVER = 1e-9


def softmax(scores, *, sensitivity, epsilon):
    exponents = np.array([float(epsilon * score / (2 * sensitivity)) for score in scores])
    weights = np.exp(exponents - exponents.max())
    return weights / weights.sum()


def frequencies(scores, draws, seed, **kwargs):
    source = SeededRandomSource(seed)
    picks = [exponential_mechanism(scores, source=source, **kwargs) for _ in range(draws)]
    return np.bincount(picks, minlength=len(scores))


@pytest.mark.parametrize(
    "scores",
    [
        [0, 1, 2, 5],
        [Fraction(1, 3), Fraction(1, 2), Fraction(-7, 5)],
        np.array([3, 3, -2, 0, 1], dtype=np.int64),
        np.array([0.25, -1.5, 2.0]),
    ],
    ids=["integers", "fractions", "int64", "float64"],
)
def test_draws_follow_the_softmax_and_not_one_of_another_budget(scores):
    draws = 8_000
    seen = frequencies(scores, draws, "softmax", sensitivity=Fraction(3, 2), epsilon=Fraction(2))
    exact = [Fraction(score) for score in scores]
    law = softmax(exact, sensitivity=Fraction(3, 2), epsilon=Fraction(2))
    assert chisquare(seen, draws * law).pvalue > NEVER
    for wrong in (Fraction(14, 10), Fraction(26, 10)):
        other = softmax(exact, sensitivity=Fraction(3, 2), epsilon=wrong)
        assert chisquare(seen, draws * other).pvalue < NEVER


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20), st.integers(-(10**9), 10**9))
def test_scores_shifted_by_a_constant_give_the_same_draw(scores, shift):
    picks = [
        exponential_mechanism(
            shifted, sensitivity=1, epsilon=Fraction(1, 3), source=SeededRandomSource(7)
        )
        for shifted in (scores, [score + shift for score in scores])
    ]
    assert picks[0] == picks[1]


@given(
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=30),
    st.integers(0, 2**64 - 1),
    st.fractions(min_value=Fraction(1, 1000), max_value=10),
)
def test_doubles_never_disagree_with_exact_arithmetic(scores, word, rate):
    by_doubles = _settled_by_doubles(_losses(scores), float(rate), word)
    by_integers = _settled_by_integers(_exact_losses(scores), rate, word, SeededRandomSource(0))
    assert by_doubles is None or by_doubles == by_integers


@pytest.mark.parametrize("offset", range(-4, 5))
def test_so_near_a_threshold_that_doubles_cannot_tell_they_abstain(offset):
    scores, rate = [0, 1, 2, 3], Fraction(1, 7)
    weights = [gmpy2.exp(gmpy2.mpfr(float(score - 3)) / 7) for score in scores]
    threshold = int(float(sum(weights[:2]) / sum(weights)) * 2**64)
    word = threshold + offset * 2**20
    by_doubles = _settled_by_doubles(_losses(scores), float(rate), word)
    assert by_doubles is None


def test_exact_arithmetic_reads_on_where_64_bits_do_not_settle():
    scores = [0, 0]
    # Half of the total: the uniform 0.1000... is not below one half, 0.0111... is.
    exact = _exact_losses(scores)
    assert _settled_by_integers(exact, Fraction(1), 1 << 63, SeededRandomSource(0)) == 1
    assert _settled_by_integers(exact, Fraction(1), (1 << 63) - 1, SeededRandomSource(0)) == 0


def test_constant_scores_are_uniform():
    seen = frequencies([5] * 8, 6_000, "constant", sensitivity=1, epsilon=Fraction(3))
    assert chisquare(seen).pvalue > NEVER


def test_a_vanishing_budget_is_uniform():
    seen = frequencies([0, 10, 20], 9_000, "vanishing", sensitivity=1, epsilon=Fraction(1, 10**400))
    assert chisquare(seen).pvalue > NEVER


@pytest.mark.parametrize("epsilon", [10**6, 10**400])
@pytest.mark.parametrize(
    "scores",
    [
        [1, 3, 2],
        [Fraction(1), Fraction(10**500), Fraction(-(10**500))],
        np.array([-(2**63), 2**63 - 1, 0], dtype=np.int64),
        np.array([-1.7e308, 1.7e308, 0.0]),
    ],
)
def test_a_huge_budget_takes_the_best_and_does_not_overflow(scores, epsilon):
    for seed in range(20):
        picked = exponential_mechanism(
            scores, sensitivity=1, epsilon=Fraction(epsilon), source=SeededRandomSource(seed)
        )
        assert picked == 1


class NoRandomness:
    private = True

    def random_bytes(self, count: int) -> bytes:
        raise AssertionError("nothing to decide, yet random bits were drawn")

    words = random_bytes


def test_one_candidate_needs_no_randomness():
    assert (
        exponential_mechanism([7], sensitivity=1, epsilon=Fraction(1), source=NoRandomness()) == 0
    )


def test_an_error_in_the_scores_is_paid_for_in_sensitivity():
    scores = [0, 4]
    for seed in range(50):
        with_error, with_larger = (
            exponential_mechanism(
                scores, epsilon=Fraction(1), source=SeededRandomSource(seed), **kwargs
            )
            for kwargs in (
                {"sensitivity": 1, "score_error": Fraction(1, 2)},
                {"sensitivity": 2},
            )
        )
        assert with_error == with_larger


def test_fifty_thousand_candidates_follow_the_law():
    """Groups of candidates with equal scores: the law of the group is known."""
    scores = np.arange(50_000, dtype=np.int64) % 4
    source = SeededRandomSource("many")
    picks = [
        exponential_mechanism(scores, sensitivity=1, epsilon=Fraction(1), source=source)
        for _ in range(1_000)
    ]
    seen = np.bincount(np.array(picks) % 4, minlength=4)
    law = softmax([0, 1, 2, 3], sensitivity=1, epsilon=1)
    assert chisquare(seen, 1_000 * law).pvalue > NEVER
    assert len(set(picks)) > 830


def test_the_exponential_of_the_c_library_is_as_good_as_the_bound_assumes():
    points = -np.concatenate([np.linspace(0, 700, 20_001), np.geomspace(1e-300, 700, 2_000)])
    with gmpy2.context(gmpy2.get_context(), precision=120):
        worst = max(
            abs(gmpy2.mpfr(float(value)) / gmpy2.exp(gmpy2.mpfr(float(point))) - 1)
            for point, value in zip(points, np.exp(points), strict=True)
        )
    assert worst < 2.0**-45


@pytest.mark.parametrize(
    ("scores", "kwargs"),
    [
        ([], {}),
        ([1, 2], {"sensitivity": 0}),
        ([1, 2], {"sensitivity": -1}),
        ([1, 2], {"epsilon": Fraction(0)}),
        ([1, 2], {"score_error": Fraction(-1)}),
        (np.array([1.0, math.nan]), {}),
        (np.array([1.0, math.inf]), {}),
        ([1.0, math.inf], {}),
        ([1.0, math.nan], {}),
        (np.zeros((2, 2)), {}),
        (np.array(["a", "b"]), {}),
    ],
)
def test_what_has_no_meaning_is_refused(scores, kwargs):
    arguments = {"sensitivity": 1, "epsilon": Fraction(1), **kwargs}
    with pytest.raises(LocalError):
        exponential_mechanism(scores, source=OsRandomSource(), **arguments)
