"""Answers: the tables that a study's analyses need, with noise, and no synthetic rows.

For counts before a study, or one coefficient after it, at a small epsilon. The margins of the
columns that some analysis names are measured, then the declared tables
(`common.methods.subn_plus.declared`): these sums are the release. Other columns are not counted.

Estimates (`common.analysis.answers`) are computed from rows of a mixture that is fitted to the
sums. These rows stand for the sums, and are not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from common.bayes.form import Model, NetworkForm
from common.errors import InputError
from common.methods.subn_plus.declared import (
    DECLARED,
    DeclaredTables,
    ask_declared,
    declared_sets,
    tables_for,
)
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.losses import Measurement
from common.methods.subn_plus.models import mixture_model
from common.methods.subn_plus.plans import MARGINS, Ask, Plan
from common.methods.subn_plus.prospects import Planned, Prospects
from common.methods.subn_plus.requests import GroupedTables
from common.methods.subn_plus.sums import every_value, tables_of
from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import Codes
from common.study.document import Study
from common.study.method import Method, PublicDecision, no_decisions
from common.study.script import Fit, Script

_MARGINS = Fraction(1, 3)  # of the budget, where pairs are asked for
_FORMAT = "parley answers 1"


@dataclass(frozen=True, eq=False)
class MeasuredAnswers(Model):
    """The published tables, and a mixture of the columns that they count.

    Columns that no table counts are drawn evenly; nothing is said about them.
    """

    sizes: tuple[int, ...]
    columns: tuple[int, ...]  # those that some analysis names
    tables: tuple[Measurement, ...]
    mixture: Model | None  # of these columns; None if there are none

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw the rows that estimates are computed from."""
        drawn = () if self.mixture is None else self.mixture.sample(rows, source).columns
        known = dict(zip(self.columns, drawn, strict=True))
        columns: list[NDArray[np.integer]] = [
            known[a] if a in known else (uniforms(rows, source) * size).astype(np.intp)
            for a, size in enumerate(self.sizes)
        ]
        return Codes.from_columns(columns, self.sizes)

    def form(self) -> Sequence[NetworkForm]:
        """Return no networks: rows are drawn until enough satisfy a condition."""
        return ()

    def as_json(self) -> dict[str, object]:
        return {"format": _FORMAT, "tables": [_as_json(table) for table in self.tables]}


def _as_json(table: Measurement) -> dict[str, object]:
    return {
        "attributes": list(table.attributes),
        "groups": [None if group_of is None else group_of.tolist() for group_of in table.groupings],
        "counts": table.counts.astype(np.int64).tolist(),
        "noise_variance": table.variance,
    }


def plan(facts: PublicFacts) -> tuple[Plan, DeclaredTables | None]:
    """Return the two sums: margins of the columns that are named, and declared tables."""
    blocks = tuple((a,) for a in named(facts))
    if not declared_sets(facts):
        return Plan(name="answers", asks=(Ask(MARGINS, facts.budget),), blocks=blocks), None
    margins = facts.budget * _MARGINS
    asks = (Ask(MARGINS, margins), Ask(DECLARED, facts.budget - margins))
    return Plan(name="answers", asks=asks, blocks=blocks), tables_for(facts, asks[1].cost)


def named(facts: PublicFacts) -> tuple[int, ...]:
    """Return the columns that some analysis names."""
    return tuple(sorted({a for columns in facts.declared for a in columns}))


def answers(study: Study) -> Script[Fit]:
    """Ask for the margins of the columns that are named, and for the declared tables."""
    _check(study)
    facts = PublicFacts.of(replace(study, settings=()))
    planned, _ = plan(facts)
    first, *rest = planned.asks
    request = GroupedTables(planned.blocks, every_value(facts))
    margins = yield from tables_of(facts, first.name, first.cost, request)
    histograms = [np.zeros(size, np.int64) for size in facts.sizes]
    for (a,), table in zip(planned.blocks, margins.tables, strict=True):
        histograms[a] = table
    declared = list[Measurement]()
    for ask in rest:
        declared, _ = yield from ask_declared(facts, ask, histograms)
    return partial(_fit, facts, margins.measurements(facts), declared)


def _check(study: Study) -> None:
    """Refuse what answers have no use for."""
    refused = {"rows": study.output_rows, "others": study.others is not None,
               "criterion": study.criteria, "prior": study.prior}  # fmt: skip
    for key, value in refused.items():
        if value:
            raise InputError(
                f"{key}: method answers publishes no synthetic rows and no model of other columns. "
                "Leave it out, or use method subn+"
            )
    if not study.analyses:
        raise InputError(
            "analysis: method answers publishes what analyses need, and the study declares none. "
            "Name at least one [[analysis]]"
        )


def _fit(
    facts: PublicFacts, margins: Sequence[Measurement], declared: Sequence[Measurement]
) -> MeasuredAnswers:
    columns = named(facts)
    place = {a: number for number, a in enumerate(columns)}
    inside = replace(
        facts,
        sizes=tuple(facts.sizes[a] for a in columns),
        ordered=tuple(facts.ordered[a] for a in columns),
        declared=(),
    )

    def moved(tables: Sequence[Measurement]) -> list[Measurement]:
        return [
            replace(table, attributes=tuple(place[a] for a in table.attributes)) for table in tables
        ]

    mixture: LatentModel = mixture_model(inside, moved(margins), declared=moved(declared))
    return MeasuredAnswers(facts.sizes, columns, (*margins, *declared), mixture)


def _planned(study: Study) -> Planned:
    facts = PublicFacts.of(replace(study, settings=()))
    return facts, *plan(facts)


_PROSPECTS = Prospects(_planned)


def decisions(study: Study) -> list[PublicDecision]:
    """Refuse settings; tell what is measured for the analyses."""
    return [*no_decisions(study), *_PROSPECTS.decisions(study)]


METHOD = Method(
    name="answers",
    summary="noisy tables of declared analyses, no synthetic rows",
    script=answers,
    encodings=("own",),
    decisions=decisions,
    clearest=_PROSPECTS.clearest,
    prospects=_PROSPECTS.of,
    halving=_PROSPECTS.halving,
    advice=_PROSPECTS.advice,
    analyses=True,
    publishes_rows=False,
    only_sums=True,
    place=7,
)
