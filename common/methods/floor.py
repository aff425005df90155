"""The floor: every attribute by itself.

All the budget buys one noisy histogram per attribute, and rows are drawn as if the attributes had
nothing to do with each other. Whatever a method learns about dependence must be worth more than the
noise it pays for it: a method that is below this floor has done harm.
"""

from __future__ import annotations

from functools import partial

from common.methods.dp_subn.correlation import onto_simplex
from common.methods.network_model import NetworkModel, network_of, table_sets
from common.methods.variables import Variables
from common.study.document import Study
from common.study.method import Method
from common.study.script import Fit, Script


def floor(study: Study) -> Script[Fit]:
    """One sum of all histograms; attributes keep their domains, whatever the study's encoding."""
    variables = Variables(tuple(study.schema.sizes))
    network = network_of(((),) * len(variables.sizes))
    families = table_sets(network)
    tables = yield from variables.sum_tables(
        families.values(),
        name="histograms",
        phase="histograms",
        parties=tuple(member.name for member in study.members),
        promise=study.promise,
        cost=study.promise.budget,
    )
    fitted = (onto_simplex(table.astype(float), study.rows) for table in tables)
    return partial(NetworkModel, variables, network, dict(zip(families, fitted, strict=True)))


METHOD = Method(
    name="floor",
    summary="every column by itself, to compare with",
    script=floor,
    only_sums=True,
    place=5,
)
