"""The floor: every attribute by itself.

All the budget buys one noisy histogram per attribute, and rows are drawn as if the attributes had
nothing to do with each other; of people with events, the number of events and what events have,
too. What a method learns about dependence must be worth more than the noise it pays for it: a
method that is below this floor has done harm.
"""

from __future__ import annotations

from functools import partial

from common.bayes.postprocessing import margin_of
from common.methods.network_model import NetworkModel, Variables, network_of, table_sets
from common.methods.subn_plus.descent import descending
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.linked.descent import descending_linked
from common.methods.subn_plus.linked.plans import margins_only
from common.methods.subn_plus.linked.script import measure_linked
from common.privacy import sensitivity
from common.study.document import Study
from common.study.method import Method
from common.study.script import Fit, Script


def floor(facts: PublicFacts) -> Script[Fit]:
    """Sum all histograms; attributes keep their domains, whatever the study's encoding."""
    variables = Variables(facts.sizes)
    network = network_of(((),) * len(variables.sizes))
    families = table_sets(network)
    tables = yield from variables.sum_tables(
        families.values(),
        name="histograms",
        phase="histograms",
        parties=facts.parties,
        promise=facts.promise,
        cost=facts.budget,
    )
    deviation = facts.deviation(facts.budget, sensitivity.histograms(len(tables)))
    fitted = (
        margin_of(table.astype(float), facts.rows, deviation, run)
        for table, run in zip(tables, facts.ordered, strict=True)
    )
    return partial(NetworkModel, variables, network, dict(zip(families, fitted, strict=True)))


def script(study: Study) -> Script[Fit]:
    """Begin the script for people with their events, or for a single table."""
    if study.schema.events is not None:
        return descending_linked(
            partial(measure_linked, decide=margins_only, with_totals=False), study
        )
    return descending(floor, study)


METHOD = Method(
    name="floor",
    summary="every column by itself, to compare with",
    script=script,
    linked=True,
    only_sums=True,
    place=5,
)
