"""Means of single columns: how often their intervals hold the truth, and where there are none."""

from dataclasses import replace

import numpy as np
import pytest

import parley
from common.analysis.estimates import of_mean
from common.analysis.means import means
from common.release.measured import ExpectedError
from common.release.totals import BinTotal
from common.schema.decoder import Inside

SCHEMA = parley.Schema.from_toml(
    """
attribute = [
  { name = "age", kind = "integer", min = 0, max = 79, bins = 40, missing = true },
  { name = "children", kind = "ordinal", values = [5, 0, 1, 2] },
  { name = "ill", kind = "boolean" },
]
"""
)
DEVIATION, ROWS = 12.0, 2_000
CENTRES = np.arange(40) * 2 + 0.5


MIDDLES = BinTotal(Inside((0,) * 40, (0.5,)), distance=0.0, variance=0.0)


def held(claimed, totals):
    """How often the interval of the mean age holds that of the population."""
    rng = np.random.default_rng(4)
    law = np.append(np.linspace(1, 3, 40), 4.0)
    law /= law.sum()
    truth = float(law[:-1] @ CENTRES / law[:-1].sum())
    found = []
    for _ in range(400):
        counts = rng.multinomial(ROWS, law) + rng.normal(0, DEVIATION, 41)
        columns = [ExpectedError((0,), 41, claimed, 0.1)]
        (own,) = means(SCHEMA, [counts / ROWS, None, None], columns, ROWS, totals=totals)
        found.append(own.low <= truth <= own.high)
    return float(np.mean(found))


def test_intervals_hold_the_mean_of_the_population():
    known = {0: MIDDLES}
    assert 0.92 < held(DEVIATION, known) < 0.98
    assert held(0.6 * DEVIATION, known) < 0.9
    assert held(1.5 * DEVIATION, known) > 0.985
    noisy = {0: replace(MIDDLES, variance=9.0)}
    assert held(DEVIATION, noisy) > 0.985


def test_what_bins_hide_widens_an_interval_unless_it_was_measured():
    shares = [np.append(np.full(40, 1 / 40), 0.0), None, None]
    columns = [ExpectedError((0,), 41, 1.0, 0.1)]
    (unknown,) = means(SCHEMA, shares, columns, ROWS)
    (known,) = means(SCHEMA, shares, columns, ROWS, totals={0: replace(MIDDLES, distance=0.4)})
    assert unknown.mean == pytest.approx(39.5)
    assert known.mean == pytest.approx(39.9)
    assert unknown.hidden == pytest.approx(0.5)  # every number may be at an end of its bin
    assert unknown.high - unknown.low == pytest.approx(known.high - known.low + 1, abs=0.01)
    assert known.ends == unknown.ends == (0, 79)
    assert of_mean(unknown).flagged == (unknown.hidden > unknown.error)
    assert not of_mean(known).flagged


def test_a_mean_is_that_of_the_numbers_and_stays_in_their_range():
    shares = [None, np.array([0.0, 1.0, 0.0, -0.2]), np.array([0.5, 0.5])]
    columns = [ExpectedError((place,), 4, 10.0, 0.1) for place in (1, 2)]
    (found,) = means(SCHEMA, shares, columns, 1_000)
    assert found.name == "children"  # yes or no has a share, and no mean
    assert found.mean == found.low == 0.0
    assert found.ends == (0.0, 5.0)
    assert 0 < found.high < 1


@pytest.mark.parametrize("share", [0.0, 0.03, -1.0])
def test_a_column_that_is_noise_has_no_mean(share):
    shares = [np.append(np.full(40, share / 40), 1 - share), None, None]
    assert means(SCHEMA, shares, [ExpectedError((0,), 41, 10.0, 0.9)], 1_000) == []
