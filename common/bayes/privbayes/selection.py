"""What the two ways of learning a network share: the draw, and the sensitivity it needs."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Protocol

from common.bayes.privbayes.constraints import Constraints
from common.bayes.privbayes.scores import Score, Scores
from common.errors import LocalError
from common.privacy import sensitivity
from common.privacy.randomness import RandomSource, below


class Select(Protocol):
    """Chooses one candidate by its score: privately in a release, by argmax in an experiment."""

    def __call__(self, scores: Scores, *, sensitivity: Fraction, score_error: Fraction) -> int:
        """The index of the candidate chosen.

        Args:
            scores: one per candidate, in the units of `common.bayes.privbayes.scores`; secret.
            sensitivity: how far one replaced row moves any of them.
            score_error: how far a computed score can be from the true one.
        """


def score_sensitivity(score: Score, *, rows: int, binary: bool, printed: bool) -> Fraction:
    """Sensitivity of a score in the units of `common.bayes.privbayes.scores` (n I, 2 n F, n^2 R).

    Args:
        score: which one.
        rows: the public number of rows.
        binary: for every candidate the child, or the joint domain of its parents, has two values.
        printed: use the looser bound on R that the paper prints.
    """
    match score:
        case Score.MUTUAL_INFORMATION:
            return sensitivity.mutual_information(rows, binary=binary)
        case Score.MAXIMUM_JOINT:
            return 2 * sensitivity.score_f(rows)
        case Score.INDEPENDENCE:
            return rows * sensitivity.score_r(rows, binary=binary, printed=printed)


def draw_root(constraints: Constraints, attributes: Iterable[int], source: RandomSource) -> int:
    """The first attribute: uniform among those without required parents; costs nothing."""
    roots = [a for a in attributes if not constraints.required_parents(a)]
    if not roots:
        raise LocalError("no attribute can come first; check the constraints before learning")
    return roots[below(len(roots), source)]
