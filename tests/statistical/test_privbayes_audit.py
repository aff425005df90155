"""White-box audits of both phases of PrivBayes: the loss comes close to epsilon, never above."""

from fractions import Fraction

import numpy as np
import pytest

from common.bayes.domain import Domain
from common.bayes.network import Network, needed_families
from common.bayes.privbayes.decisions import Encoding, PrivBayesOptions
from common.bayes.privbayes.mechanism import (
    ExpandedRows,
    PrivateSelect,
    fit_privbayes,
    measure_tables,
)
from common.bayes.privbayes.parent_sets import Constraints
from common.bayes.privbayes.scores import Score, Scoring, scores
from common.privacy.accountant import Accountant
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema.codes import Codes
from tests.harness.audit import audit, laplace_log_likelihood_ratio

pytestmark = pytest.mark.statistical

WIDTH = 3
NETWORK = Network.from_parents({i: range(max(0, i - 1), i) for i in range(WIDTH)})  # 2 tables
RUNS = 400_000
DRAWS = 5_000


def neighbours(width=WIDTH, rows=20):
    """Two tables that differ in one row, in every attribute."""
    rest = np.arange(rows - 1) % 2
    return tuple(Codes.from_columns([np.r_[first, rest]] * width, [2] * width) for first in (0, 1))


def released_scale(codes, epsilon):
    """The noise scale that a release of the network's tables really uses."""
    accountant = Accountant({"owner": None})
    measure_tables(
        ExpandedRows(Domain.flat(codes.sizes), codes),
        NETWORK,
        epsilon=epsilon,
        source=SeededRandomSource(0),
        accountant=accountant,
    )
    return accountant.charges[0].scale


def table_audit(factor):
    """Audit the tables at epsilon 1, their noise multiplied by `factor`.

    Cells that the neighbours share say nothing; they are left out to draw more runs.
    """
    codes = neighbours()
    exact = [
        np.concatenate(
            [
                table.ravel()
                for table in ExpandedRows(Domain.flat(each.sizes), each).count(
                    needed_families(NETWORK)
                )
            ]
        )
        for each in codes
    ]
    changed = np.flatnonzero(exact[0] != exact[1])
    first, second = (counts[changed] for counts in exact)
    scale = released_scale(codes[0], Fraction(1))
    source = SeededRandomSource("audit")
    ratios = []
    for truth in (first, second):
        noise = discrete_laplace(scale * factor, RUNS * len(changed), source)
        outputs = truth + noise.reshape(RUNS, len(changed))
        ratios.append(laplace_log_likelihood_ratio(outputs, first, second, scale))
    return ratios, audit(*ratios, confidence=1 - 1e-6)


def test_the_tables_lose_what_they_cost_and_no_more():
    ratios, result = table_audit(Fraction(1))
    assert max(np.abs(ratio).max() for ratio in ratios) <= 1 + 1e-9
    assert not result.contradicts(1)
    assert result.epsilon_lower_bound > 0.85  # there is power


@pytest.mark.parametrize("factor", [Fraction(694, 1000), Fraction(1, 2), Fraction(1, 10)])
def test_too_little_noise_is_convicted(factor):
    _, result = table_audit(factor)
    assert result.contradicts(1)


def draw_audit(mistake):
    """One draw at epsilon 4 among 20 tables: on the neighbour one falls and 19 rise by all of F."""
    high, low = [[1, 0], [0, 3]], [[0, 0], [0, 4]]  # one replaced row apart
    bound = Scoring(Score.MAXIMUM_JOINT, rows=4).sensitivity(binary=True)
    statistics = []
    for side, tables in enumerate(([high] + [low] * 19, [low] + [high] * 19)):
        values = scores(Score.MAXIMUM_JOINT, np.array(tables, dtype=np.int64))
        assert abs(int(values[0] - values[1])) == bound
        select = PrivateSelect(
            Accountant({"owner": None}),
            epsilon=Fraction(4 * DRAWS),
            draws=DRAWS,
            source=SeededRandomSource(f"draw {side}"),
        )
        chosen = [
            select(values, sensitivity=bound * mistake, score_error=Fraction(0))
            for _ in range(DRAWS)
        ]
        statistics.append(-np.array(chosen, dtype=np.float64))
    return audit(*statistics, confidence=1 - 1e-6)


def test_a_draw_of_the_network_loses_what_it_costs_and_no_more():
    result = draw_audit(Fraction(1))
    assert not result.contradicts(4)
    assert result.epsilon_lower_bound > 2.5  # the exact loss is 3.68


def test_half_the_sensitivity_is_convicted():
    assert draw_audit(Fraction(1, 2)).contradicts(4)


@pytest.mark.slow
def test_the_whole_fit_is_not_convicted():
    """Black box, on the number of ones in the first table: a smoke test, the bound is loose."""
    found = []
    for side, codes in enumerate(neighbours(width=3, rows=8)):
        source = SeededRandomSource(f"fit {side}")
        totals = []
        for _ in range(1500):
            model = fit_privbayes(
                codes,
                epsilon=Fraction(1),
                source=source,
                accountant=Accountant({"owner": None}),
                options=PrivBayesOptions(
                    encoding=Encoding.BINARY,
                    theta=Fraction(1, 100),
                    constraints=Constraints(max_parents=1),
                ),
            )
            totals.append(-sum(float(table[..., 1:].sum()) for table in model.tables.values()))
        found.append(np.array(totals))
    result = audit(*found, confidence=1 - 1e-6)
    assert not result.contradicts(1)
