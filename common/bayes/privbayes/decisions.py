"""Everything PrivBayes decides before it looks at a row.

A `Plan` is a function of public things only: the number of rows, the domains, the budget and the
user's wishes. Two tables of the same shape have the same plan, so the plan costs nothing and may be
published.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from common.bayes.domain import Domain
from common.bayes.network import Network
from common.bayes.privbayes.constraints import Constraints
from common.bayes.privbayes.greedy_general import affordable_cells, has_choice, least_parents
from common.bayes.privbayes.scores import Score
from common.bayes.usefulness import affordable_degree, cell_limit, choose_degree
from common.errors import InputError
from common.schema.codes import bit_count
from common.wording import many

MOST_CANDIDATE_CELLS = 1 << 23
MOST_PARENT_SETS = 1 << 14


class Encoding(StrEnum):
    """How attributes become the variables of the network [Zhang17, Sec. 5.1]."""

    BINARY = "binary"  # ceil(log2 size) bits, natural code
    GRAY = "gray"  # the same bits, Gray code
    VANILLA = "vanilla"  # as they are
    HIERARCHICAL = "hierarchical"  # as they are, and parents may be generalised

    @property
    def in_bits(self) -> bool:
        """Whether the variables are bits, learnt with one global degree."""
        return self in (Encoding.BINARY, Encoding.GRAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivBayesOptions:
    """The user's wishes; the defaults are the papers' recommendations.

    Args:
        encoding: None means binary if every attribute is, hierarchical otherwise.
        score: None means F on bits, R otherwise.
        beta: the share of the budget that learns the network; the rest buys the tables.
        theta: how far the average cell of a table must stand above its noise.
        constraints: required and forbidden edges, and a cap on the number of parents.
        network: a network of the user's own; nothing is then learnt and all budget buys tables.
        consistency: make overlapping noisy tables agree before they are used (free).
        printed_sensitivity: the paper's looser bound for score R, for comparison with it.
        most_candidate_cells: on bits, all candidates' tables have together no more cells.
        most_parent_sets: elsewhere, an attribute has no more maximal parent sets.
    """

    encoding: Encoding | None = None
    score: Score | None = None
    beta: Fraction = Fraction(3, 10)
    theta: Fraction = Fraction(4)
    constraints: Constraints = field(default_factory=Constraints)
    network: Network | None = None
    consistency: bool = True
    printed_sensitivity: bool = False
    most_candidate_cells: int = MOST_CANDIDATE_CELLS
    most_parent_sets: int = MOST_PARENT_SETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The public decisions of one run.

    Args:
        domain: the variables of the network: bits, or the attributes with their levels.
        degree: the number of parents on the binary path, otherwise None.
        cells: the most cells of a useful table on the general path, otherwise None.
        network_epsilon: the budget for learning; zero if the network is given or forced.
        network: the network, where no row is needed to know it.
        useful: what usefulness and the user's wishes allow, no cap applied: parents on the binary
            path, cells on the general path.
        printed_sensitivity: see `PrivBayesOptions`.
    """

    encoding: Encoding
    sizes: tuple[int, ...]
    domain: Domain
    rows: int
    score: Score
    degree: int | None
    cells: int | None
    network_epsilon: Fraction
    table_epsilon: Fraction
    network: Network | None
    useful: int
    constraints: Constraints = field(default_factory=Constraints)
    printed_sensitivity: bool = False

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
    domain: Domain, *, rows: int, epsilon: Fraction, options: PrivBayesOptions | None = None
) -> Plan:
    """Choose encoding, score, degree or table size, and the split of the budget.

    The degree is chosen with the tables' share of the budget. If that leaves a single possible
    network there is nothing to learn, and the whole budget goes to the tables; the degree is not
    chosen again with the larger budget [Zhang17, footnote 6].
    """
    wishes = options or PrivBayesOptions()
    encoding = _encoding(domain, wishes)
    score = wishes.score or (Score.MAXIMUM_JOINT if encoding.in_bits else Score.INDEPENDENCE)
    _check(domain, rows, epsilon, wishes, encoding, score)
    variables = _variables(domain, encoding)
    wishes.constraints.check(variables.width)
    share = (1 - wishes.beta) * epsilon
    degree = cells = None
    if encoding.in_bits:
        useful = _useful_degree(variables.width, rows, share, wishes)
        degree = affordable_degree(
            attributes=variables.width, degree=useful, max_cells=wishes.most_candidate_cells
        )
    else:
        useful = cell_limit(
            rows=rows, attributes=variables.width, epsilon=share, theta=wishes.theta
        )
        cells = affordable_cells(variables, useful, wishes.constraints, wishes.most_parent_sets)
    network = wishes.network or _forced(variables, degree, cells, wishes.constraints)
    if network is not None:
        network.check(variables)
    learning = Fraction(0) if network is not None else epsilon - share
    return Plan(
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
        constraints=wishes.constraints,
        printed_sensitivity=wishes.printed_sensitivity,
    )


def _encoding(domain: Domain, wishes: PrivBayesOptions) -> Encoding:
    if wishes.encoding is not None:
        return wishes.encoding
    return Encoding.BINARY if set(domain.sizes) == {2} else Encoding.HIERARCHICAL


def _check(
    domain: Domain,
    rows: int,
    epsilon: Fraction,
    wishes: PrivBayesOptions,
    encoding: Encoding,
    score: Score,
) -> None:
    """Refuse what cannot be done, each with what to do instead."""
    if rows < 1 or domain.width < 1:
        raise InputError(
            f"a table of {many(rows, 'row')} and {many(domain.width, 'attribute')} has no model"
        )
    if not 0 < wishes.beta < 1 or wishes.theta <= 0 or epsilon <= 0:
        raise InputError(
            f"epsilon and theta must be above zero and beta inside (0, 1), not {epsilon}, "
            f"{wishes.theta} and {wishes.beta}"
        )
    if score is Score.MAXIMUM_JOINT and not encoding.in_bits:
        raise InputError(f"score F needs a binary encoding, not {encoding}; use score R or I")
    edges = wishes.constraints.required or wishes.constraints.forbidden or wishes.network
    if edges and encoding.in_bits and max(domain.sizes) > 2:
        raise InputError(
            f"edges are between attributes, but the encoding {encoding} turns attributes into "
            "several bits; use the vanilla or hierarchical encoding"
        )


def _variables(domain: Domain, encoding: Encoding) -> Domain:
    if encoding.in_bits:
        return Domain.flat([2] * sum(bit_count(size) for size in domain.sizes))
    return domain if encoding is Encoding.HIERARCHICAL else domain.without_levels()


def _useful_degree(width: int, rows: int, epsilon: Fraction, wishes: PrivBayesOptions) -> int:
    degree = choose_degree(rows=rows, attributes=width, epsilon=epsilon, theta=wishes.theta)
    most = wishes.constraints.max_parents
    return degree if most is None else min(degree, most)


def _forced(
    variables: Domain, degree: int | None, cells: int | None, constraints: Constraints
) -> Network | None:
    """The only network there can be: just the required edges; None if there is a choice."""
    if variables.width > 1 and (
        degree or (cells is not None and has_choice(variables, cells, constraints))
    ):
        return None
    return Network.from_parents(
        {child: least_parents(variables, child, constraints) for child in range(variables.width)}
    )
