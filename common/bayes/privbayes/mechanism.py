"""PrivBayes: a differentially private model of a table [Zhang14, Zhang17].

Three phases. A network is learnt with the exponential mechanism (budget eps1), noisy tables of its
families are released with discrete Laplace noise (eps2), and rows are sampled, which is free. The
guarantee is (eps1 + eps2)-differential privacy for neighbours that differ in ONE replaced row; the
number of rows is public. The accountant is charged before each draw.

    >>> model = fit_privbayes(codes, epsilon=Fraction(1), source=OsRandomSource(),
    ...                       accountant=accountant, hierarchies=hierarchies)
    >>> synthetic = model.sample(1000, OsRandomSource())
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain
from common.bayes.network import Family, Network, needed_families
from common.bayes.privbayes.decisions import (
    DEFAULTS,
    Encoding,
    PrivBayesDecisions,
    PrivBayesOptions,
    make_plan,
)
from common.bayes.privbayes.learning import draw_root, learn_binary_network, learn_general_network
from common.bayes.privbayes.model import PrivBayesModel
from common.bayes.privbayes.scores import Scores, Scoring
from common.errors import InputError, PolicyError
from common.marginals import BinarySubsets, count
from common.privacy import sensitivity
from common.privacy.accountant import Accountant, Charge, laplace_charge
from common.privacy.exponential import exponential_mechanism
from common.privacy.randomness import RandomSource, below
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema.codes import Codes, binarise
from common.schema.hierarchy import Hierarchy

OWNER = "owner"  # the only party of the accountant


def fit_privbayes(
    codes: Codes,
    *,
    epsilon: Fraction,
    source: RandomSource,
    accountant: Accountant,
    hierarchies: Sequence[Hierarchy] | None = None,
    options: PrivBayesOptions = DEFAULTS,
) -> PrivBayesModel:
    """Learn a model of the rows at a cost of exactly `epsilon`.

    The accountant is charged before each draw, and may refuse.
    """
    domain = Domain.flat(codes.sizes) if hierarchies is None else Domain.of(hierarchies)
    if domain.sizes != codes.sizes:
        raise InputError(
            f"the hierarchies are over domains of sizes {domain.sizes}, the rows have {codes.sizes}"
        )
    plan = make_plan(domain, rows=codes.rows, epsilon=epsilon, options=options)
    remaining = accountant.remaining(OWNER)
    if remaining is not None and epsilon > remaining:  # better now than after half of it is spent
        raise PolicyError(
            f"PrivBayes costs {OWNER!r} an epsilon of {epsilon}, but only {remaining} is left of "
            "its cap: nothing was drawn"
        )
    return fit_planned(
        codes, plan, consistency=options.consistency, source=source, accountant=accountant
    )


def fit_planned(
    codes: Codes,
    plan: PrivBayesDecisions,
    *,
    source: RandomSource,
    accountant: Accountant,
    consistency: bool,
) -> PrivBayesModel:
    """Learn a model as a plan says: of the owner's rows, or of rows that repeat an experiment."""
    in_bits, gray = plan.encoding.in_bits, plan.encoding is Encoding.GRAY
    rows = ExpandedRows(plan.domain, binarise(codes, gray=gray) if in_bits else codes)
    network = plan.network
    if network is None:
        draws = plan.domain.width - 1
        select = PrivateSelect(accountant, epsilon=plan.network_epsilon, draws=draws, source=source)
        network = _learn(plan, rows, select, source)
    tables = measure_tables(
        rows, network, epsilon=plan.table_epsilon, source=source, accountant=accountant
    )
    return PrivBayesModel(plan, network, tables, consistency, source.private)


class ExpandedRows:
    """Rows with every variable at every level, ready to be counted."""

    def __init__(self, domain: Domain, codes: Codes) -> None:
        self.codes = codes
        self._expanded = domain.expand(codes)
        self._columns = {view: column for column, view in enumerate(domain.views)}

    def count(self, families: Sequence[Family]) -> list[NDArray[np.int64]]:
        """Return the exact table of every family; secret."""
        return count(self._expanded, [[self._columns[v] for v in family] for family in families])


class PrivateSelect:
    """The exponential mechanism, charged draw by draw: `epsilon` in total over `draws` draws."""

    def __init__(
        self, accountant: Accountant, *, epsilon: Fraction, draws: int, source: RandomSource
    ) -> None:
        self._accountant = accountant
        self._epsilon = epsilon / draws
        self._draws = draws
        self._drawn = 0
        self._source = source

    def __call__(self, scores: Scores, *, sensitivity: Fraction, score_error: Fraction) -> int:
        """Charge, then draw an index with probability rising with its score."""
        self._drawn += 1
        self._accountant.charge(
            Charge(
                step=f"network: choice {self._drawn} of {self._draws}",
                mechanism="exponential mechanism",
                costs={OWNER: self._epsilon},
                sensitivities={OWNER: sensitivity + 2 * score_error},
            )
        )
        if sensitivity + 2 * score_error == 0:  # a single row: all scores are the same
            return below(len(scores), self._source)
        return exponential_mechanism(
            scores,
            sensitivity=sensitivity,
            epsilon=self._epsilon,
            source=self._source,
            score_error=score_error,
        )


def _learn(
    plan: PrivBayesDecisions, rows: ExpandedRows, select: PrivateSelect, source: RandomSource
) -> Network:
    width = plan.domain.width
    root = draw_root(plan.constraints, width, source)
    scoring = Scoring(plan.score, plan.rows, plan.printed_sensitivity)
    if plan.degree is not None:
        required = (len(plan.constraints.required_parents(child)) for child in range(width))
        order = max(plan.degree, *required) + 1
        return learn_binary_network(
            BinarySubsets(rows.codes, order).tables,
            scoring,
            attributes=width,
            degree=plan.degree,
            root=root,
            select=select,
            constraints=plan.constraints,
        )
    return learn_general_network(
        rows.count,
        scoring,
        domain=plan.domain,
        cells=plan.cells or 0,
        root=root,
        select=select,
        constraints=plan.constraints,
    )


def measure_tables(
    rows: ExpandedRows,
    network: Network,
    *,
    epsilon: Fraction,
    source: RandomSource,
    accountant: Accountant,
) -> dict[Family, NDArray[np.int64]]:
    """Return noisy counts of the families of a network, at a cost of exactly `epsilon`.

    A replaced row moves one unit between two cells of each table, so m tables have L1 sensitivity
    2 m IN COUNTS, and every cell, empty or not, gets discrete Laplace noise of scale 2 m / epsilon.
    Families that lie in another family are left out: they can be summed from it.
    """
    families = needed_families(network)
    moved = sensitivity.histograms(len(families)).l1
    scale = moved / epsilon
    accountant.charge(
        laplace_charge(f"tables: {len(families)}", scale=scale, sensitivities={OWNER: moved})
    )
    exact = rows.count(families)
    return {
        family: table + discrete_laplace(scale, table.size, source).reshape(table.shape)
        for family, table in zip(families, exact, strict=True)
    }
