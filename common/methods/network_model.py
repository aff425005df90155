"""What the methods that learn a network count, and the model that they publish.

A method counts attributes in their own domains, or their bits as in the paper (`Variables`). It
publishes a Bayesian network with noisy tables of its families (`NetworkModel`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain
from common.bayes.form import Model, NetworkForm, of_attributes, of_bits
from common.bayes.network import (
    Conditional,
    Family,
    Network,
    conditionals_from_marginals,
    needed_families,
)
from common.bayes.sampling import Sampler
from common.bayes.weighting import WeightedNetwork
from common.exchanges.sums import sum_step
from common.privacy import sensitivity
from common.privacy.promise import Promise
from common.privacy.randomness import RandomSource
from common.schema.codes import Codes, bit_count
from common.study.document import Study
from common.study.requests import Attributes, Counts, PartyRows, TableRequest, rows_in_bits
from common.study.script import Script, summed


@dataclass(frozen=True, slots=True)
class Variables:
    """The columns a method works on.

    Attributes:
        attribute_sizes: the domain sizes of the study's attributes.
        in_bits: whether each attribute is taken apart into bits.
    """

    attribute_sizes: tuple[int, ...]
    in_bits: bool = False

    @classmethod
    def of(cls, study: Study) -> Variables:
        return cls(tuple(study.schema.sizes), study.encoding == "binary")

    @property
    def sizes(self) -> tuple[int, ...]:
        if not self.in_bits:
            return self.attribute_sizes
        return (2,) * sum(bit_count(size) for size in self.attribute_sizes)

    def request(self, sets: Iterable[Attributes]) -> TableRequest:
        return TableRequest(tuple(sets), self.sizes, self.in_bits)

    def rows(self, data: PartyRows) -> PartyRows:
        """Return a party's rows in these variables."""
        return rows_in_bits(data) if self.in_bits else data

    def sum_tables(
        self,
        sets: Iterable[Attributes],
        *,
        name: str,
        phase: str,
        parties: tuple[str, ...],
        promise: Promise,
        cost: Fraction,
    ) -> Script[list[Counts]]:
        """Ask for noisy tables of the rows of some parties together, at a cost to each."""
        request = self.request(sets)
        moved = sensitivity.histograms(len(request.sets))
        step = sum_step(
            name=name,
            phase=phase,
            parties=parties,
            request=request,
            sensitivity=moved,
            law=promise.law(cost, moved),
        )
        return (yield from summed(step))


Structure = tuple[tuple[int, ...], ...]  # the parents of each attribute


@dataclass(frozen=True, eq=False)
class NetworkModel(Model):
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
        """Draw rows in the study's own domains, by ancestral sampling."""
        if not self.variables.in_bits:
            return self.sampler.sample(rows, source)
        return self.sampler.sample_from_bits(rows, source, self.variables.attribute_sizes)

    @property
    def arrows(self) -> Network:
        """The network."""
        return self.network

    def form(self) -> tuple[NetworkForm, ...]:
        """Return the network; attributes that were counted in bits are read from these."""
        net = WeightedNetwork(self.network, self.domain, self.conditionals)
        sizes = self.variables.attribute_sizes
        return (of_bits(net, sizes) if self.variables.in_bits else of_attributes(net, sizes),)

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
    return Network.from_parents({child: tuple(parents) for child, parents in enumerate(structure)})


def table_sets(network: Network) -> dict[Family, Attributes]:
    """Return the tables that a network needs, and their variables, child first.

    On binary variables a network of degree k whose first k+1 variables form a clique needs d-k.
    """
    return {family: tuple(view.attribute for view in family) for family in needed_families(network)}
