"""What every method but one publishes: a Bayesian network with noisy tables of its families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain
from common.bayes.network import (
    Conditional,
    Family,
    Network,
    conditionals_from_marginals,
    needed_families,
)
from common.bayes.sampling import Sampler
from common.methods.variables import Variables
from common.privacy.randomness import RandomSource
from common.schema.codes import Codes
from common.study.requests import Attributes

Structure = tuple[tuple[int, ...], ...]  # the parents of each attribute


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network and the noisy tables its conditionals are computed from.

    Attributes:
        tables: noisy counts by family; families that lie in another need none of their own.
    """

    variables: Variables
    network: Network
    tables: Mapping[Family, NDArray[np.int64] | NDArray[np.float64]]

    @cached_property
    def domain(self) -> Domain:
        return Domain.flat(self.variables.sizes)

    @cached_property
    def conditionals(self) -> tuple[Conditional, ...]:
        """Pr*[variable | parents], in network order: negative counts clipped, then normalised."""
        return conditionals_from_marginals(self.network, self.domain, self.tables)

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(self.network, self.domain, self.conditionals)

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Rows in the study's own domains, by ancestral sampling."""
        if not self.variables.in_bits:
            return self.sampler.sample(rows, source)
        return self.sampler.sample_from_bits(rows, source, self.variables.attribute_sizes)

    def as_json(self) -> dict[str, object]:
        return {
            "format": "parley network 1",
            "encoding": "binary" if self.variables.in_bits else "own",
            "sizes": list(self.variables.sizes),
            "network": self.network.to_json(),
            "tables": [
                {"family": [view.attribute for view in family], "counts": table.ravel().tolist()}
                for family, table in self.tables.items()
            ],
        }


def network_of(structure: Structure) -> Network:
    return Network.from_parents({child: tuple(own) for child, own in enumerate(structure)})


def table_sets(network: Network) -> dict[Family, Attributes]:
    """The tables a network needs, and their variables, child first.

    On binary variables a network of degree k whose first k+1 variables form a clique needs d-k.
    """
    return {family: tuple(view.attribute for view in family) for family in needed_families(network)}
