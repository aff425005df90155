"""DP-SUBN: the sequential update of a Bayesian network, in five phases [Su16, section VI].

1. Noisy views give the correlation of every pair of attributes.
2. The parties choose a first network, each on its own rows.
3. The network is updated from noisy tables of a search frontier.
4. Noisy tables of the final network's families give its parameters.
5. Rows are sampled; that is free.

The paper's noise replacement in phase 3 costs early parties several times what its Theorem 5 says
(docs/proofs.md). Profile `paper` does it, and its steps carry the true cost; profile `sound` works
in cohorts, where every party pays the printed epsilon.

[Su16] Su, Tang, Cheng, Chen, Wu: Differentially private multi-party high-dimensional data
publishing, ICDE 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain
from common.bayes.network import Tables
from common.bayes.postprocessing import consistent_tables
from common.methods import floor
from common.methods.designs.nocd import View, optimal_design, printed_design
from common.methods.dp_subn.decisions import HALVES, Party, SubnDecisions
from common.methods.dp_subn.estimation import NoisyTable, reused
from common.methods.dp_subn.information import correlations, on_grid, pair_tables
from common.methods.dp_subn.initialisation import initial_structure
from common.methods.dp_subn.look import as_floor, facts_of, look
from common.methods.dp_subn.updates import Search, update_by_replacement, update_in_cohorts
from common.methods.network_model import NetworkModel, Structure, Variables, network_of, table_sets
from common.methods.subn_plus.descent import descending
from common.methods.subn_plus.sums import margins_only
from common.privacy import sensitivity
from common.study.document import Study
from common.study.requests import Attributes
from common.study.script import Fit, Script


def dp_subn(study: Study) -> Script[Fit]:
    """Run the five phases.

    If the budget does not carry a single parent, there is no structure to learn: all of it then
    buys the parameters of independent columns. Which of the two it is depends on public values.
    """
    plan = SubnDecisions.of(study)
    settings, variables, parties = plan.settings, plan.variables, plan.parties
    consistent = settings.consistency == "on"
    if plan.network.parents == 0:
        return (yield from single_columns(study, variables, projected=consistent))
    views_epsilon, choice_epsilon, update_epsilon, table_epsilon = plan.epsilons
    paper = study.profile == "paper"
    if settings.views == HALVES:
        first_look = yield from look(facts_of(study), views_epsilon)
        if not first_look.sees_dependence:
            return (yield from first_look.independent_columns(reserve=_reserve(plan)))
        measured, information = first_look.measured, first_look.information
    else:
        views = views_of(variables.sizes, settings.views)
        measured = yield from _measure(study, variables, views, views_epsilon, "correlations")
        information = _correlations(study, variables, measured)
    structure = yield from initial_structure(
        variables, parties, plan.network, choice_epsilon, as_printed=paper
    )
    search = Search(
        variables=variables,
        information=information,
        network_limit=plan.network,
        frontier_limit=plan.frontier,
        promise=study.method_promise,
        epsilon=update_epsilon,
        noise_shares=study.noise_shares,
    )
    if paper:
        structure, statistics = yield from update_by_replacement(search, structure, parties)
    else:
        cohorts = in_cohorts(parties, study.cohorts)
        structure, statistics = yield from update_in_cohorts(search, structure, cohorts)
    measured += [
        NoisyTable(variables=family, table=statistic.table, variance=statistic.variance)
        for family, statistic in statistics.items()
        if statistic.rows
        == study.rows  # a table of some owners' rows says little about the others'
    ]
    earlier = measured if settings.reuse == "on" else []
    return (
        yield from learn_parameters(
            study, variables, structure, table_epsilon, consistent=consistent, earlier=earlier
        )
    )


def views_of(sizes: tuple[int, ...], kind: str) -> Sequence[View]:
    """Return the views of phase 1: of least error, or Algorithm 2 as printed (binary only)."""
    design = printed_design(len(sizes)) if kind == "printed" else optimal_design(sizes)
    return design.views


def in_cohorts(parties: Sequence[Party], cohorts: int) -> list[Sequence[Party]]:
    """Divide the parties, in order, into cohorts whose sizes differ by at most one."""
    bounds = [len(parties) * number // cohorts for number in range(cohorts + 1)]
    return [parties[start:end] for start, end in pairwise(bounds)]


def _reserve(plan: SubnDecisions) -> Fraction:
    """Return what the margins leave of the budget, where owners are more than choices of phase 2.

    An owner without a choice does not pay for that phase. What it pays in all is settled before it
    sees whether there is a network.
    """
    choices = len(plan.variables.sizes) - 1
    return plan.epsilons[1] if len(plan.parties) > choices else Fraction(0)


def single_columns(study: Study, variables: Variables, *, projected: bool) -> Script[Fit]:
    """Spend all of the budget on columns without parents.

    Projected, they are margins of the attributes, whatever the encoding: the `floor` method's, or
    those of blocks, whose noise is less where it is calibrated to the L1 norm.
    """
    if projected:
        alone = as_floor(study)
        in_blocks = descending(margins_only, alone)
        return (yield from (floor.METHOD.script(alone) if study.delta else in_blocks))
    structure: Structure = ((),) * len(variables.sizes)
    budget = study.method_promise.budget
    return (yield from learn_parameters(study, variables, structure, budget))


def learn_parameters(
    study: Study,
    variables: Variables,
    structure: Structure,
    cost: Fraction,
    *,
    consistent: bool = False,
    earlier: Sequence[NoisyTable] = (),
) -> Script[Fit]:
    """Run phases 4 and 5: noisy tables of the families, and the model that samples from them.

    The tables are combined with the `earlier` ones, if there are any, and made consistent if asked.
    """
    network = network_of(structure)
    families = table_sets(network)
    sums = yield from _measure(study, variables, list(families.values()), cost, "parameters")

    def fit() -> NetworkModel:
        domain, rows = Domain.flat(variables.sizes), study.rows
        tables: Tables = dict(zip(families, (noisy.table for noisy in sums), strict=True))
        if earlier:
            together = reused(sums, earlier, domain, rows=rows)
            tables = dict(zip(families, together, strict=True))
        if consistent:
            tables = consistent_tables(tables, domain, rows=rows)
        return NetworkModel(variables, network, tables)

    return fit


def _measure(
    study: Study, variables: Variables, sets: Sequence[Attributes], cost: Fraction, phase: str
) -> Script[list[NoisyTable]]:
    """Sum tables of all rows."""
    tables = yield from variables.sum_tables(
        sets,
        name=phase,
        phase=phase,
        parties=study.parties,
        promise=study.method_promise,
        cost=cost,
    )
    law = study.method_promise.law(cost, sensitivity.histograms(len(sets)))
    variance = law.nominal_variance * study.noise_shares(len(study.parties))
    return [
        NoisyTable(variables=family, table=table, variance=variance)
        for family, table in zip(sets, tables, strict=True)
    ]


def _correlations(
    study: Study, variables: Variables, measured: Sequence[NoisyTable]
) -> NDArray[np.float64]:
    """Return every pair's mutual information, read off the views of phase 1."""
    views = [noisy.variables for noisy in measured]
    pairs = pair_tables(views, [noisy.table.astype(np.float64) for noisy in measured])
    return on_grid(correlations(len(variables.sizes), pairs, study.rows))
