import json

import numpy as np

from common.marginals import count
from common.privacy.randomness import SeededRandomSource
from common.subn.chosen_families import Family
from common.subn.grouped_network import GroupedNetwork, fitted


def network() -> GroupedNetwork:
    margins = (np.array([0.5, 0.25, 0.25]), np.array([0.1, 0.4, 0.5]), np.array([1.0, 0.0]))
    # The child's first two values go with the parent's first, the third with the other two.
    family = Family((1, 0), ((0, 0, 1), (0, 1, 1)))
    return GroupedNetwork(margins, (family,), (np.array([[0.5, 0.0], [0.0, 0.5]]),))


def test_margins_are_met_and_dependence_is_kept():
    drawn = network().sample(10_000, SeededRandomSource("network"))
    pair, *ones = count(drawn, [(0, 1), (0,), (1,), (2,)])
    for counts, margin in zip(ones, network().margins, strict=True):
        assert np.abs(counts - 10_000 * margin).max() <= 10
    assert pair[0, 2] <= 20
    assert pair[1:, :2].sum() <= 20


def test_a_table_that_contradicts_the_margins_gives_way():
    joint = fitted(
        np.array([[0.9, 0.0], [0.0, 0.1]]), np.array([30.0, 70.0]), np.array([50.0, 50.0])
    )
    assert np.allclose(joint.sum(axis=0), 50)
    assert np.allclose(joint.sum(axis=1), [30, 70], atol=0.5)


def test_rows_need_not_be_many():
    for rows in (0, 1, 2):
        drawn = network().sample(rows, SeededRandomSource(rows))
        assert (drawn.rows, drawn.sizes) == (rows, (3, 3, 2))


def test_the_model_is_plain_values():
    assert json.loads(json.dumps(network().as_json()))["families"][0]["attributes"] == [1, 0]
