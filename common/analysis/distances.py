"""Total variation distances of marginals: half the L1 distance of two tables' distributions.

Of people and their events, pairs of columns are compared kind by kind (`KINDS`): a row is a person,
an event with its person's columns, or two consecutive events of a person. Like those of
`evaluation`, the figures are computed without noise: they are for the owner's eyes and not part of
a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from common.analysis.views import events_view
from common.errors import InputError
from common.marginals import count
from common.schema import Codes, Schema
from common.schema.linked import LinkedCodes

MEANING = (
    "Distances are total variation: the proportion of rows that would have to change. "
    "0 is perfect, 1 is disjoint."
)
MOST_MARGINALS = 3_000


@dataclass(frozen=True, slots=True)
class Distances:
    """Total variation distances of the marginals of one order."""

    order: int
    average: float
    worst: float
    worst_attributes: tuple[str, ...]
    compared: int
    existing: int

    def words(self, what: str) -> str:
        return (
            f"{what}: average distance {self.average:.4f}, worst {self.worst:.4f} "
            f"({', '.join(self.worst_attributes)}), {self.compared:,} of {self.existing:,} compared"
        )


def marginal_sets(width: int, *, order: int) -> list[tuple[int, ...]]:
    """Return all attribute sets of the order, or an evenly spaced `MOST_MARGINALS` of them."""
    return _spaced(list(combinations(range(width), order)))


def _spaced(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    if len(sets) <= MOST_MARGINALS:
        return list(sets)
    return [sets[i] for i in np.linspace(0, len(sets) - 1, MOST_MARGINALS).astype(int)]


def total_variation(real: Codes, synthetic: Codes, sets: Sequence[Sequence[int]]) -> list[float]:
    """Return half the L1 distance of the two tables' distributions, per attribute set."""
    pairs = zip(count(real, sets), count(synthetic, sets), strict=True)
    return [float(np.abs(a / real.rows - b / synthetic.rows).sum() / 2) for a, b in pairs]


def distances_of(
    real: Codes, synthetic: Codes, names: Sequence[str], sets: Sequence[tuple[int, ...]]
) -> Distances:
    """Compare the marginals of attribute sets of one order, at most `MOST_MARGINALS` of them."""
    compared = _spaced(sets)
    values = total_variation(real, synthetic, compared)
    worst = int(np.argmax(values))
    return Distances(
        order=len(compared[worst]),
        average=float(np.mean(values)),
        worst=values[worst],
        worst_attributes=tuple(names[p] for p in compared[worst]),
        compared=len(compared),
        existing=len(sets),
    )


PEOPLE, NUMBER, BOTH = "people pairs", "number of events", "person x event"
EVENT, NEXT, SAME = "event pairs", "next event", "same column next"
KINDS = {
    PEOPLE: "two columns of a person, of which the number of her events is one",
    NUMBER: "a column of a person and the number of her events",
    BOTH: "a column of a person, or the number of her events, and one of each of her events",
    EVENT: "two columns of an event",
    NEXT: "a column of an event and one of the next event of the same person",
    SAME: "a column of an event and the same column of the next one",
}


@dataclass(frozen=True, slots=True)
class LinkedDistances:
    """What `parley evaluate` reports of events, besides what it reports of people."""

    name: str  # what the events are called
    events_real: int  # how many of them count
    events_synthetic: int
    numbers_real: NDArray[np.float64]  # the share of people with no event, one, two and so on
    numbers_synthetic: NDArray[np.float64]
    kinds: Mapping[str, Distances]  # without kinds that a table has no rows or columns for

    @property
    def left_out(self) -> tuple[str, ...]:
        """The kinds that could not be compared."""
        return tuple(kind for kind in KINDS if kind not in self.kinds)

    def lines(self) -> Iterator[str]:
        """Say how far events are apart, kind by kind."""
        yield (
            f"{self.name}: {self.events_synthetic:,} synthetic against {self.events_real:,} "
            "real ones that count"
        )
        yield from (one.words(kind) for kind, one in self.kinds.items())
        if self.left_out:
            yield f"nothing to compare: {', '.join(self.left_out)}"

    def as_json(self) -> dict[str, object]:
        """Return plain values."""
        kinds = {
            kind.replace(" ", "_"): {
                key: value for key, value in asdict(one).items() if key != "order"
            }
            for kind, one in self.kinds.items()
        }
        return {
            "events": self.name,
            "events_real": self.events_real,
            "events_synthetic": self.events_synthetic,
            "distances": kinds,
        }


def evaluate_linked(real: LinkedCodes, synthetic: LinkedCodes, schema: Schema) -> LinkedDistances:
    """Compare people with their events, of the same schema."""
    if schema.events is None:
        raise InputError("schema: it has no [events]. Declare them, or compare single tables")
    return LinkedDistances(
        name=schema.events.name,
        events_real=real.events.rows,
        events_synthetic=synthetic.events.rows,
        numbers_real=_numbers(real),
        numbers_synthetic=_numbers(synthetic),
        kinds=linked_distances(real, synthetic, schema),
    )


def linked_distances(
    real: LinkedCodes, synthetic: LinkedCodes, schema: Schema
) -> dict[str, Distances]:
    """Return the distances of each kind of `KINDS` that both have rows of."""
    number, first, width = real.width, real.width + 1, real.events.width
    names = events_view(schema).schema.names
    of_event = names[first:]
    later = (*of_event, *(f"next {name}" for name in of_event))
    events = range(first, first + width)
    people = (real.with_number, synthetic.with_number, names)
    joined = (real.by_event, synthetic.by_event, names)
    follow = (real.consecutive[0], synthetic.consecutive[0], later)
    compared: dict[str, tuple[tuple[Codes, Codes, tuple[str, ...]], list[tuple[int, ...]]]] = {
        PEOPLE: (people, list(combinations(range(first), 2))),
        NUMBER: (people, [(a, number) for a in range(number)]),
        BOTH: (joined, list(product(range(first), events))),
        EVENT: (joined, list(combinations(events, 2))),
        NEXT: (follow, list(product(range(width), range(width, 2 * width)))),
        SAME: (follow, [(a, width + a) for a in range(width)]),
    }
    return {
        kind: distances_of(one, other, called, sets)
        for kind, ((one, other, called), sets) in compared.items()
        if sets and one.rows and other.rows
    }


def _numbers(linked: LinkedCodes) -> NDArray[np.float64]:
    return np.bincount(linked.numbers, minlength=linked.most + 1) / max(1, linked.rows)
