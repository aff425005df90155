"""DP-CCBN: PrivBayes with every candidate's table summed over the parties [Su16, section V].

In each of d-1 iterations the noisy tables of ALL candidate attribute-parent pairs are summed, and
the pair with the most mutual information is taken. The noise grows with the number of candidates,
which is what DP-SUBN was made to avoid: this is the method it is compared with. It only asks for
sums, so it can also keep a promise of (epsilon, delta); usefulness is then judged by the epsilon
under which Laplace noise would have the same variance.

The paper splits epsilon in two without saying how; here in halves. Where the tables of an iteration
would have more than `most_cells` cells together, tables are made smaller (a degree less on binary
data, half the cells elsewhere) until they do not: a public rule that looks at no row. The review,
the terminal and the report say so where it happens.

    [dp-ccbn]
    budget = "1:1"              # structure : parameters
    theta = "6"                 # usefulness of the published tables
    most_cells = 524288         # of all candidates of one iteration
    consistency = "off"         # "on", as in new studies of profile `sound`: the tables are made to
                                # agree, non-negative, and sum to the rows
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import comb

import numpy as np

from common.bayes.privbayes.scores import scored_by_shape
from common.methods.dp_subn.decisions import (
    SWITCH,
    FamilyLimit,
    candidate_families,
    lowered,
    network_limit,
    no_network,
)
from common.methods.dp_subn.decisions import SubnSettings as Useful
from common.methods.dp_subn.forecast import consistent as forecast
from common.methods.dp_subn.information import mutual_informations, on_grid
from common.methods.dp_subn.script import learn_parameters, single_columns
from common.methods.network_model import Structure, Variables
from common.privacy import sensitivity
from common.privacy.budget import split
from common.privacy.noise_law import pure_equivalent
from common.study.document import Study
from common.study.method import (
    Method,
    PublicDecision,
    Setting,
    above_zero,
    between,
    parts,
    read_settings,
)
from common.study.requests import Attributes
from common.study.script import Fit, Script

MOST_CELLS = 1 << 19
SETTINGS = {
    "budget": Setting(parts(2), "1:1", "how epsilon is split: structure : tables"),
    "theta": Setting(above_zero, "6", "how far the average cell must stand above its noise"),
    "most_cells": Setting(between(4, 1 << 26), str(MOST_CELLS), "cap on the cells of an iteration"),
    "consistency": Setting(SWITCH, "off", "on: tables agree, are not negative, sum to the rows"),
}


@dataclass(frozen=True, slots=True)
class CcbnSettings:
    """What a study may choose: split, usefulness, the cap of an iteration, consistent tables."""

    budget: tuple[Fraction, ...] = (Fraction(1), Fraction(1))
    theta: Fraction = Fraction(6)
    most_cells: int = MOST_CELLS
    consistency: str = "off"

    @classmethod
    def of(cls, study: Study) -> CcbnSettings:
        """Read the settings of a study; InputError if a value is not allowed."""
        return cls(**read_settings(study, SETTINGS))


def _limits(study: Study, sizes: tuple[int, ...]) -> tuple[FamilyLimit, FamilyLimit]:
    """Return the largest family that is useful, and the largest that the cap leaves."""
    settings, promise = CcbnSettings.of(study), study.method_promise
    _, table_cost = split(promise.budget, settings.budget)
    moved = sensitivity.histograms(len(sizes))
    pure = pure_equivalent(promise.law(table_cost, moved), moved)
    useful = network_limit(sizes, study.rows, pure, Useful(theta_tables=settings.theta))
    return useful, affordable_limit(sizes, useful, settings.most_cells)


def decisions(study: Study) -> list[PublicDecision]:
    sizes = Variables.of(study).sizes
    useful, limit = _limits(study, sizes)
    cap = lowered(
        "k",
        useful=useful.parents,
        got=limit.parents,
        unit="parents",
        method="dp-ccbn",
        caps="most_cells",
    )
    settings = CcbnSettings.of(study)
    consistent = settings.consistency == "on"
    if limit.parents == 0 and consistent:
        return [no_network("dp-ccbn", projected=True)]
    promise = study.method_promise
    costs = ", ".join(f"{float(part):g}" for part in split(promise.budget, settings.budget))
    return [
        PublicDecision(f"{promise.currency} for structure and parameters", costs),
        PublicDecision(
            "parents of an attribute (k)", f"{limit.parents} (theta {settings.theta})", cap
        ),
        *([PublicDecision("tables", "made consistent")] if consistent else []),
    ]


def candidate_tables(study: Study) -> int:
    """Return at most how many tables the candidates of all iterations are."""
    sizes = Variables.of(study).sizes
    _, limit = _limits(study, sizes)
    return sum(_candidates(len(sizes), placed, limit) for placed in range(1, len(sizes)))


def dp_ccbn(study: Study) -> Script[Fit]:
    variables = Variables.of(study)
    promise = study.method_promise
    settings = CcbnSettings.of(study)
    consistent = settings.consistency == "on"
    structure_cost, table_cost = split(promise.budget, settings.budget)
    _, limit = _limits(study, variables.sizes)
    if limit.parents == 0:
        return (yield from single_columns(study, variables, projected=consistent))
    structure = yield from _learn_structure(study, variables, limit, structure_cost)
    return (
        yield from learn_parameters(study, variables, structure, table_cost, consistent=consistent)
    )


def _learn_structure(
    study: Study, variables: Variables, limit: FamilyLimit, cost: Fraction
) -> Script[Structure]:
    sizes = variables.sizes
    placed = [first_attribute(study, len(sizes))]
    parents: dict[int, Attributes] = {placed[0]: ()}
    iterations = len(sizes) - 1
    for number in range(1, len(sizes)):
        families = candidate_families(sizes, placed, limit)
        tables = yield from variables.sum_tables(
            families,
            name=f"candidates, iteration {number} of {iterations}",
            phase="structure",
            parties=study.parties,
            promise=study.method_promise,
            cost=cost / iterations,
        )
        scores = scored_by_shape(tables, partial(mutual_informations, rows=study.rows))
        child, *chosen = families[int(np.argmax(on_grid(np.array(scores))))]  # the first of equals
        placed.append(child)
        parents[child] = tuple(chosen)
    return tuple(parents[child] for child in range(len(sizes)))


def first_attribute(study: Study, attributes: int) -> int:
    """Return the root, which no row may influence: the digest of the study decides."""
    drawn = hashlib.sha256(b"parley dp-ccbn root 1" + study.digest).digest()
    return int.from_bytes(drawn, "big") % attributes


def affordable_limit(
    sizes: tuple[int, ...], limit: FamilyLimit, most_cells: int = MOST_CELLS
) -> FamilyLimit:
    """Lower a limit until every iteration's candidates fit into `most_cells`."""
    while limit.parents > 0 and _most_cells(len(sizes), limit) > most_cells:
        limit = FamilyLimit(limit.parents - 1, limit.cells // 2)
    return limit


def _most_cells(attributes: int, limit: FamilyLimit) -> int:
    """Return a bound on the cells of an iteration: all children times all largest parent sets."""
    return max(
        _candidates(attributes, placed, limit) * limit.cells for placed in range(1, attributes)
    )


def _candidates(attributes: int, placed: int, limit: FamilyLimit) -> int:
    """Return a bound on the candidates of one iteration."""
    return (attributes - placed) * comb(placed, min(limit.parents, placed)) if limit.parents else 0


METHOD = Method(
    name="dp-ccbn",
    summary="a network, all candidates summed",
    script=dp_ccbn,
    settings=SETTINGS,
    decisions=decisions,
    tables=candidate_tables,
    forecast=forecast,
    only_sums=True,
    place=3,
)
