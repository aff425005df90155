"""The noise in sums over people and events: its variance is stated, and less or more is noticed."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from common.exchanges.sums import bounds_of
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.study.analyses import read_analyses
from common.study.requests import RowsInMemory
from common.study.script import drive
from common.study.steps import OnePlace
from tests.harness.linked import SCHEMA, linked_codes
from tests.harness.linked_runs import dealt_out, linked_study

LINKED = linked_codes(600)
ANSWERS = {Fraction(0): 120, Fraction(1, 10**9): 60}  # by delta; Laplace noise has heavier tails
ACCEPT = 1e-4


def residuals(delta):
    """Of each step over events: published less exact, in deviations that the study states."""
    tables = dealt_out(LINKED, 3)
    analyses = read_analyses(['share = "diagnosis = a", by = "sex"'], SCHEMA)
    study = linked_study(tables, epsilon=30, delta=delta, analyses=analyses)
    places = [
        OnePlace(study, tables, SeededRandomSource(f"audit {number}"))
        for number in range(ANSWERS[delta])
    ]
    found = {}

    def answer(step):
        """Answer it again and again; the steps that follow are those of the first answer."""
        published = np.array([place.answer(step) for place in places])
        exact = step.counted.answer(RowsInMemory(LINKED))
        variance = step.noise_law.variance(study.noise_shares(len(step.parties)))
        found[step.name] = ((published - exact) / np.sqrt(variance)).ravel()
        assert np.abs(published).max() <= bounds_of(study, step).total_bound
        return published[0]

    drive(run_of(study), answer)
    return found


def p_value(scaled, factor=1.0):
    """Of a mean square of 1 in these numbers, if their variance is taken for `factor` times it."""
    squares = scaled**2 / factor
    error = squares.std() / np.sqrt(len(squares))
    return 2 * norm.sf(abs(squares.mean() - 1) / error)


@pytest.mark.parametrize("delta", ANSWERS)
def test_the_noise_is_as_large_as_stated(delta):
    found = residuals(delta)
    averaged = {"margins of events", "declared tables", "pairs with events", "next events"}
    assert averaged <= found.keys()
    assert p_value(found["totals"]) > ACCEPT
    for scaled in map(found.get, sorted(averaged)):
        assert p_value(scaled) > ACCEPT
        assert abs(scaled.mean()) * np.sqrt(len(scaled)) < 4
        for factor in (0.7, 1.3):
            assert p_value(scaled, factor) < ACCEPT
