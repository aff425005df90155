"""How much noise a cell of a study's sums will carry, before there is any."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.integrate import quad


def expected_noise(scale: Fraction, shares: Fraction = Fraction(1)) -> float:
    """E|X| of the noise in a cell.

    With distributed noise every party adds a Polya share of which K - t make up one discrete
    Laplace, so K of them make up K / (K - t), and its characteristic function is the power of the
    discrete Laplace's: phi = (1 + s^2 u^2 / (1 + u^2))^-shares with u = tan(angle / 2),
    s = 2 sqrt(q) / (1 - q) and q = exp(-1 / scale). And for an integer X, E|X| is the integral of
    (1 - phi) / u^2 over all u > 0, divided by pi.

    Args:
        scale: of the discrete Laplace noise.
        shares: how many of them a cell carries: K / (K - t), or 1.
    """
    root = math.exp(-1 / (2 * float(scale)))
    spread = 2 * root / -math.expm1(-1 / float(scale))
    if spread == 0.0:
        return 0.0

    def height(angle: float) -> float:
        # u = tan(angle) / spread takes the half line to a quarter of a circle.
        tangent = math.tan(angle)
        inside = tangent**2 / (1 + (tangent / spread) ** 2)
        return -math.expm1(-float(shares) * math.log1p(inside)) / math.sin(angle) ** 2

    area, _ = quad(height, 0, np.pi / 2, points=[math.atan(spread)], limit=200)
    return float(spread * area / np.pi)
