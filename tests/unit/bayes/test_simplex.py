"""The nearest possible table, and what its axes share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from common.bayes.simplex import mutual_information, onto_simplex
from common.errors import LocalError

finite = st.floats(-1e6, 1e6, allow_nan=False)


@given(arrays(np.float64, (3, 4), elements=finite), st.floats(0, 1e6))
def test_the_projection_is_non_negative_sums_to_the_total_and_keeps_order(values, total):
    projected = onto_simplex(values, total=total)
    assert (projected >= 0).all()
    assert projected.sum() == pytest.approx(total, abs=1e-6 * (1 + np.abs(values).sum()))
    order = np.argsort(values, axis=None, kind="stable")
    assert (np.diff(projected.ravel()[order]) >= -1e-9).all()


def test_projection_is_the_nearest_non_negative_table():
    generator = np.random.default_rng(2)
    for _ in range(20):
        table = generator.normal(0, 5, (3, 4))
        found = onto_simplex(table, total=10)
        assert found.sum() == pytest.approx(10)
        assert (found >= 0).all()
        for _ in range(50):  # no other feasible table is nearer
            other = generator.dirichlet(np.ones(12)).reshape(3, 4) * 10
            step = found + 0.1 * (other - found)
            assert ((step - table) ** 2).sum() >= ((found - table) ** 2).sum() - 1e-9


def test_a_negative_total_is_refused():
    with pytest.raises(LocalError, match="cannot sum to -1"):
        onto_simplex(np.ones(3), total=-1)


def test_information_is_one_bit_of_a_copy_and_none_of_independent_columns():
    assert mutual_information(np.diag([5.0, 5.0])) == pytest.approx(1)
    assert mutual_information(np.outer([1.0, 3.0], [2.0, 2.0])) == pytest.approx(0)
    assert mutual_information(-np.ones((2, 2))) == 0
