"""What stands between the sums of subn+ and the fit: weights of tables, and the price of noise."""

from fractions import Fraction

import numpy as np
import pytest

from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.losses import Measurement, Moments
from common.methods.subn_plus.models import both, mixture_model, noise_edge
from common.privacy.promise import Promise

MARGINS = (np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.7, 0.3]), np.array([0.25, 0.25, 0.5]))
GROUPINGS = (np.array([0, 0, 1, 2]), np.array([0, 1]), np.array([0, 1, 2]))


def moments(variance):
    widths = [int(own.max()) + 1 for own in GROUPINGS]
    pairs = [np.zeros((widths[a], widths[b])) for a, b in ((0, 1), (0, 2), (1, 2))]
    return Moments((0, 1, 2), GROUPINGS, pairs, variance)


def covariance():
    """Of the indicators of all groups, attribute by attribute."""
    size, at = sum(int(own.max()) + 1 for own in GROUPINGS), 0
    whole = np.zeros((size, size))
    for margin, grouping in zip(MARGINS, GROUPINGS, strict=True):
        weights = np.bincount(grouping, margin)
        end = at + len(weights)
        whole[at:end, at:end] = np.diag(weights) - np.outer(weights, weights)
        at = end
    return whole


def test_two_tables_of_one_thing_weigh_as_their_noise():
    one = Measurement((0,), (None,), np.array([100.0, 0.0]), 1.0)
    other = Measurement((0,), (None,), np.array([80.0, 20.0]), 3.0)
    made = both(one, other)
    assert made.counts.tolist() == pytest.approx([95.0, 5.0])
    assert made.variance == pytest.approx(0.75)  # 1 / (1 + 1/3)


@pytest.mark.parametrize("variance", [1e-6, 4e-6])
def test_the_price_is_the_norm_of_the_covariance_over_the_noise(variance):
    wanted = np.linalg.norm(covariance()) / np.sqrt(variance)
    assert noise_edge(moments(variance), MARGINS) == pytest.approx(wanted)


def test_noise_alone_shows_no_more_than_twice_the_price():
    generator, variance = np.random.default_rng(5), 1e-6
    values, vectors = np.linalg.eigh(covariance())
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
    largest = []
    for _ in range(200):
        noise = generator.normal(0, np.sqrt(variance), root.shape)
        symmetric = np.triu(noise, 1) + np.triu(noise, 1).T
        largest.append(np.linalg.eigvalsh(root @ symmetric @ root)[-1] / variance)
    edge = 2 * noise_edge(moments(variance), MARGINS)
    assert 0.4 * edge < np.mean(largest) < edge


@pytest.mark.parametrize(("pairs", "classes"), [(2, 64), (30, 160), (50, 256)])
def test_views_of_more_groups_are_fitted_by_more_classes(pairs, classes):
    sizes = (2,) * 2 * pairs
    facts = PublicFacts(sizes=sizes, parties=("a",), rows=1000, promise=Promise(Fraction(1)))
    even = np.full((2, 2), 250.0)
    views = [Measurement((2 * p, 2 * p + 1), (None, None), even, 1.0) for p in range(pairs)]
    assert len(mixture_model(facts, views).weights) == classes
