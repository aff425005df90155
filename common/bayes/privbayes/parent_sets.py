"""How large the table of an attribute and its parents may be, and which parent sets that leaves.

Everything here is computed from public quantities and costs no budget: row counts, domains,
epsilon, and what the user requires or forbids.

A table is theta-useful if the average probability of its cells is theta times the expected size of
the noise on them [Zhang17, Def. 4.7]. On binary attributes that bounds the degree of the network,
elsewhere the cells of a table.

A parent set is *maximal* when it fits the limit and no set that fits contains it with one more
attribute or with one attribute at a finer level [Zhang17, Alg. 5 and 6]. Scores never fall when
parents are added or refined, so nothing is lost by looking at maximal sets only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.errors import InputError, LocalError

Edge = tuple[int, int]  # (parent, child)
ParentSet = tuple[View, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """Required edges, forbidden edges, and a cap on the number of parents.

    They come from knowledge of the subject, never from the rows, and so cost no budget.
    """

    required: frozenset[Edge] = frozenset()
    forbidden: frozenset[Edge] = frozenset()
    max_parents: int | None = None

    def check(self, attributes: int) -> None:
        """Refuse constraints that contradict each other or name unknown attributes."""
        for parent, child in self.required | self.forbidden:
            if parent == child or not (0 <= parent < attributes and 0 <= child < attributes):
                raise InputError(
                    f"edge {parent} -> {child}: expected two different attributes "
                    f"in 0..{attributes - 1}"
                )
        if both := self.required & self.forbidden:
            raise InputError(f"edges {sorted(both)} are both required and forbidden")
        if self.max_parents is not None:
            if self.max_parents < 0:
                raise InputError(f"at most {self.max_parents} parents: expected 0 or more")
            for child in range(attributes):
                if len(self.required_parents(child)) > self.max_parents:
                    raise InputError(
                        f"attribute {child} has more required parents than the cap of "
                        f"{self.max_parents}"
                    )
        # Topological sorting refuses cycles among the required edges.
        Network.from_parents({c: self.required_parents(c) for c in range(attributes)})

    def to_json(self) -> dict[str, Any]:
        return {
            "required": sorted(map(list, self.required)),
            "forbidden": sorted(map(list, self.forbidden)),
            "max_parents": self.max_parents,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Constraints:
        required, forbidden = (
            frozenset((int(parent), int(child)) for parent, child in document[key])
            for key in ("required", "forbidden")
        )
        return cls(required, forbidden, document["max_parents"])

    def required_parents(self, child: int) -> list[int]:
        """Return the parents an attribute must have, ascending."""
        return sorted(parent for parent, c in self.required if c == child)

    def pool(self, child: int, available: Collection[int]) -> list[int] | None:
        """Return the possible parents of a child; None while a required one is missing."""
        if any(parent not in available for parent in self.required_parents(child)):
            return None
        return sorted(parent for parent in available if (parent, child) not in self.forbidden)


UNCONSTRAINED = Constraints()


def usefulness(
    *, rows: int, attributes: int, degree: int, epsilon: Fraction, tables: int | None = None
) -> Fraction:
    """Return U(k) = n eps2 / (m 2^(k+2)) of m tables of k+1 bits each [Zhang17, Lemma 4.8].

    Without `tables`, m is d-k: the first k+1 attributes of a network of degree k share a table.
    """
    if not 0 <= degree < attributes:
        raise LocalError(f"a degree is in 0..{attributes - 1}, not {degree}")
    return Fraction(rows) * epsilon / ((tables or attributes - degree) << (degree + 2))


def choose_degree(
    *, rows: int, attributes: int, epsilon: Fraction, theta: Fraction, tables: int | None = None
) -> int:
    """Return the largest degree whose tables are theta-useful; 0 if none is.

    Usefulness never rises with the degree, so the scan stops at the first failure.
    """

    def useful(degree: int) -> bool:
        ratio = usefulness(
            rows=rows, attributes=attributes, degree=degree, epsilon=epsilon, tables=tables
        )
        return ratio >= theta

    degree = 0
    while degree + 1 < attributes and useful(degree + 1):
        degree += 1
    return degree


def affordable_degree(*, attributes: int, degree: int, max_cells: int) -> int:
    """Return the largest degree, up to `degree`, whose candidates have at most `max_cells` cells.

    Learning scores C(d, k+1) tables of 2^(k+1) cells.
    """
    while degree > 1 and comb(attributes, degree + 1) << (degree + 1) > max_cells:
        degree -= 1
    return degree


def cell_limit(*, rows: int, attributes: int, epsilon: Fraction, theta: Fraction) -> int:
    """Return the most cells of a theta-useful table: n eps2 / (2 d theta) [Zhang17, Alg. 4].

    Rounded down: cells are whole, and floor(floor(x) / q) = floor(x / q) keeps the recursion over
    parent sets exact.
    """
    return int(rows * epsilon / (2 * attributes * theta))


class TooManyParentSetsError(LocalError):
    """The limit on the number of parent sets was passed; the caller shrinks the tables."""


def maximal_parent_sets(
    domain: Domain,
    attributes: Sequence[int],
    cells: int,
    *,
    max_parents: int | None = None,
    max_sets: int | None = None,
) -> list[ParentSet]:
    """Return all maximal parent sets among `attributes` with at most `cells` joint values.

    Without hierarchies (height 1) this is Algorithm 5, with them Algorithm 6. Sets of `max_parents`
    count as maximal. With `cells` = 0 not even the empty set fits, and there is no parent set. More
    than `max_sets` are a TooManyParentSetsError.
    """
    order = sorted(attributes)
    memo: dict[tuple[int, int, int], list[ParentSet]] = {}

    def search(count: int, room: int, slots: int) -> list[ParentSet]:
        """Return the maximal sets among the first `count` attributes, in canonical order."""
        if room < 1:
            return []
        if count == 0 or slots == 0:
            return [()]
        slots = min(slots, count)
        key = (count, room, slots)
        if key in memo:
            return memo[key]
        parent_sets: list[ParentSet] = []
        extended: set[ParentSet] = set()
        last = order[count - 1]
        for level, size in enumerate(domain.level_sizes[last]):  # finest first: a finer level wins
            for rest in search(count - 1, room // size, slots - 1):
                if rest not in extended:
                    extended.add(rest)
                    parent_sets.append((*rest, View(last, level)))
        parent_sets.extend(r for r in search(count - 1, room, slots) if r not in extended)
        if max_sets is not None and len(parent_sets) > max_sets:
            raise TooManyParentSetsError(f"more than {max_sets:,} parent sets fit {cells:,} cells")
        memo[key] = parent_sets
        return parent_sets

    return search(len(order), cells, len(order) if max_parents is None else max_parents)


def candidates(
    domain: Domain, placed: Sequence[int], cells: int, constraints: Constraints
) -> list[Pair]:
    """Return Omega: every possible child with each of its maximal parent sets.

    An attribute so large that not even its own histogram is useful comes without parents.
    """
    memo: dict[tuple[tuple[int, ...], int], list[ParentSet]] = {}
    omega: list[Pair] = []
    for child in sorted(set(range(domain.width)) - set(placed)):
        pool = constraints.pool(child, placed)
        if pool is None:
            continue
        key = (tuple(pool), cells // domain.sizes[child])
        if key not in memo:
            memo[key] = maximal_parent_sets(
                domain, pool, key[1], max_parents=constraints.max_parents
            )
        least = least_parents(domain, child, constraints)
        omega += [Pair(child, parents) for parents in _fitting(memo[key], least)]
    return omega


def affordable_cells(domain: Domain, cells: int, constraints: Constraints, max_sets: int) -> int:
    """Return `cells`, halved until no attribute has more than `max_sets` maximal parent sets.

    Without this rule the candidates of wide tables with fine hierarchies grow exponentially.
    """
    while cells > 1:
        try:
            for size in sorted(set(domain.sizes)):
                maximal_parent_sets(
                    domain,
                    range(domain.width),
                    cells // size,
                    max_parents=constraints.max_parents,
                    max_sets=max_sets,
                )
        except TooManyParentSetsError:
            cells //= 2
        else:
            return cells
    return cells


def has_choice(domain: Domain, cells: int, constraints: Constraints) -> bool:
    """Return whether any attribute, given all others, could have more than its required parents."""
    everything = range(domain.width)
    return any(
        pair.parents != least_parents(domain, child, constraints)
        for child in everything
        for pair in candidates(domain, [a for a in everything if a != child], cells, constraints)
    )


def least_parents(domain: Domain, child: int, constraints: Constraints) -> ParentSet:
    """Return the required parents of an attribute and no others, at their coarsest."""
    required = constraints.required_parents(child)
    return tuple(View(parent, domain.height(parent) - 1) for parent in required)


def _fitting(sets: list[ParentSet], least: ParentSet) -> list[ParentSet]:
    """Return the sets that hold every required parent; if none does, the required parents alone.

    A set that is maximal among those with the required parents is maximal among all, so nothing is
    missed. A required parent outranks usefulness: the user asked for it.
    """
    attributes = {view.attribute for view in least}
    return [s for s in sets if attributes <= {view.attribute for view in s}] or [least]
