"""Privelet*: shrink noisy coefficients towards zero, band by band [Xiao11, Sec. 7].

Neighbouring cells are often alike, so most true coefficients are near zero and most of what is seen
is noise. A band holds the coefficients of one level of every axis, within one sub-matrix. Soft
thresholding moves each towards zero by theta, and theta is chosen such that the energy left is the
energy expected of the signal. It reads noisy coefficients and public scales only, so it costs no
privacy; but it is biased, and no variance can be given for its answers.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.privacy.sampling.discrete_laplace import discrete_laplace_variance
from common.wavelet.decisions import Plan


def thresholds(coefficients: NDArray[np.float64], noise_variance: float) -> NDArray[np.float64]:
    """Return the threshold of each row, a band of weighted coefficients [Xiao11, Eq. 10-12].

    With S the band, u its coefficients and s^2 the noise variance, theta solves
    F(theta) = sum max(|u| - theta, 0)^2 = K = sum u^2 - s^2 (|S| - 1), multiplied out from the
    paper so that a band of one is left as it is. F decreases; K <= 0 means that there is nothing
    but noise, and theta = max |u| removes all. Figure 8 of the paper, as printed, sorts signed
    values and compares the wrong way round; this is what it means: with X = |u| sorted downwards,
    find the i with X_i > theta >= X_{i+1}, for which F is a parabola with a known smaller root.
    """
    descending = -np.sort(-np.abs(coefficients), axis=1)
    count = np.arange(1, descending.shape[1] + 1)
    squares = np.cumsum(descending**2, axis=1)
    sums = np.cumsum(descending, axis=1)
    target = squares[:, -1] - noise_variance * (descending.shape[1] - 1)
    at_each = squares - 2 * sums * descending + count * descending**2  # F(X_i), never decreasing
    kept = np.maximum((at_each < target[:, None]).sum(axis=1), 1)
    row = np.arange(len(descending))
    alpha, beta = squares[row, kept - 1], sums[row, kept - 1]
    root = np.sqrt(np.maximum(beta**2 - kept * (alpha - target), 0))
    theta = np.where(target > 0, (beta - root) / kept, descending[:, 0])
    return np.clip(theta, 0, descending[:, 0])


def soft_threshold(
    coefficients: NDArray[np.float64], theta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return sign(u) * max(|u| - theta, 0), with one theta per row."""
    shrunk = np.maximum(np.abs(coefficients) - theta[:, None], 0)
    return np.copysign(shrunk, coefficients)


@dataclass(frozen=True)
class Shrinkage:
    """Every band of a sub-matrix: where it is, its multipliers, its mean noise variance."""

    bands: tuple[tuple[tuple[slice, ...], NDArray[np.float64], float], ...]

    @classmethod
    def of(cls, plan: Plan) -> Shrinkage:
        axes = plan.transformed
        bands = []
        for levels in itertools.product(*(axis.bands for axis in axes)):
            multiplier = np.ones(())
            for axis, level in zip(axes, levels, strict=True):
                own = axis.multipliers[level]
                if (own == own[0]).all():
                    own = own[:1]  # broadcasts
                multiplier = np.multiply.outer(multiplier, own.astype(np.float64))
            # Axes with one multiplier collapse to length 1, so the mean over this small array is
            # the mean over the band.
            variances = [
                discrete_laplace_variance(plan.scale * int(m)) / m**2 for m in multiplier.flat
            ]
            bands.append((levels, multiplier, math.fsum(variances) / len(variances)))
        return cls(tuple(bands))

    def apply(self, block: NDArray[np.float64]) -> None:
        """Shrink integer coefficients, perturbed, in place; the first axis counts sub-matrices."""
        for levels, multiplier, noise_variance in self.bands:
            band = block[(slice(None), *levels)]
            weighted = (band / multiplier).reshape(len(block), -1)
            theta = thresholds(weighted, noise_variance)
            band[...] = soft_threshold(weighted, theta).reshape(band.shape) * multiplier
