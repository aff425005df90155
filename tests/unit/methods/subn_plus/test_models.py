"""What stands between the sums of subn+ and the fit: weights of tables, and the price of noise."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from common.methods.subn_plus import models
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.losses import Measurement, Moments
from common.methods.subn_plus.models import both, joins, mixture_model, noise_edge
from common.privacy.promise import Promise
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift

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


def test_pairs_are_joined_all_or_without_a_common_attribute_or_in_part():
    pairs = [(0, 1), (1, 2), (3, 4)]
    whole, disjoint = frozenset(pairs), frozenset({(0, 1), (3, 4)})
    assert joins(pairs, parts=False) == [whole, disjoint]
    assert joins(pairs, parts=True) == [whole, disjoint, frozenset(pairs[:2]), frozenset()]
    assert joins([(0, 1)], parts=False) == [frozenset({(0, 1)})]
    assert joins([(0, 1)], parts=True) == [frozenset({(0, 1)}), frozenset()]
    assert joins([], parts=True) == [frozenset()]


def columns_of_chain(rows, values):
    """Return a - b - c, whose links hold in most rows."""
    rng = np.random.default_rng(8)
    columns = [rng.integers(0, values, rows)]
    for _ in range(2):
        kept = rng.random(rows) < 0.9
        columns.append(np.where(kept, columns[-1], rng.integers(0, values, rows)))
    return columns


def sums_of_chain(columns, noise, values):
    """Return margins, both links in detail and the contrasts of all pairs, in noise."""
    rng, rows = np.random.default_rng(9), len(columns[0])
    hot = [np.eye(values)[own] for own in columns]
    alone = [
        Measurement((a,), (None,), own.sum(axis=0) + rng.normal(0, 20, values), 400.0)
        for a, own in enumerate(hot)
    ]
    detail = [
        Measurement(
            (a, b), (None, None), hot[a].T @ hot[b] + rng.normal(0, noise, (values,) * 2), noise**2
        )
        for a, b in ((0, 1), (1, 2))
    ]
    variance = (noise / rows) ** 2
    shift = contrast_shift(values) / CONTRAST_UNIT
    sums = [
        (hot[a] - shift).T @ (hot[b] - shift) / rows + rng.normal(0, variance**0.5, (values,) * 2)
        for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    return alone, detail, Moments((0, 1, 2), (np.arange(values),) * 3, sums, variance)


@pytest.mark.parametrize(("noise", "values"), [(10.0, 8), (10.0, 16), (40.0, 16), (100.0, 8)])
def test_a_chain_is_joined_as_the_sums_themselves_choose(noise, values, monkeypatch):
    """Of trees, one pair and none, the nearest to the rows is chosen, or nearly so."""
    facts = PublicFacts(
        sizes=(values,) * 3, parties=("a",), rows=20_000, promise=Promise(Fraction(1))
    )
    columns = columns_of_chain(20_000, values)
    alone, detail, contrasts = sums_of_chain(columns, noise, values)

    def off():
        model = mixture_model(facts, alone, detail, [contrasts])
        tables = {
            (a, b): np.histogram2d(columns[a], columns[b], bins=np.arange(values + 1))[0]
            for a, b in combinations(range(3), 2)
        }
        off = [np.abs(model.together(p) - table / 20_000).sum() for p, table in tables.items()]
        return np.mean(off) / 2, len(model.links)

    chosen, links = off()
    every = []
    for way in joins([(0, 1), (1, 2)], parts=True):
        monkeypatch.setattr(models, "joins", lambda *_, parts, way=way: [way])
        every.append(off()[0])
    assert chosen <= 1.1 * min(every)
    assert max(every) > 1.2 * min(every)
    assert (links == 2) == (noise < 20)


def test_a_pair_that_is_noise_in_detail_is_not_joined():
    facts = PublicFacts(sizes=(8,) * 3, parties=("a",), rows=20_000, promise=Promise(Fraction(1)))
    alone, detail, contrasts = sums_of_chain(columns_of_chain(20_000, 8), 40.0, 8)
    wrong = Measurement((0, 2), (None, None), np.full((8, 8), 20_000 / 64), 1600.0)
    model = mixture_model(facts, alone, [detail[0], wrong], [contrasts])
    assert {0, 2} not in [{link.parent, link.child} for link in model.links]
