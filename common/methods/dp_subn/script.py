"""DP-SUBN: the sequential update of a Bayesian network, in five phases [Su16, section VI].

1. Noisy views give the correlation of every pair of attributes.
2. The parties choose a first network, each on its own rows.
3. The network is updated from noisy tables of a search frontier.
4. Noisy tables of the final network's families give its parameters.
5. Rows are sampled; that is free.

The paper's noise replacement in phase 3 costs early parties several times what its Theorem 5 says
(docs/privacy.md). Profile `paper` does it, and its steps carry the true cost; profile `sound` works
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

from common.methods.designs.nocd import optimal_design
from common.methods.dp_subn.correlation import correlations, pair_tables
from common.methods.dp_subn.families import frontier_limit, network_limit
from common.methods.dp_subn.initialisation import initial_structure
from common.methods.dp_subn.updates import (
    Party,
    Search,
    on_grid,
    update_by_replacement,
    update_in_cohorts,
)
from common.methods.network_model import NetworkModel, Structure, network_of, table_sets
from common.methods.variables import Variables
from common.privacy.budget import split
from common.study.document import Study
from common.study.script import Fit, Script

SHARES = (1, 1, 1, 1)
"""How the budget is divided among the first four phases; the paper's choice."""


def dp_subn(study: Study, shares: Sequence[Fraction | int] = SHARES) -> Script[Fit]:
    """The five phases.

    If the budget does not carry a single parent, there is no structure to learn: all of it then
    buys the parameters of independent columns. Which of the two it is depends on public values.
    """
    variables = Variables.of(study)
    parties = [(member.name, member.rows) for member in study.members]
    views_epsilon, choice_epsilon, update_epsilon, table_epsilon = split(study.epsilon, shares)
    limit = network_limit(variables.sizes, study.rows, table_epsilon)
    structure: Structure = ((),) * len(variables.sizes)
    if limit.parents == 0:
        return (yield from learn_parameters(study, variables, structure, study.epsilon))
    information = yield from _quantify_correlations(study, variables, views_epsilon)
    structure = yield from initial_structure(variables, parties, limit, choice_epsilon)
    search = Search(
        variables=variables,
        information=information,
        network_limit=limit,
        frontier_limit=frontier_limit(variables.sizes, study.rows, update_epsilon, limit),
        promise=study.promise,
        epsilon=update_epsilon,
    )
    if study.profile == "paper":
        structure = yield from update_by_replacement(search, structure, parties)
    else:
        cohorts = in_cohorts(parties, study.cohorts)
        structure = yield from update_in_cohorts(search, structure, cohorts)
    return (yield from learn_parameters(study, variables, structure, table_epsilon))


def in_cohorts(parties: Sequence[Party], cohorts: int) -> list[Sequence[Party]]:
    """The parties in order, in so many cohorts whose sizes differ by at most one."""
    bounds = [len(parties) * number // cohorts for number in range(cohorts + 1)]
    return [parties[start:end] for start, end in pairwise(bounds)]


def learn_parameters(
    study: Study, variables: Variables, structure: Structure, cost: Fraction
) -> Script[Fit]:
    """Phases 4 and 5: noisy tables of the families, and the model that samples from them."""
    network = network_of(structure)
    families = table_sets(network)
    tables = yield from variables.sum_tables(
        families.values(),
        name="parameters",
        phase="parameters",
        parties=tuple(member.name for member in study.members),
        promise=study.promise,
        cost=cost,
    )
    return partial(NetworkModel, variables, network, dict(zip(families, tables, strict=True)))


def _quantify_correlations(
    study: Study, variables: Variables, epsilon: Fraction
) -> Script[NDArray[np.float64]]:
    """Phase 1: all views together; the mutual information of every pair is read off them."""
    views = optimal_design(variables.sizes).views
    tables = yield from variables.sum_tables(
        views,
        name="correlations",
        phase="correlations",
        parties=tuple(member.name for member in study.members),
        promise=study.promise,
        cost=epsilon,
    )
    pairs = pair_tables(views, [table.astype(np.float64) for table in tables])
    return on_grid(correlations(len(variables.sizes), pairs, study.rows))
