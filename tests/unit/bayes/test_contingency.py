"""Dependence in counts: by hand, and as often by chance as the test says."""

import numpy as np
import pytest

from common.bayes.contingency import cramers_v, significant


def test_cramers_v_of_known_tables():
    assert cramers_v(np.diag([3, 5, 2])) == pytest.approx(1.0)
    assert cramers_v(np.array([[4, 8], [3, 6]])) == pytest.approx(0.0)
    assert cramers_v(np.array([[5, 7], [0, 0]])) == 0.0
    assert cramers_v(np.array([[3, 1], [1, 3]])) == pytest.approx(0.5)


def test_one_value_depends_on_nothing():
    assert not significant(np.array([[5, 7], [0, 0]]), among=1)


def test_chance_is_not_significant_and_a_relation_is():
    rng = np.random.default_rng(2)
    for rows in (100, 1_200, 20_000):
        alone = [rng.multinomial(rows, np.full(24, 1 / 24)).reshape(4, 6) for _ in range(200)]
        assert not any(significant(counts, among=200) for counts in alone)
    law = np.full((4, 6), 0.5 / 24) + 0.5 / 4 * np.eye(4, 6)
    related = rng.multinomial(1_200, law.ravel() / law.sum()).reshape(4, 6)
    assert significant(related, among=200)
    assert not significant(related // 100, among=200)
