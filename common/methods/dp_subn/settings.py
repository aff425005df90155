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
from common.study.document import Study
from common.study.settings import SettingsReader

PHASES = ("correlations", "initial structure", "structure update", "parameters")
VIEWS = ("optimal", "printed")
USEFULNESS = ("phase", "total")

MOST_PARENTS = 10
MOST_CELLS = 1 << 16
MOST_CANDIDATE_CELLS = 1 << 23
# No study may ask for more: a node works on these before an owner can see how long it takes.
_LARGEST_PARENTS, _LARGEST_CELLS, _LARGEST_CANDIDATES = 16, 1 << 22, 1 << 28


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
    most_parents: int = MOST_PARENTS
    most_cells: int = MOST_CELLS
    most_candidate_cells: int = MOST_CANDIDATE_CELLS

    @classmethod
    def of(cls, study: Study) -> Settings:
        """Read the settings of a study; profile `paper` prints Algorithm 2's views on binary data.

        Raises:
            InputError: a setting is unknown, or is not one that can be had.
        """
        binary = study.encoding == "binary" or max(study.schema.sizes) <= 2
        read = SettingsReader(study)
        found = cls(
            budget=read.parts("budget", "1:1:1:1", len(PHASES)),
            theta_tables=read.fraction("theta_tables", 6),
            theta_frontier=read.fraction("theta_frontier", 2),
            degree=read.optional("degree", most=_LARGEST_PARENTS),
            frontier_degree=read.optional("frontier_degree", most=_LARGEST_PARENTS),
            usefulness=read.word("usefulness", "phase", USEFULNESS),
            views=read.word(
                "views", "printed" if binary and study.profile == "paper" else "optimal", VIEWS
            ),
            most_parents=read.whole("most_parents", MOST_PARENTS, least=1, most=_LARGEST_PARENTS),
            most_cells=read.whole("most_cells", MOST_CELLS, least=4, most=_LARGEST_CELLS),
            most_candidate_cells=read.whole(
                "most_candidate_cells", MOST_CANDIDATE_CELLS, least=4, most=_LARGEST_CANDIDATES
            ),
        )
        read.finish()
        if not binary and (found.degree is not None or found.frontier_degree is not None):
            raise InputError(
                "[dp-subn] degree: on attributes with domains of their own the cells decide, not a "
                'degree. Use encoding = "binary", or theta_tables and most_cells'
            )
        if not binary and found.views == "printed":
            raise InputError(
                '[dp-subn] views: Algorithm 2 is for binary attributes. Use encoding = "binary"'
            )
        return found
