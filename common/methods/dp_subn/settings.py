"""The settings of DP-SUBN: the table `[dp-subn]` of study.toml.

[dp-subn]
budget = "1:1:1:1"          # correlations : initial structure : structure update : parameters
theta_tables = "6"          # usefulness of the published tables, for k
theta_frontier = "2"        # usefulness of the search frontier's tables, for k'
degree = 2                  # k itself, whatever is useful; binary encoding only
frontier_degree = 3         # k' itself; binary encoding only
usefulness = "phase"        # of the phase's own part of epsilon; "total": of all of epsilon
views = "optimal"           # of phase 1; "printed": Algorithm 2 of the paper
most_parents = 10           # caps of the search, whatever is useful
most_cells = 65536
most_candidate_cells = 8388608
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from common.errors import InputError
from common.schema.toml import one_of
from common.study.document import Study
from common.study.method import above_zero, between, parts, read_settings

PHASES = ("correlations", "initial structure", "structure update", "parameters")
_MOST_PARENTS = 16  # caps have caps: a node works on them before an owner can see how long it takes
_SETTINGS = {
    "budget": parts(len(PHASES)),
    "theta_tables": above_zero,
    "theta_frontier": above_zero,
    "degree": between(0, _MOST_PARENTS),
    "frontier_degree": between(0, _MOST_PARENTS),
    "usefulness": one_of(("phase", "total")),
    "views": one_of(("optimal", "printed")),
    "most_parents": between(1, _MOST_PARENTS),
    "most_cells": between(4, 1 << 22),
    "most_candidate_cells": between(4, 1 << 28),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a study may choose about DP-SUBN; the defaults are the paper's, errata applied.

    Attributes:
        usefulness: whether usefulness is computed with the epsilon of the phase that publishes the
            tables, or with all of epsilon: [Su16] cites the definition of [Zhang14], which knows
            one epsilon, and does not say.
    """

    budget: tuple[Fraction, ...] = (Fraction(1),) * len(PHASES)
    theta_tables: Fraction = Fraction(6)
    theta_frontier: Fraction = Fraction(2)
    degree: int | None = None
    frontier_degree: int | None = None
    usefulness: str = "phase"
    views: str = "optimal"
    most_parents: int = 10
    most_cells: int = 1 << 16
    most_candidate_cells: int = 1 << 23

    @classmethod
    def of(cls, study: Study) -> Settings:
        """Read the settings; profile `paper` has the views of Algorithm 2 on binary data."""
        binary = study.encoding == "binary" or max(study.schema.sizes) <= 2
        values = read_settings(study, _SETTINGS)
        if binary and study.profile == "paper":
            values.setdefault("views", "printed")
        found = cls(**values)
        if not binary and (found.degree is not None or found.frontier_degree is not None):
            raise InputError(
                "dp-subn.degree: on attributes with domains of their own the cells decide, not a "
                'degree. Use encoding = "binary", or theta_tables and most_cells'
            )
        if not binary and found.views == "printed":
            raise InputError(
                'dp-subn.views: Algorithm 2 is for binary attributes. Use encoding = "binary"'
            )
        return found
