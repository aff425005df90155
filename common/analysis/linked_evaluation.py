"""How close are synthetic people and events to the real ones? For an owner, who may see them.

Total variation distances of pairs of columns, kind by kind (`KINDS`): a row is a person, an event
with its person's columns, or two consecutive events of a person. Like those of `evaluation`, the
figures are computed without noise: they are for the owner's eyes and not part of a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from common.analysis.distances import Distances, distances_of
from common.analysis.views import events_view
from common.errors import InputError
from common.schema import Codes, Schema
from common.schema.linked import LinkedCodes

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
    """What `parley evaluate` reports of events, besides what it reports of people.

    Attributes:
        name: what the events are called.
        events_real: how many of them count.
        events_synthetic: how many the release has.
        numbers_real: the share of people with no event, one, two and so on.
        numbers_synthetic: the same of the release.
        kinds: the distances; a kind that a table has no rows or too few columns for is left out.
    """

    name: str
    events_real: int
    events_synthetic: int
    numbers_real: NDArray[np.float64]
    numbers_synthetic: NDArray[np.float64]
    kinds: Mapping[str, Distances]

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
