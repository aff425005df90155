"""Exact privacy loss of network learning, over all small tables and all networks."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from common.bayes.privbayes.learning import learn_binary_network
from common.bayes.privbayes.scores import Score, Scoring

WIDTH = 3


def log_probabilities(rows, degree, score, epsilon, printed):
    """ln Pr[network | root 0, table], for every network that can be drawn.

    One root is enough: all tables are visited, and the root is drawn uniformly.
    """
    rows = np.array(rows)

    def count(sets):
        radix = 2 ** np.arange(sets.shape[1])[::-1]
        return np.stack([np.bincount(rows[:, s] @ radix, minlength=2 * radix[0]) for s in sets])

    found = {}
    for choices in product(range(2), range(2 if degree == 1 else 1)):
        total, step = 0.0, iter(choices)

        def select(values, *, sensitivity, score_error):
            nonlocal total
            del score_error
            exponent = np.asarray(values, dtype=float) * float(epsilon / (WIDTH - 1))
            exponent = exponent / (2 * float(sensitivity))
            chosen = next(step)  # noqa: B023
            total += exponent[chosen] - np.logaddexp.reduce(exponent)
            return chosen

        network = learn_binary_network(
            count,
            Scoring(score, len(rows), printed),
            attributes=WIDTH,
            degree=degree,
            root=0,
            select=select,
        )
        found[network] = total
    return found


def largest_loss(n, degree, score, *, printed=False, epsilon=Fraction(1)):
    """The largest |ln ratio| between neighbours, over all tables of n rows."""
    values = list(product(range(2), repeat=WIDTH))
    laws = {
        table: log_probabilities([values[v] for v in table], degree, score, epsilon, printed)
        for table in combinations_with_replacement(range(len(values)), n)
    }
    loss = 0.0
    for table, law in laws.items():
        for place, value in product(range(n), range(len(values))):
            neighbour = tuple(sorted((*table[:place], *table[place + 1 :], value)))
            other = laws[neighbour]
            loss = max(loss, *(abs(law[network] - other[network]) for network in law))
    return loss


@pytest.mark.parametrize("rows", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("score", "printed", "degree", "expected"),
    [
        (Score.MAXIMUM_JOINT, False, 1, [0.383, 0.383, 0.562]),
        (Score.MAXIMUM_JOINT, False, 2, [0.25, 0.25, 0.281]),
        (Score.MUTUAL_INFORMATION, False, 1, [0.383, 0.383, 0.383]),
        (Score.MUTUAL_INFORMATION, False, 2, [0.25, 0.25, 0.25]),
        (Score.INDEPENDENCE, True, 1, [0.094, 0.137, 0.162]),
        (Score.INDEPENDENCE, True, 2, [0.063, 0.091, 0.107]),
        (Score.INDEPENDENCE, False, 1, [0.383, 0.383, 0.383]),
        (Score.INDEPENDENCE, False, 2, [0.25, 0.25, 0.25]),
    ],
)
def test_no_table_and_network_lose_more_than_the_budget(score, printed, degree, expected, rows):
    loss = largest_loss(rows, degree, score, printed=printed)
    assert loss <= 1
    assert loss == pytest.approx(expected[rows - 2], abs=6e-4)
