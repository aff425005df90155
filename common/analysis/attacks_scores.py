"""What an attacker computes from synthetic rows: scores of membership, guesses, statements.

All attacks work on codes: within a bin, a release draws numbers without reference to rows, so the
codes hold everything that could betray one. The distance of two rows is the number of attributes
in which they differ.

The attacker has the synthetic rows and a reference: rows of the same population that were not in
the study. Two scores compare both, so that a row that is frequent everywhere is not suspected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.privacy.randomness import RandomSource, below, permutation
from common.schema import Codes

Scores = NDArray[np.float64]
Counts = NDArray[np.int64]
_BLOCK = 64  # targets that are compared with all rows at once
_KERNEL = 0.1  # weight of a row at one attribute's distance, against one that is equal
_TREES = 100


def agreements(targets: Codes, rows: Codes) -> Iterator[tuple[slice, NDArray[np.int32]]]:
    """Yield, for blocks of targets, in how many attributes each agrees with each of the rows."""
    for start in range(0, targets.rows, _BLOCK):
        block = slice(start, min(start + _BLOCK, targets.rows))
        equal = np.zeros((block.stop - block.start, rows.rows), dtype=np.int32)
        for ours, theirs in zip(targets.columns, rows.columns, strict=True):
            equal += ours[block, None] == theirs[None, :]
        yield block, equal


def closeness(targets: Codes, synthetic: Codes) -> Scores:
    """Score a target by its closest synthetic row: minus the distance to it."""
    scores = np.empty(targets.rows)
    for block, equal in agreements(targets, synthetic):
        scores[block] = equal.max(axis=1) - float(targets.width)
    return scores


def density_ratio(targets: Codes, synthetic: Codes, reference: Codes) -> Scores:
    """Score a target by the synthetic rows near it against the reference rows near it.

    Both densities are kernel estimates, whose kernel falls by `_KERNEL` with every attribute that
    differs [van Breugel, Sun, Qian, van der Schaar 2023].
    """
    return _log_density(targets, synthetic) - _log_density(targets, reference)


def _log_density(targets: Codes, rows: Codes) -> Scores:
    scores = np.empty(targets.rows)
    weights = _KERNEL ** np.arange(targets.width, -1, -1, dtype=np.float64)  # by agreements
    for block, equal in agreements(targets, rows):
        scores[block] = np.log(weights[equal].mean(axis=1))
    return scores


def telling_apart(targets: Codes, first: Codes, second: Codes) -> Scores:
    """Score targets by a classifier (a random forest) of two tables; high is like the first."""
    from sklearn.ensemble import RandomForestClassifier

    train = np.vstack([_matrix(first), _matrix(second)])
    labels = np.repeat([1, 0], [first.rows, second.rows])
    model = RandomForestClassifier(
        _TREES, min_samples_leaf=2, class_weight="balanced", random_state=0
    )
    model.fit(train, labels)
    return np.asarray(model.predict_proba(_matrix(targets))[:, 1], dtype=np.float64)


def _matrix(codes: Codes) -> NDArray[np.float32]:
    return np.column_stack(codes.columns).astype(np.float32)


def guesses(targets: Codes, synthetic: Codes, position: int) -> NDArray[np.bool_]:
    """Return where a guess of one attribute is right, made from all other attributes.

    The guess is the most frequent value among the synthetic rows that are closest to the target.
    """
    right = np.empty(targets.rows, dtype=np.bool_)
    values = np.eye(targets.sizes[position], dtype=np.float32)[synthetic.columns[position]]
    for block, equal in agreements(targets, synthetic):
        truth = targets.columns[position][block]
        others = equal - (truth[:, None] == synthetic.columns[position][None, :])
        closest = others == others.max(axis=1, keepdims=True)
        votes = closest.astype(np.float32) @ values
        right[block] = votes.argmax(axis=1) == truth
    return right


@dataclass(frozen=True, slots=True)
class Conjunction:
    """The statement that some attributes have these values."""

    positions: tuple[int, ...]
    values: tuple[int, ...]

    def matches(self, rows: Codes) -> int:
        true = np.ones(rows.rows, dtype=np.bool_)
        for position, value in zip(self.positions, self.values, strict=True):
            true &= rows.columns[position] == value
        return int(true.sum())


def unique_in(synthetic: Codes, *, tries: int, source: RandomSource) -> list[Conjunction]:
    """Draw statements that are true of one synthetic row: what singles out there may do so here.

    Attributes are added in a random order until one row is left. Rows that equal another one give
    no statement.
    """
    statements = []
    for _ in range(tries):
        row, order = below(synthetic.rows, source), permutation(synthetic.width, source)
        alike = np.arange(synthetic.rows)
        for length, position in enumerate(order, start=1):
            column = synthetic.columns[position]
            alike = alike[column[alike] == column[row]]
            if len(alike) == 1:
                positions = tuple(order[:length])
                values = tuple(int(synthetic.columns[place][row]) for place in positions)
                statements.append(Conjunction(positions, values))
                break
    return statements


def equal_rows(synthetic: Codes, rows: Codes) -> Counts:
    """Return, for every synthetic row, the number of rows that equal it in every attribute."""
    keys, numbers = _numbered([synthetic, rows])
    counts = np.bincount(numbers[synthetic.rows :], minlength=keys)
    return counts[numbers[: synthetic.rows]].astype(np.int64)


def _numbered(tables: Sequence[Codes]) -> tuple[int, NDArray[np.int64]]:
    """Number the different rows of all tables; return how many there are, and each row's number."""
    matrix = np.vstack([np.column_stack(table.columns).astype(np.uint16) for table in tables])
    different, numbers = np.unique(matrix, axis=0, return_inverse=True)
    return len(different), numbers.reshape(-1).astype(np.int64)
