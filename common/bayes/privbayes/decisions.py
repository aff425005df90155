"""Everything PrivBayes decides before it looks at a row.

`PrivBayesDecisions` are a function of public quantities only: the number of rows, the domains, the
budget and the options. Two tables of one shape have the same decisions, so these cost nothing and
may be published.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from common.bayes.domain import Domain
from common.bayes.network import Network
from common.bayes.privbayes.parent_sets import (
    UNCONSTRAINED,
    Constraints,
    affordable_cells,
    affordable_degree,
    cell_limit,
    choose_degree,
    has_choice,
    least_parents,
)
from common.bayes.privbayes.scores import Score
from common.errors import InputError
from common.schema.codes import bit_count
from common.wording import many

MOST_CANDIDATE_CELLS = 1 << 23
MOST_PARENT_SETS = 1 << 14


class Encoding(StrEnum):
    """How attributes become the variables of the network [Zhang17, Sec. 5.1]."""

    BINARY = "binary"  # ceil(log2 size) bits, natural code
    GRAY = "gray"  # the same bits, Gray code
    VANILLA = "vanilla"  # unchanged
    HIERARCHICAL = "hierarchical"  # unchanged, and parents may be generalised

    @property
    def in_bits(self) -> bool:
        """Variables are bits, learnt with one global degree."""
        return self in (Encoding.BINARY, Encoding.GRAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivBayesOptions:
    """What a user may choose; the defaults are the papers' recommendations."""

    # None means binary if every attribute is, hierarchical otherwise.
    encoding: Encoding | None = None
    score: Score | None = None  # None means F on bits, R otherwise
    # The fraction of the budget that learns the network; the rest buys the tables.
    beta: Fraction = Fraction(3, 10)
    theta: Fraction = Fraction(4)  # how far the average cell of a table must be above its noise
    # Required and forbidden edges, and a cap on the number of parents.
    constraints: Constraints = UNCONSTRAINED
    # A network of the user's own; nothing is then learnt and all budget buys tables.
    network: Network | None = None
    consistency: bool = True  # make overlapping noisy tables agree before they are used (free)
    # The paper's looser bound for score R, for comparison with it.
    printed_sensitivity: bool = False
    # On bits, all candidates' tables have together no more cells.
    most_candidate_cells: int = MOST_CANDIDATE_CELLS
    # Elsewhere, an attribute has no more maximal parent sets.
    most_parent_sets: int = MOST_PARENT_SETS


DEFAULTS = PrivBayesOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivBayesDecisions:
    """The public decisions of one run."""

    encoding: Encoding
    sizes: tuple[int, ...]
    domain: Domain  # the variables of the network: bits, or the attributes with their levels
    rows: int
    score: Score
    degree: int | None  # the number of parents on the binary path, otherwise None
    cells: int | None  # the most cells of a useful table on the general path, otherwise None
    network_epsilon: Fraction  # the budget for learning; zero if the network is given or forced
    table_epsilon: Fraction
    network: Network | None  # the network, where no row is needed to know it
    # What usefulness and the options allow, no cap applied: parents on the binary path, cells on
    # the general path.
    useful: int
    constraints: Constraints = UNCONSTRAINED
    printed_sensitivity: bool = False  # see `PrivBayesOptions`

    @property
    def caution(self) -> str | None:
        """Say that a cap of the search made tables smaller; None if it did not."""
        got, unit, option = (
            (self.cells or 0, "cells a table", "--most-parent-sets")
            if self.degree is None
            else (self.degree, "parents", "--most-candidate-cells")
        )
        if got >= self.useful:
            return None
        return (
            f"PrivBayes: the largest useful table is {got:,} {unit}, lowered from {self.useful:,} "
            f"by a cap of the search. Raise {option} to lift it."
        )


def make_plan(
    domain: Domain, *, rows: int, epsilon: Fraction, options: PrivBayesOptions = DEFAULTS
) -> PrivBayesDecisions:
    """Choose encoding, score, degree or table size, and the split of the budget.

    The degree is chosen with the tables' part of the budget. If that leaves a single possible
    network there is nothing to learn, and the whole budget goes to the tables; the degree is not
    chosen again with the larger budget [Zhang17, footnote 6].
    """
    binary = set(domain.sizes) == {2}
    encoding = options.encoding or (Encoding.BINARY if binary else Encoding.HIERARCHICAL)
    score = options.score or (Score.MAXIMUM_JOINT if encoding.in_bits else Score.INDEPENDENCE)
    _check(domain, rows, epsilon, options, encoding, score)
    variables, constraints = _variables(domain, encoding), options.constraints
    constraints.check(variables.width)
    for_tables = (1 - options.beta) * epsilon
    public = {"rows": rows, "attributes": variables.width}
    degree = cells = None
    if encoding.in_bits:
        useful = choose_degree(**public, epsilon=for_tables, theta=options.theta)
        if constraints.max_parents is not None:
            useful = min(useful, constraints.max_parents)
        degree = affordable_degree(
            attributes=variables.width, degree=useful, max_cells=options.most_candidate_cells
        )
    else:
        useful = cell_limit(**public, epsilon=for_tables, theta=options.theta)
        cells = affordable_cells(variables, useful, constraints, options.most_parent_sets)
    network = options.network or _forced(variables, degree, cells, constraints)
    if network is not None:
        network.check(variables)
    learning = Fraction(0) if network is not None else epsilon - for_tables
    return PrivBayesDecisions(
        encoding=encoding,
        sizes=domain.sizes,
        domain=variables,
        rows=rows,
        score=score,
        degree=degree,
        cells=cells,
        network_epsilon=learning,
        table_epsilon=epsilon - learning,
        network=network,
        useful=useful,
        constraints=constraints,
        printed_sensitivity=options.printed_sensitivity,
    )


def _check(
    domain: Domain,
    rows: int,
    epsilon: Fraction,
    options: PrivBayesOptions,
    encoding: Encoding,
    score: Score,
) -> None:
    """Refuse what cannot be done, each with what to do instead."""
    if rows < 1 or domain.width < 1:
        raise InputError(
            f"a table of {many(rows, 'row')} and {many(domain.width, 'attribute')} has no model"
        )
    if not 0 < options.beta < 1 or options.theta <= 0 or epsilon <= 0:
        raise InputError(
            f"epsilon and theta must be above zero and beta inside (0, 1), not {epsilon}, "
            f"{options.theta} and {options.beta}"
        )
    if score is Score.MAXIMUM_JOINT and not encoding.in_bits:
        raise InputError(f"score F needs a binary encoding, not {encoding}; use score R or I")
    edges = options.constraints.required or options.constraints.forbidden or options.network
    if edges and encoding.in_bits and max(domain.sizes) > 2:
        raise InputError(
            f"edges are between attributes, but the encoding {encoding} turns attributes into "
            "several bits; use the vanilla or hierarchical encoding"
        )


def _variables(domain: Domain, encoding: Encoding) -> Domain:
    if encoding.in_bits:
        return Domain.flat([2] * sum(bit_count(size) for size in domain.sizes))
    return domain if encoding is Encoding.HIERARCHICAL else domain.without_levels()


def _forced(
    variables: Domain, degree: int | None, cells: int | None, constraints: Constraints
) -> Network | None:
    """Return the only possible network, just the required edges; None if there is a choice."""
    if variables.width > 1 and (
        degree or (cells is not None and has_choice(variables, cells, constraints))
    ):
        return None
    return Network.from_parents(
        {child: least_parents(variables, child, constraints) for child in range(variables.width)}
    )
