"""Brute force: no single replaced row moves a score further than its sensitivity.

This is the test that catches a wrong logarithm, a missing one half, and normalised scores, all of
which have been shipped by others. The mutants at the end must fail it.
"""

from fractions import Fraction
from math import log

import numpy as np
import pytest

from common.bayes.privbayes.scores import Score, Scoring, scores

SHAPES = [((2, 2), 14), ((2, 3), 8), ((2, 4), 6), ((3, 3), 6), ((3, 4), 5)]
CASES = [(shape, n) for shape, most in SHAPES for n in range(2, most + 1)]


def all_tables(shape, rows):
    """Every table of counts with this many rows: (tables, *shape)."""
    cells = shape[0] * shape[1]
    tables = np.zeros((1, 0), dtype=np.int64)
    left = np.array([rows])
    for _ in range(cells - 1):
        counts = [np.arange(n + 1) for n in left]
        repeat = np.repeat(np.arange(len(left)), left + 1)
        drawn = np.concatenate(counts)
        tables = np.hstack([tables[repeat], drawn[:, None]])
        left = left[repeat] - drawn
    return np.hstack([tables, left[:, None]]).reshape(-1, *shape)


def largest_move(score_of, shape, rows):
    """The largest |change| of a score over all tables and all single replaced rows."""
    tables = all_tables(shape, rows)
    values = score_of(tables)
    flat = tables.reshape(len(tables), -1)
    radix = (rows + 1) ** np.arange(flat.shape[1])
    keys = flat @ radix
    order = np.argsort(keys)
    largest = 0
    for source in range(flat.shape[1]):
        has = np.flatnonzero(flat[:, source] > 0)
        for target in range(flat.shape[1]):
            if source == target:
                continue
            moved = keys[has] - radix[source] + radix[target]
            neighbour = order[np.searchsorted(keys, moved, sorter=order)]
            largest = max(largest, np.abs(values[has] - values[neighbour]).max())
    return largest


def bound(score, shape, rows, *, printed=False):
    return Scoring(score, rows, printed).sensitivity(binary=2 in shape)


@pytest.mark.parametrize(("shape", "rows"), CASES)
def test_no_replaced_row_moves_a_score_beyond_its_sensitivity(shape, rows):
    distance = largest_move(lambda t: scores(Score.INDEPENDENCE, t), shape, rows)
    assert distance <= bound(Score.INDEPENDENCE, shape, rows)
    assert bound(Score.INDEPENDENCE, shape, rows) <= bound(
        Score.INDEPENDENCE, shape, rows, printed=True
    )
    information = largest_move(lambda t: scores(Score.MUTUAL_INFORMATION, t), shape, rows)
    limit = float(bound(Score.MUTUAL_INFORMATION, shape, rows))
    assert information <= limit + 1e-9
    if 2 in shape:
        assert distance == 2 * (rows - 1)  # n^2 R: (2/n)(1 - 1/n) is attained
        assert information == pytest.approx(limit, abs=1e-9)
        joint = largest_move(lambda t: scores(Score.MAXIMUM_JOINT, t), shape, rows)
        assert joint == bound(Score.MAXIMUM_JOINT, shape, rows) == 2
    elif shape == (3, 3) and rows % 2:
        assert information == pytest.approx(limit, abs=1e-9)


def test_brute_force_values_of_the_specification():
    distances = [
        Fraction(int(largest_move(lambda t: scores(Score.INDEPENDENCE, t), (3, 3), n)), n)
        for n in (3, 4, 5, 6)
    ]
    assert distances == [Fraction(4, 3), Fraction(7, 4), Fraction(9, 5), 2]
    information = [
        largest_move(lambda t: scores(Score.MUTUAL_INFORMATION, t), (3, 3), n) for n in (3, 4, 5, 6)
    ]
    assert information == pytest.approx([4, 4.754888, 5.509775, 6], abs=1e-6)


def test_the_bound_of_three_is_nearly_attained():
    """c(x2, p2) = 1 with margins sqrt(n): n * change of R tends to 3."""
    root = 1000
    n = root**2
    before = np.array([[n - 2 * root + 1, root - 1, 0], [root - 1, 1, 0], [0, 0, 0]])
    after = before.copy()
    after[1, 1] -= 1
    after[2, 2] += 1
    moved = scores(Score.INDEPENDENCE, np.stack([before, after]).astype(np.int64))
    assert 2.99 < abs(int(moved[1] - moved[0])) / n <= 3


@pytest.mark.parametrize(
    ("rows", "binary", "general", "f", "r"),
    [
        (21574, 7.342017e-4, 1.375702e-3, 4.635209e-5, 1.390606e-4),
        (47461, 3.577071e-4, 6.732749e-4, 2.106993e-5, 6.321068e-5),
        (45222, 3.738759e-4, 7.035263e-4, 2.211313e-5, 6.634037e-5),
        (38000, 4.383260e-4, 8.240214e-4, 2.631579e-5, 7.894875e-5),
    ],
)
def test_sensitivities_at_the_papers_sizes(rows, binary, general, f, r):
    def of(score, *, is_binary):
        return float(Scoring(score, rows, printed=True).sensitivity(binary=is_binary))

    assert of(Score.MUTUAL_INFORMATION, is_binary=True) / rows == pytest.approx(binary, rel=1e-6)
    assert of(Score.MUTUAL_INFORMATION, is_binary=False) / rows == pytest.approx(general, rel=1e-6)
    assert of(Score.MAXIMUM_JOINT, is_binary=True) / (2 * rows) == pytest.approx(f, rel=1e-6)
    assert of(Score.INDEPENDENCE, is_binary=False) / rows**2 == pytest.approx(r, rel=1e-6)


# --- mutants: shipped by others, refused here ----------------------------------------------------


def normalised(tables):
    """I / sqrt(H(X) H(P)), as some public implementations score."""

    def entropy(counts):
        share = counts / counts.sum(axis=1, keepdims=True)
        return -(share * np.log2(np.where(share > 0, share, 1))).sum(axis=1)

    rows = tables[0].sum()
    spread = np.sqrt(entropy(tables.sum(axis=2)) * entropy(tables.sum(axis=1)))
    information = scores(Score.MUTUAL_INFORMATION, tables) / rows
    return np.divide(information, spread, out=np.zeros_like(spread), where=spread > 0)


def test_normalised_mutual_information_does_not_have_the_plain_sensitivity():
    for rows in (4, 8, 12):
        moved = largest_move(normalised, (2, 2), rows)
        assert moved == pytest.approx(1)  # from 0 to 1 by one row, at any size
        assert moved > float(bound(Score.MUTUAL_INFORMATION, (2, 2), rows)) / rows


def test_a_sensitivity_in_nats_does_not_cover_information_in_bits():
    for rows in (4, 8, 12):
        moved = largest_move(lambda t: scores(Score.MUTUAL_INFORMATION, t), (2, 2), rows)
        assert moved > float(bound(Score.MUTUAL_INFORMATION, (2, 2), rows)) * log(2) * 1.4


def test_twice_r_does_not_have_the_sensitivity_of_r():
    for rows in (4, 8, 12):
        moved = largest_move(lambda t: 2 * scores(Score.INDEPENDENCE, t), (2, 2), rows)
        assert moved > bound(Score.INDEPENDENCE, (2, 2), rows)
    moved = largest_move(lambda t: 2 * scores(Score.INDEPENDENCE, t), (3, 3), 6)
    assert moved > bound(Score.INDEPENDENCE, (3, 3), 6)
