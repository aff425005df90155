"""The tables of a network, combined with the sums of the other phases."""

from fractions import Fraction

import numpy as np
import pytest

from common.bayes.domain import Domain
from common.marginals import count
from common.methods.dp_subn import estimation
from common.methods.dp_subn.estimation import NoisyTable, reused
from tests.harness.run_script import random_tables

SIZES = (2, 3, 4, 2)
DOMAIN = Domain.flat(SIZES)
PARAMETERS = [(1, 0), (2, 1), (3, 0, 1)]
EARLIER = [(0, 1), (1, 2, 3), (0, 3), (0, 2)]
ROWS = 3000


def measured(sets, noise, variance):
    (codes,) = random_tables(SIZES, [ROWS], seed=3).values()
    return [
        NoisyTable(variables=own, table=table + noise(table.shape), variance=Fraction(variance))
        for own, table in zip(sets, count(codes, sets), strict=True)
    ]


def exact(shape):
    return np.zeros(shape, dtype=np.int64)


def test_exact_sums_give_exact_tables():
    parameters = measured(PARAMETERS, exact, 50)
    found = reused(parameters, measured(EARLIER, exact, 200), DOMAIN, rows=ROWS)
    for own, table in zip(parameters, found, strict=True):
        assert table == pytest.approx(own.table, abs=1e-6)


def test_noise_of_either_sign_moves_the_tables_alike_so_they_have_no_bias():
    """The combination is linear: what noise does, the opposite noise undoes."""
    truth = measured(PARAMETERS, exact, 50)
    found = []
    for sign in (1, -1):
        generator = np.random.default_rng(5)

        def noise(shape, sign=sign, generator=generator):
            return sign * generator.integers(-40, 40, shape)

        sums = measured(PARAMETERS, noise, 50), measured(EARLIER, noise, 200)
        found.append(reused(*sums, DOMAIN, rows=ROWS))
    for own, up, down in zip(truth, *found, strict=True):
        assert np.abs(up - down).max() > 1
        assert (up + down) / 2 == pytest.approx(own.table, abs=1e-6)


def test_two_measurements_of_a_table_are_weighted_by_their_precision():
    parameters = measured([(1, 0)], lambda shape: np.array([[12, 0], [0, -12], [0, 0]]), 1)
    earlier = measured([(0, 1)], exact, 3)
    (found,) = reused(parameters, earlier, DOMAIN, rows=ROWS)
    truth = measured([(1, 0)], exact, 1)[0].table
    assert found == pytest.approx(truth + np.array([[9, 0], [0, -9], [0, 0]]))


def test_earlier_sums_take_noise_off():
    before = after = 0.0
    truth = [own.table for own in measured(PARAMETERS, exact, 1)]
    for seed in range(30):
        generator = np.random.default_rng(seed)

        def noise(shape, generator=generator):
            return np.rint(generator.normal(0, 20, shape)).astype(np.int64)

        parameters = measured(PARAMETERS, noise, 400)
        found = reused(parameters, measured(EARLIER, noise, 400), DOMAIN, rows=ROWS)
        before += sum(
            ((own.table - t) ** 2).sum() for own, t in zip(parameters, truth, strict=True)
        )
        after += sum(((table - t) ** 2).sum() for table, t in zip(found, truth, strict=True))
    assert after < 0.8 * before


def test_very_many_sums_are_left_alone(monkeypatch):
    monkeypatch.setattr(estimation, "MOST_TABLES", len(PARAMETERS))
    parameters = measured(PARAMETERS, lambda shape: np.ones(shape, np.int64), 50)
    found = reused(parameters, measured(EARLIER, exact, 1), DOMAIN, rows=ROWS)
    for own, table in zip(parameters, found, strict=True):
        assert (table == own.table).all()
