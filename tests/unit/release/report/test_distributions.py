"""Charts of one attribute: small domains value by value, large ones in groups that add up."""

import re

import numpy as np
import pytest

from common.release.report.charts import Series
from common.release.report.distributions import _groups, _interval, distribution
from tests.unit.schema.every_kind import single


def attribute(kind, **keys):
    return single(kind, **keys).attributes[0]


ORDERED = attribute("integer", min=0, max=99, bins=50, missing="true", other="true")
WORDS = attribute("categorical", values=[f"w{n}" for n in range(40)])
SMALL = attribute("categorical", values=["a", "b"], missing="true")


@pytest.mark.parametrize("of", [ORDERED, WORDS, SMALL], ids=["ordered", "words", "small"])
def test_every_value_is_in_one_row_and_there_are_few(of):
    shares = np.random.default_rng(1).dirichlet(np.ones(of.size))
    groups = _groups(of, shares)
    places = np.concatenate([own for _, own in groups])
    assert sorted(places.tolist()) == list(range(of.size))
    assert len(groups) == min(of.size, 16)


def test_neighbours_of_an_order_are_put_together_and_special_values_stand_alone():
    labels = [label for label, _ in _groups(ORDERED, np.ones(52) / 52)]
    assert labels[0] == "0..7"
    assert labels[-2:] == ["(other)", "(missing)"]
    for _, own in _groups(ORDERED, np.ones(52) / 52):
        assert (np.diff(own) == 1).all()


def test_of_many_words_the_most_frequent_are_shown_and_the_rest_together():
    shares = np.arange(40) / np.arange(40).sum()
    groups = _groups(WORDS, shares)
    assert [label for label, _ in groups[:3]] == ["w39", "w38", "w37"]
    assert groups[-1][0] == "25 others"
    assert len(groups[-1][1]) == 25


def test_an_interval_grows_with_the_root_of_the_values_in_it():
    noisy = np.full(10, 0.05)
    low, high = _interval(noisy, np.arange(4), deviation=0.01)
    assert (low + high) / 2 == pytest.approx(0.2)
    assert (high - low) / 2 == pytest.approx(1.96 * 0.01 * 2)


def test_a_chart_prints_the_shares_of_its_groups():
    shares = np.arange(40) / np.arange(40).sum()
    drawn = distribution(WORDS, [Series("released", shares.tolist())])
    assert "Distribution of x" in drawn
    others = f"{shares[:25].sum():.1%}"
    assert re.search(re.escape(others), drawn)
