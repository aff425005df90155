"""What PrivBayes is compared with on classification: small honest versions.

Each learns one linear classifier of rows coded as one-hot vectors of length at most one, under
epsilon-differential privacy for one replaced row.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from common.privacy.exponential import exponential_mechanism
from common.privacy.randomness import RandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace

Floats = NDArray[np.float64]

_HUBER = 0.5
_REGULARISER = 1e-3
_POPULATION, _KEPT, _GENERATIONS = 100, 5, 10


def private_erm(
    rows: csr_matrix, signs: Floats, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Objective perturbation with the Huber loss [Chaudhuri11, Alg. 2].

    Args:
        rows: each of length at most one.
        signs: -1 or 1.
        epsilon: of the classifier.
        rng: of the perturbation; floating point, for comparisons only.
    """
    count, width = rows.shape
    curvature = 1 / (2 * _HUBER)
    ratio = curvature / (count * _REGULARISER)
    left, extra = epsilon - math.log(1 + 2 * ratio + ratio**2), 0.0
    if left <= 0:
        extra = curvature / (count * (math.exp(epsilon / 4) - 1)) - _REGULARISER
        left = epsilon / 2
    direction = rng.standard_normal(width)
    drawn = rng.gamma(width, 2 / left) * direction / np.linalg.norm(direction)

    def objective(weights: Floats) -> tuple[float, Floats]:
        margins = signs * (rows @ weights)
        inside = np.abs(1 - margins) <= _HUBER
        below = margins < 1 - _HUBER
        loss = np.where(below, 1 - margins, 0.0)
        loss[inside] = (1 + _HUBER - margins[inside]) ** 2 / (4 * _HUBER)
        slope = np.where(below, -1.0, 0.0)
        slope[inside] = -(1 + _HUBER - margins[inside]) / (2 * _HUBER)
        ridge = _REGULARISER + max(extra, 0.0)
        value = loss.mean() + ridge / 2 * weights @ weights + drawn @ weights / count
        return float(value), rows.T @ (slope * signs) / count + ridge * weights + drawn / count

    found = minimize(objective, np.zeros(width), jac=True, method="L-BFGS-B")
    return np.asarray(found.x)


def priv_gene(
    rows: csr_matrix,
    signs: Floats,
    epsilon: float,
    rng: np.random.Generator,
    source: RandomSource,
) -> Floats:
    """Search by a genetic algorithm; the exponential mechanism picks survivors [Zhang13].

    The score of a classifier is how many rows it gets right; a replaced row moves it by one.
    """
    width = rows.shape[1]
    each = Fraction(epsilon) / (_GENERATIONS * _KEPT)
    people = rng.standard_normal((_POPULATION, width))
    for generation in range(_GENERATIONS):
        right = (np.sign(rows @ people.T) == signs[:, None]).sum(axis=0).astype(np.int64)
        kept = []
        for _ in range(_KEPT):
            place = exponential_mechanism(right, sensitivity=1, epsilon=each, source=source)
            kept.append(people[place])
        pairs = rng.integers(0, _KEPT, (_POPULATION, 2))
        mask = rng.random((_POPULATION, width)) < 0.5
        chosen = np.array(kept)
        people = np.where(mask, chosen[pairs[:, 0]], chosen[pairs[:, 1]])
        people += rng.standard_normal(people.shape) * 0.9**generation * 0.5
    return np.asarray(kept[0])


def noisy_majority_says(signs: Floats, epsilon: float, source: RandomSource) -> float:
    """-1 or 1: whether a noisy count of the positive rows is above half of all."""
    noise = int(discrete_laplace(1 / Fraction(epsilon), 1, source)[0])
    return 1.0 if int((signs > 0).sum()) + noise > len(signs) / 2 else -1.0


def error_of(weights: Floats, rows: csr_matrix, signs: Floats) -> float:
    """Return the share of rows on the wrong side."""
    return float((np.where(rows @ weights >= 0, 1.0, -1.0) != signs).mean())
