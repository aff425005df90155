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
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from common.methods.designs.nocd import View, optimal_design, printed_design
from common.methods.dp_subn.decisions import Party, Plan
from common.methods.dp_subn.information import correlations, on_grid, pair_tables
from common.methods.dp_subn.initialisation import initial_structure
from common.methods.dp_subn.updates import Search, update_by_replacement, update_in_cohorts
from common.methods.network_model import NetworkModel, Structure, Variables, network_of, table_sets
from common.study.document import Study
from common.study.script import Fit, Script


def dp_subn(study: Study) -> Script[Fit]:
    """Run the five phases.

    If the budget does not carry a single parent, there is no structure to learn: all of it then
    buys the parameters of independent columns. Which of the two it is depends on public values.
    """
    plan = Plan.of(study)
    variables, parties = plan.variables, plan.parties
    structure: Structure = ((),) * len(variables.sizes)
    if plan.network.parents == 0:
        budget = study.method_promise.budget
        return (yield from learn_parameters(study, variables, structure, budget))
    views_epsilon, choice_epsilon, update_epsilon, table_epsilon = plan.epsilons
    paper = study.profile == "paper"
    views = views_of(variables.sizes, plan.settings.views)
    information = yield from _quantify_correlations(study, variables, views, views_epsilon)
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
    )
    if paper:
        structure = yield from update_by_replacement(search, structure, parties)
    else:
        cohorts = in_cohorts(parties, study.cohorts)
        structure = yield from update_in_cohorts(search, structure, cohorts)
    return (yield from learn_parameters(study, variables, structure, table_epsilon))


def views_of(sizes: tuple[int, ...], kind: str) -> Sequence[View]:
    """Return the views of phase 1: of least error, or Algorithm 2 as printed (binary only)."""
    design = printed_design(len(sizes)) if kind == "printed" else optimal_design(sizes)
    return design.views


def in_cohorts(parties: Sequence[Party], cohorts: int) -> list[Sequence[Party]]:
    """Divide the parties, in order, into cohorts whose sizes differ by at most one."""
    bounds = [len(parties) * number // cohorts for number in range(cohorts + 1)]
    return [parties[start:end] for start, end in pairwise(bounds)]


def learn_parameters(
    study: Study, variables: Variables, structure: Structure, cost: Fraction
) -> Script[Fit]:
    """Run phases 4 and 5: noisy tables of the families, and the model that samples from them."""
    network = network_of(structure)
    families = table_sets(network)
    tables = yield from variables.sum_tables(
        families.values(),
        name="parameters",
        phase="parameters",
        parties=study.parties,
        promise=study.method_promise,
        cost=cost,
    )
    return partial(NetworkModel, variables, network, dict(zip(families, tables, strict=True)))


def _quantify_correlations(
    study: Study, variables: Variables, views: Sequence[View], epsilon: Fraction
) -> Script[NDArray[np.float64]]:
    """Run phase 1: all views together; every pair's mutual information is read off them."""
    tables = yield from variables.sum_tables(
        views,
        name="correlations",
        phase="correlations",
        parties=study.parties,
        promise=study.method_promise,
        cost=epsilon,
    )
    pairs = pair_tables(views, [table.astype(np.float64) for table in tables])
    return on_grid(correlations(len(variables.sizes), pairs, study.rows))
