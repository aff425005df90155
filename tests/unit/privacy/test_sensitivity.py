"""Every sensitivity against all neighbouring tables of small size, with oracles of its own."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from common.errors import LocalError
from common.privacy import sensitivity

SHAPES = [((2, 2), 20), ((2, 3), 10), ((2, 4), 7), ((3, 3), 7), ((3, 4), 5)]
SMALL = [(shape, rows) for shape, most in SHAPES for rows in range(1, most + 1)]


def all_tables(shape: tuple[int, int], rows: int) -> np.ndarray:
    """All (tables, cells) of `rows` rows, by stars and bars."""
    cells = math.prod(shape)
    bars = np.array(list(combinations(range(rows + cells - 1), cells - 1)))
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, rows + cells - 1)))
    return np.diff(edges, axis=1) - 1


def largest_change(shape: tuple[int, int], rows: int, score) -> float:
    """The largest change of a score over all pairs of tables that differ in one replaced row."""
    tables = all_tables(shape, rows)
    weights = (rows + 1) ** np.arange(tables.shape[1])
    keys = tables @ weights
    order = np.argsort(keys)
    scores = score(tables.reshape(-1, *shape), rows)[order]
    keys = keys[order]
    largest = 0.0
    for left, right in product(range(tables.shape[1]), repeat=2):
        has_row = tables[order][:, left] > 0
        moved = keys[has_row] - weights[left] + weights[right]
        found = np.searchsorted(keys, moved)
        if has_row.any():
            largest = max(largest, float(np.abs(scores[found] - scores[has_row]).max()))
    return largest


def plog(counts):
    return np.where(counts > 0, counts * np.log2(np.maximum(counts, 1)), 0.0)


def information(tables, rows):
    return (
        plog(tables).sum((1, 2))
        - plog(tables.sum(2)).sum(1)
        - plog(tables.sum(1)).sum(1)
        + rows * np.log2(rows)
    )


def total_variation(tables, rows):
    outer = tables.sum(2)[:, :, None] * tables.sum(1)[:, None, :]
    return np.abs(rows * tables - outer).sum((1, 2)) / (2 * rows)


def score_f(tables, rows):
    patterns = np.array(list(product([0, 1], repeat=tables.shape[2])))
    first = tables[:, 0] @ patterns.T
    second = tables[:, 1] @ (1 - patterns).T
    return (np.minimum(first, rows / 2) + np.minimum(second, rows / 2)).max(1) - rows


def normalised_information(tables, rows):
    entropy = np.log2(rows) - plog(tables.sum(2)).sum(1) / rows
    other = np.log2(rows) - plog(tables.sum(1)).sum(1) / rows
    smaller = np.minimum(entropy, other)
    informed = information(tables, rows) / np.maximum(smaller, 1e-12)
    return np.where(smaller > 1e-9, informed, 0.0)


@pytest.mark.parametrize(("shape", "rows"), SMALL)
def test_mutual_information_never_moves_further_than_its_lemma(shape, rows):
    binary = min(shape) == 2
    bound = float(sensitivity.mutual_information(rows, binary=binary))
    largest = largest_change(shape, rows, information)
    assert largest <= bound + 1e-9
    # In a 2x2 table as in every binary one the bound is attained; in general for odd n.
    if binary or (rows % 2 == 1 and rows > 1):
        assert largest == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize(("shape", "rows"), [case for case in SMALL if case[0][0] == 2])
def test_score_f_moves_by_exactly_one(shape, rows):
    largest = largest_change(shape, rows, score_f)
    assert largest <= sensitivity.score_f(rows)
    assert largest == 1 or rows == 1


@pytest.mark.parametrize(("shape", "rows"), SMALL)
def test_score_r_never_moves_further_than_its_bound(shape, rows):
    binary = min(shape) == 2
    bound = sensitivity.score_r(rows, binary=binary)
    largest = largest_change(shape, rows, total_variation)
    assert largest <= bound + 1e-9
    assert bound <= sensitivity.score_r(rows, binary=binary, printed=True)
    if binary:
        assert largest == pytest.approx(float(bound), abs=1e-9)


def test_score_r_of_general_tables_comes_close_to_three():
    """The family with c(x2, p2) = 1 and both margins sqrt(n): the general bound is tight."""
    side, rows = 1000, 10**6
    before = np.array([[[rows - 2 * side + 1, side - 1], [side - 1, 1]]])
    # The one row of (x2, p2) becomes a row of values of its own.
    before = np.pad(before, ((0, 0), (0, 1), (0, 1)))
    after = before.copy()
    after[0, 1, 1] -= 1
    after[0, 2, 2] += 1
    moved = np.abs(total_variation(before, rows) - total_variation(after, rows))
    assert 2.99 < moved <= 3


@pytest.mark.parametrize(
    ("score", "bound"),
    [
        (information, lambda rows: math.log(2) * sensitivity.mutual_information(rows, binary=True)),
        (lambda tables, rows: 2 * total_variation(tables, rows), lambda rows: 3),
        (
            normalised_information,
            lambda rows: sensitivity.mutual_information(rows, binary=True) / rows,
        ),
    ],
    ids=["natural-logarithm bound", "distance without its half", "normalised information"],
)
def test_the_brute_force_catches_the_usual_mistakes(score, bound):
    assert any(
        largest_change((2, 2), rows, score) > float(bound(rows)) + 1e-9 for rows in range(4, 13)
    )


def norms(changes):
    """The L1 norm and the square of the L2 norm."""
    return sum(map(abs, changes)), sum(change**2 for change in changes)


def norms_of(moved):
    return moved.l1, moved.l2_squared


def test_the_norms_for_people_are_never_too_small():
    moved = sensitivity.histograms(8)
    assert (moved.in_norm(1), moved.in_norm(2)) == (16, 4)
    root = sensitivity.histograms(1).in_norm(2)
    assert root**2 > 2 > (root - Fraction(2, 10**6)) ** 2
    assert sensitivity.histograms(1) + sensitivity.histograms(2) == sensitivity.histograms(3)


@pytest.mark.parametrize("sets", [[(0,)], [(0,), (1,)], [(0, 1), (0,), (1,)]])
def test_histograms_together_move_by_two_each(sets):
    rows = list(product(range(2), range(3)))
    largest = (0, 0)
    for old, new in product(rows, repeat=2):
        changes = []
        for attributes in sets:
            before = Counter([tuple(old[a] for a in attributes)])
            before.subtract([tuple(new[a] for a in attributes)])
            changes += before.values()
        largest = max(largest, norms(changes))
    assert largest == norms_of(sensitivity.histograms(len(sets)))


@pytest.mark.parametrize("attributes", range(9))
def test_agreements_of_all_pairs_move_by_their_bound_and_no_further(attributes):
    # Other rows cancel: only the row that leaves and the one that enters count.
    before, after = (
        np.array(list(product((0, 1), repeat=attributes)), dtype=np.int64) for _ in range(2)
    )
    pairs = list(combinations(range(attributes), 2))

    def agreeing(rows):
        columns = [rows[:, a] == rows[:, b] for a, b in pairs]
        return np.array(columns, dtype=np.int64).T.reshape(len(rows), -1)

    moved = agreeing(before)[:, None, :] - agreeing(after)[None, :, :]
    largest = (np.abs(moved).sum(axis=2).max(), (moved**2).sum(axis=2).max())
    assert largest == norms_of(sensitivity.agreements(attributes))


@pytest.mark.parametrize("pairs", [[(0, 1)], [(0, 1), (2, 3)], [(0, 1), (1, 2), (0, 2)], []])
def test_agreements_of_chosen_pairs_move_by_no_more_than_their_number(pairs):
    rows = np.array(list(product((0, 1), repeat=4)), dtype=np.int64)
    agreeing = np.array([rows[:, a] == rows[:, b] for a, b in pairs], dtype=np.int64)
    moved = np.abs(agreeing[:, :, None] - agreeing[:, None, :]) if pairs else np.zeros((1, 1, 1))
    largest = moved.sum(axis=0).max()
    bound = sensitivity.chosen_agreements(len(pairs))
    assert largest <= bound.l1 == bound.l2_squared
    if len({a for pair in pairs for a in pair}) == 2 * len(pairs):
        assert largest == bound.l1  # attained


def test_mutual_information_is_rounded_up_by_almost_nothing():
    exact = Fraction(2)  # n = 2, binary: log 2 + log 2
    bound = sensitivity.mutual_information(2, binary=True)
    assert exact <= bound < exact + Fraction(1, 10**30)


def test_a_table_without_rows_has_no_sensitivity():
    for call in (
        lambda: sensitivity.mutual_information(0, binary=True),
        lambda: sensitivity.score_f(0),
        lambda: sensitivity.score_r(0, binary=False),
        lambda: sensitivity.histograms(-1),
        lambda: sensitivity.agreements(-1),
        lambda: sensitivity.chosen_agreements(-1),
    ):
        with pytest.raises(LocalError):
            call()


@pytest.mark.parametrize(("columns", "classes"), [(1, 1), (1, 3), (2, 2)])
def test_totals_by_classes_move_no_further_than_one_total(columns, classes):
    largest = 2
    rows = []  # what one row can add: in each column, a number to one class, or nothing
    for own in product([*product(range(classes), range(-largest, largest + 1))], repeat=columns):
        vector = np.zeros((columns, classes), dtype=int)
        for column, (place, number) in enumerate(own):
            vector[column, place] = number
        rows.append(vector.ravel())
    moved = np.array([one - other for one in rows for other in rows])
    found = sensitivity.class_totals(columns, largest=largest)
    assert np.abs(moved).sum(axis=1).max() == found.l1
    assert (moved**2).sum(axis=1).max() == found.l2_squared
    with pytest.raises(LocalError):
        sensitivity.class_totals(-1, largest=1)
