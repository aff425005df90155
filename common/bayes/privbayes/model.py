"""A fitted PrivBayes model: what was released, and the rows that can be drawn from it.

A model holds the plan, the network and the noisy tables, nothing else: all of it was released under
differential privacy, so it may be published, stored, and sampled any number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.form import Model, NetworkForm, of_attributes, of_bits
from common.bayes.network import Conditional, Family, Network, conditionals_from_marginals
from common.bayes.postprocessing import consistent_tables
from common.bayes.privbayes.decisions import Encoding, PrivBayesDecisions
from common.bayes.privbayes.parent_sets import Constraints
from common.bayes.privbayes.scores import Score
from common.bayes.sampling import Sampler
from common.bayes.weighting import WeightedNetwork
from common.errors import InputError, LocalError
from common.privacy import sensitivity
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import RandomSource
from common.schema.codes import Codes
from common.schema.rules import Possible

_FORMAT = "parley privbayes model 1"


def _unchanged(value: object) -> object:
    return value


_DAMAGED = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)
# Of each decision in a file: how it is written, and how it is read.
_PLAN: Mapping[str, tuple[Callable[[Any], object], Callable[[Any], object]]] = {
    "encoding": (str, Encoding),
    "sizes": (list, tuple),
    **dict.fromkeys(("rows", "degree", "cells", "useful"), (_unchanged, _unchanged)),
    "printed_sensitivity": (bool, bool),
    "score": (str, Score),
    **dict.fromkeys(("network_epsilon", "table_epsilon"), (str, Fraction)),
    "constraints": (Constraints.to_json, Constraints.from_json),
}


@dataclass(frozen=True, eq=False)
class PrivBayesModel(Model):
    """A network with noisy counts of its families."""

    plan: PrivBayesDecisions
    network: Network
    # Noisy counts by family, axes in the family's order, exactly as released; 0 in cells that rules
    # make impossible.
    tables: Mapping[Family, NDArray[np.int64]]
    consistency: bool  # whether the tables are made to agree before they are used
    private: bool  # false if any random bit came from a seeded source

    def within(self, possible: Possible) -> PrivBayesModel:
        """Return the model with 0 in every cell that a rule makes impossible: it held only noise.

        Tables of bits do not change, nor do tables of attributes in groups of their values.
        """
        if self.plan.encoding.in_bits or not possible.rules:
            return self
        tables = dict(self.tables)
        for family, table in tables.items():
            variables, levels = zip(*family, strict=True)
            mask = possible.mask(variables, [level > 0 for level in levels])
            tables[family] = table if mask is None else table * mask
        return replace(self, tables=tables)

    @property
    def law(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.noise_scale)

    @property
    def noise_scale(self) -> Fraction:
        return sensitivity.histograms(len(self.tables)).l1 / self.plan.table_epsilon

    @cached_property
    def conditionals(self) -> tuple[Conditional, ...]:
        """Pr*[variable | parents], in network order."""
        tables = (
            consistent_tables(self.tables, self.plan.domain, rows=self.plan.rows)
            if self.consistency
            else self.tables
        )
        return conditionals_from_marginals(self.network, self.plan.domain, tables)

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(self.network, self.plan.domain, self.conditionals)

    def sample(self, rows: int, source: RandomSource) -> Codes:
        encoding = self.plan.encoding
        if not encoding.in_bits:
            return self.sampler.sample(rows, source)
        gray = encoding is Encoding.GRAY
        return self.sampler.sample_from_bits(rows, source, self.plan.sizes, gray=gray)

    def form(self) -> tuple[NetworkForm, ...]:
        """Return the network; attributes that were coded in bits are read from these."""
        net = WeightedNetwork(self.network, self.plan.domain, self.conditionals)
        encoding, sizes = self.plan.encoding, self.plan.sizes
        if not encoding.in_bits:
            return (of_attributes(net, sizes),)
        return (of_bits(net, sizes, gray=encoding is Encoding.GRAY),)

    def as_json(self) -> dict[str, object]:
        domain = self.plan.domain
        return {
            "format": _FORMAT,
            **{key: write(getattr(self.plan, key)) for key, (write, _) in _PLAN.items()},
            "levels": [[groups.tolist() for groups in maps[1:]] for maps in domain.levels],
            "variable_sizes": list(domain.sizes),
            "noise_scale": str(self.noise_scale),
            "consistency": self.consistency,
            "private": self.private,
            "network": self.network.to_json(),
            "tables": [
                {"family": [list(view) for view in family], "counts": table.ravel().tolist()}
                for family, table in self.tables.items()
            ],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PrivBayesModel:
        if document.get("format") != _FORMAT:
            raise InputError(
                f"this is not a model this version can read: its format is "
                f"{document.get('format')!r}, expected {_FORMAT!r}"
            )
        try:
            return cls._parse(document)
        except (*_DAMAGED, LocalError) as error:
            raise InputError(f"the model is damaged: {error!r}") from error

    @classmethod
    def _parse(cls, document: Mapping[str, Any]) -> PrivBayesModel:
        domain = Domain(
            tuple(
                (np.arange(size), *(np.array(groups, dtype=np.intp) for groups in maps))
                for size, maps in zip(document["variable_sizes"], document["levels"], strict=True)
            )
        )
        network = Network.from_json(document["network"])
        network.check(domain)
        decided: dict[str, Any] = {key: read(document[key]) for key, (_, read) in _PLAN.items()}
        if decided["table_epsilon"] <= 0 or decided["network_epsilon"] < 0:
            raise ValueError("a model without a budget")
        if decided["rows"] < 1:
            raise ValueError("a model of no rows")
        public = network if decided["network_epsilon"] == 0 else None
        plan = PrivBayesDecisions(**decided, domain=domain, network=public)
        tables = {}
        for entry in document["tables"]:
            family = tuple(View(int(a), int(level)) for a, level in entry["family"])
            counts = np.array(entry["counts"], dtype=np.int64)
            tables[family] = counts.reshape(domain.shape(family))
        return cls(plan, network, tables, document["consistency"], document["private"])
