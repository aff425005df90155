"""A Bayesian network, and the conditional distributions that noisy tables give its attributes.

The order of the pairs is the order of sampling. A network whose parents all come earlier is acyclic
by construction, and `Network` refuses any other.

Nothing here looks at rows, and nothing costs budget: a network that was learnt privately, or drawn
by hand, may be published, and conditionals are computed from tables that were released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.errors import InputError, LocalError

Family = tuple[View, ...]
Tables = Mapping[Family, NDArray[np.int64] | NDArray[np.float64]]
Conditional = NDArray[np.float64]  # (joint values of the parents, values of the child)


@dataclass(frozen=True, slots=True)
class Pair:
    """One attribute and its parents [Zhang17: the AP pair]; parents are sorted by attribute."""

    child: int
    parents: tuple[View, ...] = ()

    @property
    def family(self) -> Family:
        """The child at full detail, then its parents: the axes of the pair's table."""
        return (View(self.child), *self.parents)


@dataclass(frozen=True, slots=True)
class Network:
    """Attribute-parent pairs in sampling order, one per attribute 0..d-1."""

    pairs: tuple[Pair, ...]

    def __post_init__(self) -> None:
        """Refuse cycles, missing attributes and repeated parents."""
        earlier: set[int] = set()
        for pair in self.pairs:
            parents = [view.attribute for view in pair.parents]
            if pair.child in earlier:
                raise InputError(f"attribute {pair.child} stands twice in the network")
            if sorted(set(parents)) != parents:
                raise InputError(
                    f"attribute {pair.child}: parents must be different and in ascending order"
                )
            if late := [parent for parent in parents if parent not in earlier]:
                raise InputError(
                    f"attribute {pair.child} has parents {late} that do not come before it; "
                    "list parents first, and check for a cycle"
                )
            earlier.add(pair.child)
        if earlier != set(range(len(self.pairs))):
            raise InputError("the network must contain every attribute exactly once")

    @classmethod
    def from_parents(cls, parents: Mapping[int, Sequence[View | int]]) -> Network:
        """Return the network of the parents per attribute, which come in any order."""
        waiting = {
            child: tuple(sorted(View(p) if isinstance(p, int) else p for p in chosen))
            for child, chosen in parents.items()
        }
        pairs: list[Pair] = []
        placed: set[int] = set()
        while waiting:
            ready = [c for c, ps in waiting.items() if all(p.attribute in placed for p in ps)]
            if not ready:
                raise InputError(f"the edges among attributes {sorted(waiting)} form a cycle")
            for child in sorted(ready):
                pairs.append(Pair(child, waiting.pop(child)))
                placed.add(child)
        return cls(tuple(pairs))

    @property
    def edges(self) -> list[tuple[int, int]]:
        return [(view.attribute, pair.child) for pair in self.pairs for view in pair.parents]

    def check(self, domain: Domain) -> None:
        """Refuse a network that does not fit these attributes and hierarchies."""
        if len(self.pairs) != domain.width:
            raise InputError(
                f"the network has {len(self.pairs)} attributes, the table {domain.width}"
            )
        for pair in self.pairs:
            for view in pair.parents:
                if not 0 <= view.level < domain.height(view.attribute):
                    raise InputError(
                        f"attribute {pair.child}: parent {view.attribute} has no level {view.level}"
                    )

    def to_json(self) -> list[dict[str, Any]]:
        """Return a list of `{"child": 3, "parents": [[0, 0], [2, 1]]}` (attribute, level)."""
        return [
            {"child": pair.child, "parents": [list(view) for view in pair.parents]}
            for pair in self.pairs
        ]

    @classmethod
    def from_json(cls, document: Sequence[Mapping[str, Any]]) -> Network:
        """Return the network in a document; InputError if the document holds none."""
        try:
            return cls(
                tuple(
                    Pair(
                        int(entry["child"]),
                        tuple(View(int(a), int(v)) for a, v in entry["parents"]),
                    )
                    for entry in document
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"this is not a network: {error!r}") from error


def contains(large: Family, small: Family) -> bool:
    """Return whether a table over `large` can be summed to one over `small`."""
    levels = dict(large)
    return all(a in levels and levels[a] <= level for a, level in small)


def needed_families(network: Network) -> list[Family]:
    """Return the tables that a release needs: families within no other family [Zhang17, Alg. 1].

    On a network of degree k over binary attributes these are d-k; the first k are derived from the
    clique of the first k+1 attributes. The network is public by then, so the choice is free.
    """
    families = [pair.family for pair in network.pairs]
    with_attribute: dict[int, list[Family]] = {}
    for family in families:
        for view in family:
            with_attribute.setdefault(view.attribute, []).append(family)
    return [
        f
        for f in families
        if not any(f is not g and contains(g, f) for g in with_attribute[f[0].attribute])
    ]


def sum_out(
    table: NDArray[np.float64], axes: Family, family: Family, domain: Domain
) -> NDArray[np.float64]:
    """Return the table over `family`, a part of `axes` at equal or coarser levels."""
    if not contains(axes, family):
        raise LocalError(f"a table over {axes} says nothing about {family}")
    attributes = {view.attribute for view in family}
    summed = table.sum(
        axis=tuple(i for i, view in enumerate(axes) if view.attribute not in attributes)
    )
    order = [view for view in axes if view.attribute in attributes]
    for axis, fine in enumerate(order):
        coarse = next(view for view in family if view.attribute == fine.attribute)
        if coarse.level != fine.level:
            summed = _merge(summed, axis, domain.regroup(fine, coarse), domain.size(coarse))
    places = {view.attribute: axis for axis, view in enumerate(order)}
    return np.transpose(summed, [places[view.attribute] for view in family])


def conditionals_from_marginals(
    network: Network, domain: Domain, tables: Tables
) -> tuple[Conditional, ...]:
    """Return Pr*[child | parents] of every pair, in network order [Zhang17, Alg. 1 and 3].

    Negative counts become zero. Where a combination of parents has no mass left, nothing is known
    about the child: the child then has its marginal distribution in the table, or the uniform one
    if the table is empty.

    Tables hold noisy counts, axes in the family's order. A family without a table of its own is
    derived from the smallest table that contains it.
    """
    return tuple(_conditional(pair.family, domain, tables) for pair in network.pairs)


def _conditional(family: Family, domain: Domain, tables: Tables) -> Conditional:
    homes = [axes for axes in tables if contains(axes, family)]
    if not homes:
        raise LocalError(f"no table contains the family {family}")
    home = min(homes, key=lambda axes: prod(domain.shape(axes)))
    positive = np.maximum(np.asarray(tables[home], dtype=np.float64), 0.0)
    joint = sum_out(positive, home, family, domain).reshape(domain.size(family[0]), -1)
    return normalise_columns(joint)


def normalise_columns(joint: NDArray[np.float64]) -> Conditional:
    """Return rows Pr[x | p] of weights (child, parents), with the fallback stated above."""
    size = joint.shape[0]
    child = joint.sum(axis=1)
    total = child.sum()
    margin = child / total if total > 0 else np.full(size, 1.0 / size)
    mass = joint.sum(axis=0)
    result = np.tile(margin, (joint.shape[1], 1))
    known = mass > 0
    result[known] = (joint[:, known] / mass[known]).T
    return result


def _merge(
    table: NDArray[np.float64], axis: int, groups: NDArray[np.intp], size: int
) -> NDArray[np.float64]:
    """Sum the slices of one axis that fall into the same group."""
    shape = list(table.shape)
    shape[axis] = size
    merged = np.zeros(shape)
    np.add.at(np.moveaxis(merged, axis, 0), groups, np.moveaxis(table, axis, 0))
    return merged
