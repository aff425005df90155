"""What an attacker computes, against the same thing computed row by row."""

import numpy as np
import pytest

from common.analysis import attacks_scores
from common.analysis.attacks_scores import (
    agreements,
    closeness,
    density_ratio,
    equal_rows,
    guesses,
    telling_apart,
    unique_in,
)
from common.privacy.randomness import SeededRandomSource
from common.schema import Codes

SIZES = (3, 2, 4, 3)


def drawn(rows, seed):
    source = np.random.default_rng(seed)
    return Codes.from_columns([source.integers(0, size, rows) for size in SIZES], SIZES)


def tuples(codes):
    return list(zip(*(column.tolist() for column in codes.columns), strict=True))


@pytest.fixture(scope="module")
def tables():
    return drawn(150, 1), drawn(90, 2), drawn(70, 3)  # more than one block of targets


def brute(targets, rows):
    return np.array(
        [
            [sum(a == b for a, b in zip(x, y, strict=True)) for y in tuples(rows)]
            for x in tuples(targets)
        ]
    )


def test_agreements_and_closeness_are_counted_attribute_by_attribute(tables):
    targets, rows, _ = tables
    expected = brute(targets, rows)
    assert np.array_equal(np.vstack([equal for _, equal in agreements(targets, rows)]), expected)
    assert np.array_equal(closeness(targets, rows), expected.max(axis=1) - 4.0)


def test_the_density_ratio_compares_two_kernel_estimates(tables):
    targets, rows, reference = tables
    near = [(0.1 ** (4.0 - brute(targets, each))).mean(axis=1) for each in (rows, reference)]
    expected = np.log(near[0]) - np.log(near[1])
    assert density_ratio(targets, rows, reference) == pytest.approx(expected)


@pytest.mark.parametrize("position", range(4))
def test_a_guess_is_the_vote_of_the_closest_synthetic_rows(tables, position):
    targets, rows, _ = tables
    for right, target in zip(guesses(targets, rows, position), tuples(targets), strict=True):
        others = [
            sum(a == b for i, (a, b) in enumerate(zip(target, row, strict=True)) if i != position)
            for row in tuples(rows)
        ]
        votes = [
            row[position]
            for row, equal in zip(tuples(rows), others, strict=True)
            if equal == max(others)
        ]
        vote = max(range(SIZES[position]), key=votes.count)  # the first of equals
        assert right == (vote == target[position])


def test_statements_are_true_of_one_synthetic_row_and_of_none_without_their_last_part(tables):
    _, rows, other = tables
    statements = unique_in(rows, tries=60, source=SeededRandomSource(1))
    assert len(statements) > 10
    for each in statements:
        assert each.matches(rows) == 1
        shorter = attacks_scores.Conjunction(each.positions[:-1], each.values[:-1])
        assert shorter.matches(rows) > 1
        expected = [
            all(row[p] == v for p, v in zip(each.positions, each.values, strict=True))
            for row in tuples(other)
        ]
        assert each.matches(other) == sum(expected)


def test_equal_rows_are_counted_with_their_repetitions(tables):
    targets, rows, _ = tables
    expected = [tuples(rows).count(row) for row in tuples(targets)]
    assert equal_rows(targets, rows).tolist() == expected
    assert max(expected) > 1


def test_a_classifier_tells_different_tables_apart_and_equal_ones_not():
    ones, zeros = (Codes.from_columns([np.full(60, v)] * 3, (2, 2, 2)) for v in (1, 0))
    scores = telling_apart(Codes.from_columns([np.array([0, 1])] * 3, (2, 2, 2)), ones, zeros)
    assert scores[0] < 0.1 < 0.9 < scores[1]
    same = telling_apart(ones, ones, ones)
    assert same == pytest.approx(np.full(60, 0.5), abs=0.2)
