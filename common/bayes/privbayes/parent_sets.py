"""Maximal parent sets: all ways to fill a table of limited size that leave no room for more.

A parent set is *maximal* when it fits the limit and no set that fits contains it with one more
attribute or with one attribute at a finer level [Zhang17, Alg. 5 and 6]. Scores never fall when
parents are added or refined, so nothing is lost by looking at maximal sets only.
"""

from __future__ import annotations

from collections.abc import Sequence

from common.bayes.domain import Domain, View
from common.errors import LocalError

ParentSet = tuple[View, ...]


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
    """All maximal parent sets among `attributes` with at most `cells` joint values.

    Without hierarchies (height 1) this is Algorithm 5, with them Algorithm 6. At least one cell is
    needed: with `cells` = 0 not even the empty set fits and there is no parent set at all.

    Args:
        domain: the public domains and level maps.
        attributes: the possible parents; their order does not matter.
        cells: the size limit, a whole number.
        max_parents: a cap on the number of parents; sets of that many count as maximal.
        max_sets: give up with `TooManyParentSetsError` beyond this many.
    """
    order = sorted(attributes)
    memo: dict[tuple[int, int, int], list[ParentSet]] = {}
    ways = {attribute: _levels(domain, attribute) for attribute in order}

    def search(count: int, room: int, slots: int) -> list[ParentSet]:
        """Maximal sets among the first `count` attributes, in canonical order."""
        if room < 1:
            return []
        if count == 0 or slots == 0:
            return [()]
        slots = min(slots, count)
        key = (count, room, slots)
        if key in memo:
            return memo[key]
        found: list[ParentSet] = []
        extended: set[ParentSet] = set()
        for view, size in ways[order[count - 1]]:  # finest first: a finer level wins
            for rest in search(count - 1, room // size, slots - 1):
                if rest not in extended:
                    extended.add(rest)
                    found.append((*rest, view))
        found.extend(r for r in search(count - 1, room, slots) if r not in extended)
        if max_sets is not None and len(found) > max_sets:
            raise TooManyParentSetsError(f"more than {max_sets:,} parent sets fit {cells:,} cells")
        memo[key] = found
        return found

    return search(len(order), cells, len(order) if max_parents is None else max_parents)


def _levels(domain: Domain, attribute: int) -> list[tuple[View, int]]:
    """The views of an attribute with their sizes, finest first."""
    views = [View(attribute, level) for level in range(domain.height(attribute))]
    return [(view, domain.size(view)) for view in views]
