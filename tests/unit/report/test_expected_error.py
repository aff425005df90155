"""The expected error of a release, against simulated noise."""

from fractions import Fraction

import numpy as np
import pytest

import parley
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from tests.unit.report.conftest import SCHEMA


def test_the_expected_distance_is_that_of_simulated_noise(table):
    maker = parley.PrivBayes(epsilon=1, encoding="vanilla", required=[("letter", SCHEMA.names[1])])
    fitted = maker.fit(table, SCHEMA)
    (error,) = fitted.pair_errors
    assert error.cells == 3 * 64
    noise = discrete_laplace(fitted.model.noise_scale, 200_000, SeededRandomSource(3))
    assert error.deviation == pytest.approx(noise.std(), rel=0.05)
    # The forecast takes the noise for normal: a little more than that of a single draw.
    simulated = np.abs(noise).mean() * error.cells / 2 / 1_000
    assert simulated < error.distance < 1.2 * simulated


def test_the_expected_distance_of_a_range_release_is_that_of_its_noise(table):
    runs = [parley.Privelet(epsilon=1, method="basic", seed=i).fit(table, SCHEMA)
            for i in range(30)]  # fmt: skip
    expected = runs[0].column_errors[0]
    truth = table["letter"].value_counts()[["a", "b", "c"]].to_numpy() / 1_000
    found = np.mean([np.abs(run.shares[0] - truth).sum() / 2 for run in runs])
    assert expected.attributes == (0,)
    assert expected.distance == pytest.approx(found, rel=0.4)


def test_the_noise_of_a_shrunk_release_is_not_claimed_to_be_known(table):
    ranges = parley.Privelet(method="privelet*").fit(table, SCHEMA)
    assert ranges.column_errors == []


def test_a_table_drowned_in_noise_is_at_distance_one(table):
    drowned = parley.PrivBayes(epsilon=Fraction(1, 10**4)).fit(table, SCHEMA)
    assert max(error.distance for error in drowned.column_errors) == 1.0
