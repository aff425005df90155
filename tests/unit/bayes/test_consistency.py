"""Overlapping noisy tables are made to agree, and come closer to the truth."""

import numpy as np
import pytest
from scipy.optimize import minimize

from common.bayes.conditionals import sum_out
from common.bayes.consistency import consistent_tables, overlaps, reconcile
from common.bayes.domain import Domain, View
from common.marginals import count
from common.schema.codes import Codes

DOMAIN = Domain(
    (
        (np.arange(8), np.arange(8) // 2, np.arange(8) // 4),
        (np.arange(3),),
        (np.arange(2),),
        (np.arange(2),),
    )
)
FAMILIES = [
    (View(1), View(0, 1)),
    (View(2), View(0, 2), View(1)),
    (View(3), View(0, 0), View(2)),
]


def noisy_tables(scale, seed=0, rows=5000):
    generator = np.random.default_rng(seed)
    a = generator.choice(8, rows, p=np.arange(1, 9) / 36)
    codes = Codes.from_columns([a, a % 3, a // 4, generator.integers(0, 2, rows)], DOMAIN.sizes)
    expanded, columns = DOMAIN.expand(codes), {v: i for i, v in enumerate(DOMAIN.views)}
    exact = count(expanded, [[columns[v] for v in f] for f in FAMILIES])
    truth = dict(zip(FAMILIES, exact, strict=True))
    noise = {f: t + np.rint(generator.laplace(0, scale, t.shape)) for f, t in truth.items()}
    return truth, noise


def test_overlaps_are_closed_under_intersection_and_smallest_first():
    found = overlaps(FAMILIES, DOMAIN)
    assert {(View(0, 2),), (View(0, 2), View(1)), (View(0, 2), View(2)), (View(0, 1),)} <= set(
        found
    )
    sizes = [np.prod(DOMAIN.shape(family)) for family in found]
    assert sizes == sorted(sizes)


def test_tables_agree_on_every_overlap_and_on_the_number_of_rows():
    _, noise = noisy_tables(30)
    agreed = reconcile(noise, DOMAIN, rows=5000)
    for table in agreed.values():
        assert table.sum() == pytest.approx(5000)
    for wanted in ((View(0, 2),), (View(0, 1),), (View(0, 2), View(1)), (View(0, 2), View(2))):
        versions = [
            sum_out(table, family, wanted, DOMAIN)
            for family, table in agreed.items()
            if {v.attribute for v in wanted} <= {v.attribute for v in family}
            and all(dict(family)[a] <= level for a, level in wanted)
        ]
        assert len(versions) >= 2
        for version in versions[1:]:
            assert version == pytest.approx(versions[0], abs=1e-6)


def test_exact_tables_are_left_alone():
    truth, _ = noisy_tables(1)
    for family, table in consistent_tables(truth, DOMAIN, rows=5000).items():
        assert table == pytest.approx(truth[family], abs=1e-6)


def test_consistency_brings_tables_closer_to_the_truth():
    before = after = 0.0
    for seed in range(20):
        truth, noise = noisy_tables(30, seed)
        repaired = consistent_tables(noise, DOMAIN, rows=5000)
        before += sum(((noise[f] - truth[f]) ** 2).sum() for f in FAMILIES)
        after += sum(((repaired[f] - truth[f]) ** 2).sum() for f in FAMILIES)
        assert all((table >= 0).all() for table in repaired.values())
    assert after < 0.7 * before


def test_two_tables_with_one_shared_attribute_take_the_least_squares_solution():
    """The averaging is generalised least squares: compare with a numerical optimiser."""
    domain = Domain.flat([2, 2, 3])
    generator = np.random.default_rng(1)
    noise = {
        (View(0), View(1)): generator.normal(25, 10, (2, 2)),
        (View(0), View(2)): generator.normal(17, 10, (2, 3)),
    }
    agreed = reconcile(noise, domain, rows=100)
    start = np.concatenate([t.ravel() for t in noise.values()])

    def constraints(x):
        first, second = x[:4].reshape(2, 2), x[4:].reshape(2, 3)
        return np.r_[first.sum(axis=1) - second.sum(axis=1), first.sum() - 100]

    best = minimize(
        lambda x: ((x - start) ** 2).sum(),
        start,
        constraints={"type": "eq", "fun": constraints},
        method="SLSQP",
    )
    found = np.concatenate([t.ravel() for t in agreed.values()])
    assert found == pytest.approx(best.x, abs=1e-3)
