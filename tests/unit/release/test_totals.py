"""What published totals tell: shrunk where noise drowns them, and bounded by what bins hold."""

import numpy as np
import pytest

from common.methods.subn_plus.totals import LARGEST
from common.release.totals import bin_total, shrunk
from common.schema import Schema

AMOUNT = Schema.from_toml(
    '[[attribute]]\nname = "x"\nkind = "real"\nedges = [0, 10, 20, 100]\nmissing = true'
).attributes[0]


@pytest.mark.parametrize("deviation", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("true", [-1.0, 0.0, 0.6])
def test_the_squared_error_is_at_most_what_is_claimed(deviation, true):
    rng = np.random.default_rng(3)
    drawn = [
        shrunk(true + noise, deviation=deviation, most=1.0)
        for noise in rng.normal(0, deviation, 4_000)
    ]
    values = np.array([value for value, _ in drawn])
    assert np.abs(values).max() <= 1
    assert ((values - true) ** 2).mean() <= 1.05 * drawn[0][1]


def test_totals_become_mean_places_and_a_mean_distance():
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    totals = np.array([350, -200]) * LARGEST  # of 700 numbers at most, and of 200
    found = bin_total(AMOUNT, (0, 0, 1, -1), totals, shares, 1e-6, 1_000)
    assert found.inside.classes == (0, 0, 1)
    assert found.inside.means == pytest.approx((0.75, 0.0), abs=1e-6)
    assert found.distance == pytest.approx((350 * 5 - 200 * 40) / 1_000, abs=1e-3)
    assert found.variance < 1e-6
    assert 0 < found.rounding < 0.1


def test_a_class_without_rows_stays_in_the_middle():
    found = bin_total(
        AMOUNT, (0, 0, 1, -1), np.array([0, 9_999]), np.array([0.5, 0.5, -0.1, 0]), 5.0, 100
    )
    assert found.inside.means[1] == 0.5
    assert found.distance == 0
