"""What the user decides about the network before any row is looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from common.bayes.network import Network
from common.errors import InputError

Edge = tuple[int, int]  # (parent, child)


@dataclass(frozen=True, slots=True)
class Constraints:
    """Edges that must or must not be there, and a cap on the number of parents.

    They come from knowledge of the subject, never from the rows, and so cost no budget.
    """

    required: frozenset[Edge] = frozenset()
    forbidden: frozenset[Edge] = frozenset()
    max_parents: int | None = None

    def check(self, attributes: int) -> None:
        """Refuse wishes that contradict each other or name attributes that are not there."""
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
        """The parents an attribute must have, ascending."""
        return sorted(parent for parent, c in self.required if c == child)

    def pool(self, child: int, available: Collection[int]) -> list[int] | None:
        """The possible parents of a child, ascending; None while a required one is missing."""
        if any(parent not in available for parent in self.required_parents(child)):
            return None
        return sorted(parent for parent in available if (parent, child) not in self.forbidden)
