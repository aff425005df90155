from fractions import Fraction

import numpy as np
import pytest

from common.errors import LocalError
from common.privacy.exponential import exponential_mechanism
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.privacy.sampling.polya import polya_shares
from tests.harness.audit import audit, laplace_log_likelihood_ratio

RUNS = 200_000
EPSILON = Fraction(1)
# One row moves from one cell of a histogram to the other: the worst neighbours there are.
EXACT = np.array([5, 5])
NEIGHBOUR = np.array([6, 4])
SCALE = Fraction(2) / EPSILON


def audited(noise):
    source = SeededRandomSource("audit")
    statistics = []
    for start in (EXACT, NEIGHBOUR):
        outputs = start + noise(RUNS * len(EXACT), source).reshape(RUNS, len(EXACT))
        statistics.append(laplace_log_likelihood_ratio(outputs, EXACT, NEIGHBOUR, SCALE))
    return audit(*statistics)


def laplace(factor):
    return lambda count, source: discrete_laplace(SCALE * factor, count, source)


def test_the_right_noise_passes_and_the_bound_comes_close():
    result = audited(laplace(1))
    assert not result.contradicts(EPSILON)
    assert result.epsilon_lower_bound > 0.8


def test_shares_summed_over_the_parties_pass():
    result = audited(
        lambda count, source: sum(polya_shares(SCALE, count, source, parties=3) for _ in range(3))
    )
    assert not result.contradicts(EPSILON)
    assert result.epsilon_lower_bound > 0.8


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(7, 10)])
def test_too_little_noise_is_convicted(factor):
    assert audited(laplace(factor)).contradicts(EPSILON)


def test_a_missing_share_is_convicted():
    result = audited(
        lambda count, source: sum(polya_shares(SCALE, count, source, parties=3) for _ in range(1))
    )
    assert result.contradicts(EPSILON)


def test_no_noise_at_all_is_convicted_as_far_as_the_runs_can_tell():
    result = audited(lambda count, source: np.zeros(count, dtype=np.int64))
    assert result.epsilon_lower_bound > 5


def test_equal_inputs_show_no_loss():
    source = SeededRandomSource("equal")
    first, second = (discrete_laplace(SCALE, RUNS, source).astype(float) for _ in range(2))
    assert audit(first, second).epsilon_lower_bound == 0


@pytest.mark.parametrize(("sensitivity", "convicted"), [(1, False), (Fraction(1, 2), True)])
def test_the_exponential_mechanism_passes_and_with_half_its_sensitivity_does_not(
    sensitivity, convicted
):
    source = SeededRandomSource("choice")
    runs, epsilon = 8_000, Fraction(1)
    # One replaced row lifts the first score by one and lowers all others by one: with many others
    # the loss on "the first was chosen" comes close to epsilon.
    picks = [
        np.array(
            [
                exponential_mechanism(
                    scores, sensitivity=sensitivity, epsilon=epsilon, source=source
                )
                == 0
                for _ in range(runs)
            ],
            dtype=float,
        )
        for scores in (np.array([1] + [0] * 20), np.array([0] + [1] * 20))
    ]
    result = audit(*picks, confidence=0.999)
    assert result.contradicts(epsilon) is convicted
    assert result.epsilon_lower_bound > 0.4


@pytest.mark.parametrize(("runs", "confidence"), [(1, 0.9), (10, 0.0), (10, 1.0)])
def test_an_audit_that_cannot_say_anything_is_refused(runs, confidence):
    with pytest.raises(LocalError):
        audit(np.zeros(runs), np.zeros(runs), confidence=confidence)


def test_the_bound_keeps_its_confidence_at_a_modest_level():
    """A mechanism whose epsilon is known, audited often: wrong no more often than stated."""
    wrong = 0
    generator = np.random.default_rng(5)
    for _ in range(400):
        kept = generator.random((2, 2_000)) < 0.75  # randomised response with epsilon = log 3
        first, second = kept[0].astype(float), (~kept[1]).astype(float)
        wrong += audit(first, second, confidence=0.9).contradicts(np.log(3))
    assert wrong <= 400 * 0.1 + 6 * 6
