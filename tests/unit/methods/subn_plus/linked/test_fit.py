"""The fit: independent without sums of pairs, equal for equal sums, close to exact sums."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from common.methods.subn_plus.linked.fit import Column, price_of
from common.methods.subn_plus.linked.requests import AveragedTables, NextTables
from common.study.requests import RowsInMemory
from tests.harness.linked import linked_codes
from tests.harness.linked_runs import fitted

PAIRS = ((0, 3), (1, 3), (2, 4), (3, 4))


def shares(linked):
    """Pairs of people and events, and consecutive events, as shares of their totals."""
    groups = tuple(tuple(range(size)) for size in (*linked.with_number.sizes, *linked.events.sizes))
    requests = AveragedTables(PAIRS, groups, 3, linked.most), NextTables(groups[3:], linked.most)
    answers = [request.answer(RowsInMemory(linked)) for request in requests]
    return [answer / answer.sum() for answer in answers]


def test_large_budgets_lead_close_to_the_rows():
    linked = linked_codes(4000)
    model = fitted(linked, epsilon=200)
    synthetic = model.sample(linked)
    for real, own in zip(shares(linked), shares(synthetic), strict=True):
        assert np.abs(real - own).sum() / 2 < 0.08
    independent = fitted(linked, epsilon=Fraction(1, 10)).sample(linked)
    assert np.abs(shares(linked)[1] - shares(independent)[1]).sum() / 2 > 0.25  # with power


def test_equal_sums_give_equal_models():
    linked = linked_codes(1500)
    one, other = (fitted(linked, epsilon=20).model.as_json() for _ in range(2))
    assert one == other


def test_values_in_no_table_of_pairs_share_what_the_margin_says():
    column = Column(np.array([0.1, 0.2, 0.3, 0.4]), 1e-4, np.array([0, 0, 1, 1]), np.zeros(4, int))
    assert column.atoms.tolist() == [0, 0, 1, 1]
    spread = column.spread(np.array([[0.3, 0.7], [0.9, 0.1]]))
    assert spread[1] == pytest.approx([0.3, 0.6, 0.3 / 7, 0.4 / 7])


def test_information_costs_more_where_sums_are_more_precise():
    column = Column(np.full(4, 0.25), 1e-4, np.arange(4), np.zeros(4, int))
    low, high = (price_of([column], precision) for precision in (1e2, 1e4))
    assert high == pytest.approx(10 * low)
    assert price_of([column], 1e4, later=True) == 0
    assert price_of([replace(column, groups=np.arange(4) // 2)], 1e4) != high
