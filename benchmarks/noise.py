"""Draws per second of the exact samplers against OpenDP's, one core, in the same run.

python -m benchmarks.noise
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from benchmarks.measuring import Row, keep, seconds_in_turn, show
from common.privacy.exponential import exponential_mechanism
from common.privacy.randomness import OsRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.privacy.sampling.polya import polya_shares
from common.privacy.sampling.skellam import skellam

SCALES = (1, 20, 1000, 100_000)
EXPONENTS = (-2, 0, 8, 16, 17, 20, 24, 28, 32, 36, 40)  # of 2: the variances of shares
OURS, THEIRS, ROUNDS = 2_000_000, 50_000, 3


def per_second(draw: Callable[[int], object], count: int) -> float:
    """Return the best of a few rounds by processor time, after a small one that fills caches."""
    draw(1)
    (seconds,) = seconds_in_turn(partial(draw, count), turns=ROUNDS, clock=time.process_time)
    return count / min(seconds)


def opendp_draws(law: str, scale: float) -> Callable[[int], object]:
    """Return OpenDP's discrete Laplace or discrete Gaussian, both exact as well.

    The Gaussian is the nearest to Skellam noise that OpenDP has.
    """
    import opendp.prelude as dp  # loads scikit-learn, which sets environment variables

    dp.enable_features("contrib")
    make, norm = {
        "laplace": (dp.m.make_laplace, dp.l1_distance(T=int)),
        "gaussian": (dp.m.make_gaussian, dp.l2_distance(T=float)),
    }[law]
    mechanism = make(dp.vector_domain(dp.atom_domain(T=int)), norm, scale=scale)
    return lambda count: mechanism([0] * count)


def noise_rows(source: OsRandomSource) -> list[Row]:
    """Measure one row for each scale."""
    rows: list[Row] = []
    for scale in SCALES:
        exact = Fraction(scale)
        ours = per_second(partial(discrete_laplace, exact, source=source), OURS)
        shares = per_second(partial(polya_shares, exact, 10, source=source), OURS // 4)
        theirs = per_second(opendp_draws("laplace", float(scale)), THEIRS)
        rows.append(
            {
                "scale": scale,
                "laplace_per_s": ours,
                "share_of_10_per_s": shares,
                "opendp_per_s": theirs,
                "laplace_over_opendp": ours / theirs,
                "share_over_opendp": shares / theirs,
            }
        )
    return rows


def skellam_rows(source: OsRandomSource) -> list[Row]:
    """Measure one row for each variance of a share; tests hold the law itself against SciPy's."""
    rows: list[Row] = []
    for exponent in EXPONENTS:
        ours = per_second(partial(skellam, Fraction(2) ** exponent, source=source), OURS)
        theirs = per_second(opendp_draws("gaussian", 2.0 ** (exponent / 2)), THEIRS)
        rows.append(
            {
                "share_variance": f"2^{exponent}",
                "skellam_per_s": ours,
                "opendp_gaussian_per_s": theirs,
                "skellam_over_opendp": ours / theirs,
            }
        )
    return rows


def choice_milliseconds(source: OsRandomSource, candidates: int) -> float:
    """Time one draw of the exponential mechanism among `candidates`."""
    scores = np.arange(candidates, dtype=np.int64) % 1000

    def choose(count: int) -> None:
        for _ in range(count):
            exponential_mechanism(scores, sensitivity=1, epsilon=Fraction(1, 10), source=source)

    return 1000 / per_second(choose, 20)


def main() -> None:
    """Print the tables and keep them."""
    source = OsRandomSource()
    rows, gaussian = noise_rows(source), skellam_rows(source)
    show(rows)
    show(gaussian)
    choices = {str(size): choice_milliseconds(source, size) for size in (100, 5_000, 50_000)}
    for size, milliseconds in choices.items():
        print(f"exponential mechanism, {size} candidates: {milliseconds:.3f} ms a draw")
    keep("noise", {"noise": rows, "skellam": gaussian, "exponential_ms": choices})


if __name__ == "__main__":
    main()
