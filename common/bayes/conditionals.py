"""From noisy tables to the distribution of every attribute given its parents.

Pure functions of what has been released: they look at no row and cost no budget. They work on noisy
tables of a network, wherever these come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Network
from common.errors import LocalError

Family = tuple[View, ...]
Tables = Mapping[Family, NDArray[np.int64] | NDArray[np.float64]]
Conditional = NDArray[np.float64]  # (joint values of the parents, values of the child)


def contains(large: Family, small: Family) -> bool:
    """Whether a table over `large` can be summed to one over `small`."""
    levels = dict(large)
    return all(a in levels and levels[a] <= level for a, level in small)


def needed_families(network: Network) -> list[Family]:
    """The tables a release must make: families that lie in no other family [Zhang17, Alg. 1].

    On a network of degree k over binary attributes these are d-k; the first k are derived from the
    clique of the first k+1 attributes. The network is public by then, so the choice is free.
    """
    families = [pair.family for pair in network.pairs]
    return [f for f in families if not any(f is not g and contains(g, f) for g in families)]


def sum_out(
    table: NDArray[np.float64], axes: Family, wanted: Family, domain: Domain
) -> NDArray[np.float64]:
    """The table over `wanted`, a part of `axes` at the same or coarser levels."""
    if not contains(axes, wanted):
        raise LocalError(f"a table over {axes} says nothing about {wanted}")
    kept = {view.attribute for view in wanted}
    summed = table.sum(axis=tuple(i for i, view in enumerate(axes) if view.attribute not in kept))
    order = [view for view in axes if view.attribute in kept]
    for axis, fine in enumerate(order):
        coarse = next(view for view in wanted if view.attribute == fine.attribute)
        if coarse.level != fine.level:
            summed = _merge(summed, axis, domain.regroup(fine, coarse), domain.size(coarse))
    places = {view.attribute: axis for axis, view in enumerate(order)}
    return np.transpose(summed, [places[view.attribute] for view in wanted])


def conditionals_from_marginals(
    network: Network, domain: Domain, tables: Tables
) -> tuple[Conditional, ...]:
    """Pr*[child | parents] for every pair of the network, in its order [Zhang17, Alg. 1 and 3].

    Negative counts become zero. Where a combination of parents has no mass left, nothing is known
    about the child there: it is drawn from its distribution in the same table, and uniformly if
    that is empty as well.

    Tables hold noisy counts, axes in the family's order. A family without a table of its own is
    derived from the smallest table that contains it.
    """
    return tuple(_conditional(pair.family, domain, tables) for pair in network.pairs)


def _conditional(family: Family, domain: Domain, tables: Tables) -> Conditional:
    homes = [held for held in tables if contains(held, family)]
    if not homes:
        raise LocalError(f"no table contains the family {family}")
    home = min(homes, key=lambda held: prod(domain.shape(held)))
    positive = np.maximum(np.asarray(tables[home], dtype=np.float64), 0.0)
    joint = sum_out(positive, home, family, domain).reshape(domain.size(family[0]), -1)
    return normalise_columns(joint)


def normalise_columns(joint: NDArray[np.float64]) -> Conditional:
    """Rows Pr[x | p] from non-negative weights (child, parents); see the fallback rule above."""
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
