"""The network: for every attribute, in sampling order, the parents its distribution depends on.

The list order is the order of sampling, so a network whose parents all come earlier is acyclic by
construction; `Network` refuses any other. Nothing here touches rows: a network that was learnt
privately, or drawn by hand, may be published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.bayes.domain import Domain, View
from common.errors import InputError


@dataclass(frozen=True, slots=True)
class Pair:
    """One attribute and its parents [Zhang17: the AP pair]; parents are sorted by attribute."""

    child: int
    parents: tuple[View, ...] = ()

    @property
    def family(self) -> tuple[View, ...]:
        """The child at full detail, then its parents: the axes of the pair's table."""
        return (View(self.child), *self.parents)


@dataclass(frozen=True, slots=True)
class Network:
    """Attribute-parent pairs in sampling order, one per attribute 0..d-1."""

    pairs: tuple[Pair, ...]

    def __post_init__(self) -> None:
        """Refuse cycles, missing attributes and repeated parents."""
        seen: set[int] = set()
        for pair in self.pairs:
            parents = [view.attribute for view in pair.parents]
            if pair.child in seen:
                raise InputError(f"attribute {pair.child} stands twice in the network")
            if sorted(set(parents)) != parents:
                raise InputError(
                    f"attribute {pair.child}: parents must be different and in ascending order"
                )
            if late := [parent for parent in parents if parent not in seen]:
                raise InputError(
                    f"attribute {pair.child} has parents {late} that do not come before it; "
                    "list parents first, and check for a cycle"
                )
            seen.add(pair.child)
        if seen != set(range(len(self.pairs))):
            raise InputError("the network must contain every attribute exactly once")

    @classmethod
    def from_parents(cls, parents: Mapping[int, Sequence[View | int]]) -> Network:
        """A network from parents per attribute, in any order; sorts topologically."""
        waiting = {
            child: tuple(sorted(View(p) if isinstance(p, int) else p for p in chosen))
            for child, chosen in parents.items()
        }
        pairs: list[Pair] = []
        done: set[int] = set()
        while waiting:
            ready = [c for c, ps in waiting.items() if all(p.attribute in done for p in ps)]
            if not ready:
                raise InputError(f"the edges among attributes {sorted(waiting)} form a cycle")
            for child in sorted(ready):
                pairs.append(Pair(child, waiting.pop(child)))
                done.add(child)
        return cls(tuple(pairs))

    @property
    def edges(self) -> list[tuple[int, int]]:
        """(parent, child) for every edge."""
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
        """A list of objects `{"child": 3, "parents": [[0, 0], [2, 1]]}` (attribute, level)."""
        return [
            {"child": pair.child, "parents": [list(view) for view in pair.parents]}
            for pair in self.pairs
        ]

    @classmethod
    def from_json(cls, document: Sequence[Mapping[str, Any]]) -> Network:
        """The inverse of `to_json`; what is not a network is refused."""
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
