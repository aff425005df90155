"""The noisy tables: the ledger of sensitivities, noise in every cell, and the budget."""

from fractions import Fraction

import numpy as np
import pytest

from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair, needed_families
from common.bayes.privbayes import mechanism as privbayes
from common.bayes.privbayes.mechanism import ExpandedRows, measure_tables
from common.errors import PolicyError
from common.privacy.accountant import Accountant
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema.codes import Codes

MIXED = Domain(((np.arange(8), np.arange(8) // 2), (np.arange(3),), (np.arange(2),)))
NETWORKS = {
    "binary, degree 2": (
        Domain.flat([2] * 5),
        Network.from_parents({i: range(max(0, i - 2), i) for i in range(5)}),
        3,
    ),
    "binary, degree 0": (Domain.flat([2] * 5), Network(tuple(Pair(i) for i in range(5))), 5),
    "binary, degree 4": (
        Domain.flat([2] * 5),
        Network.from_parents({i: range(i) for i in range(5)}),
        1,
    ),
    "general": (MIXED, Network((Pair(0), Pair(1, (View(0, 1),)), Pair(2, (View(1),)))), 3),
}


def opposite_neighbours(domain, rows=30):
    """Two tables that differ in one row, in every attribute of it and at every level."""
    columns = [np.arange(rows) % size for size in domain.sizes]
    first = [np.r_[0, c[1:]] for c in columns]
    second = [np.r_[size - 1, c[1:]] for c, size in zip(columns, domain.sizes, strict=True)]
    return (Codes.from_columns(c, domain.sizes) for c in (first, second))


def release(codes, domain, network, epsilon=Fraction(1), caps=None):
    accountant = Accountant(caps or {"owner": None})
    tables = measure_tables(
        ExpandedRows(domain, codes),
        network,
        epsilon=epsilon,
        source=SeededRandomSource(1),
        accountant=accountant,
    )
    return tables, accountant


def ledger(monkeypatch, codes, domain, network, epsilon):
    """Every (counts, scale) that noise was asked for, with the noise itself left out."""
    asked = []

    def no_noise(scale, number, source):
        asked.append(scale)
        return np.zeros(number, dtype=np.int64)

    monkeypatch.setattr(privbayes, "discrete_laplace", no_noise)
    tables, _ = release(codes, domain, network, epsilon)
    monkeypatch.undo()
    return list(tables.values()), asked


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(7, 5)])
def test_worst_neighbours_cost_exactly_the_budget(monkeypatch, name, epsilon):
    domain, network, tables = NETWORKS[name]
    first, second = opposite_neighbours(domain)
    counts, scales = ledger(monkeypatch, first, domain, network, epsilon)
    others, _ = ledger(monkeypatch, second, domain, network, epsilon)
    assert len(counts) == tables
    spent = sum(
        Fraction(int(np.abs(a - b).sum())) / scale
        for a, b, scale in zip(counts, others, scales, strict=True)
    )
    assert spent == epsilon
    # Mutants: noise meant for probabilities (scale / n), and d instead of d - k tables' worth.
    assert sum(2 / (scale / first.rows) for scale in scales) > epsilon


def test_noise_meant_for_probabilities_is_not_added_to_counts():
    """A public implementation used 2(d-k)/(n eps) on counts: n times too little."""
    domain, network, tables = NETWORKS["binary, degree 2"]
    rows, epsilon = 10_000, Fraction(1, 2)
    codes = Codes.from_columns([np.zeros(rows, dtype=int)] * 5, [2] * 5)
    drawn = []
    for seed in range(300):
        released = measure_tables(
            ExpandedRows(domain, codes),
            network,
            epsilon=epsilon,
            source=SeededRandomSource(seed),
            accountant=Accountant({"owner": None}),
        )
        for family, table in released.items():
            truth = np.zeros_like(table)
            truth.flat[0] = rows
            assert table.shape == domain.shape(family)
            drawn.append((table - truth).ravel())
    noise = np.abs(np.concatenate(drawn))
    scale = 2 * tables / float(epsilon)
    assert noise.mean() == pytest.approx(scale, rel=0.06)  # 7,200 draws: 5 standard errors
    assert (noise == 0).mean() < 0.1  # empty cells are noisy as well


def test_every_cell_of_every_table_is_noisy_even_the_empty_ones():
    domain, network, _ = NETWORKS["general"]
    codes = Codes.from_columns([np.zeros(50, dtype=int)] * 3, domain.sizes)
    tables, _ = release(codes, domain, network, Fraction(1, 10**9))
    cells = sum(table.size for table in tables.values())
    assert cells == sum(np.prod(domain.shape(p.family)) for p in network.pairs if p.child) + 8
    for table in tables.values():
        assert (table != 0).all()


def test_the_rows_are_read_once_per_table(monkeypatch):
    domain, network, tables = NETWORKS["binary, degree 2"]
    asked = []
    original = ExpandedRows.count
    monkeypatch.setattr(
        ExpandedRows, "count", lambda self, fs: (asked.append(list(fs)), original(self, fs))[1]
    )
    release(next(opposite_neighbours(domain)), domain, network)
    assert asked == [needed_families(network)]
    assert len(asked[0]) == tables


def test_a_refused_charge_releases_nothing(monkeypatch):
    domain, network, _ = NETWORKS["general"]
    monkeypatch.setattr(
        privbayes, "discrete_laplace", lambda *_: pytest.fail("noise was drawn after a refusal")
    )
    codes = next(opposite_neighbours(domain))
    with pytest.raises(PolicyError):
        release(codes, domain, network, Fraction(1), caps={"owner": Fraction(1, 2)})


def test_the_charge_names_the_scale():
    domain, network, tables = NETWORKS["general"]
    _, accountant = release(next(opposite_neighbours(domain)), domain, network, Fraction(1, 2))
    (only,) = accountant.charges
    assert only.costs == {"owner": Fraction(1, 2)}
    assert only.scale == 2 * tables * 2
    assert only.sensitivities == {"owner": 2 * tables}


def test_discrete_laplace_is_the_noise_in_use():
    assert privbayes.discrete_laplace is discrete_laplace
