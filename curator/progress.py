"""How far a study is, in values that may be public: its steps, their costs, their tables.

A step follows from the study and from noisy results that were published, so which attributes it
counts together is public, too. No result is here, noisy or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from common.schema.codes import bit_count
from common.study.document import Study
from common.study.messages import ChoiceSubmitted, ToCurator
from common.study.steps import ChoiceStep, Step

MOST_LINKS = 400  # of a picture that still says something

Links = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A step that was opened."""

    number: int  # steps are counted from 0
    name: str  # unique in the study
    phase: str  # what it belongs to
    opened_at: str
    # Exact, of every party whose rows it is about, in the currency of the promise.
    costs: Mapping[str, Fraction]
    # Pairs of attributes that it counts together; empty if they are (nearly) all pairs.
    links: Links


def step_record(study: Study, number: int, step: Step, *, at: str) -> StepRecord:
    """What may be shown of a step that is opened now."""
    return StepRecord(
        number=number,
        name=step.name,
        phase=step.phase,
        opened_at=at,
        costs=step.costs,
        links=_links(study, step.links),
    )


def chosen_links(study: Study, step: Step | None, message: ToCurator) -> Links:
    """The pairs that a party's published choice puts together."""
    match step, message:
        case ChoiceStep(choice=choice), ChoiceSubmitted():
            return _links(study, choice.links(message.payload))
    return ()


def _links(study: Study, sets: Iterable[Sequence[int]]) -> Links:
    """Every pair of attributes in one of the sets of variables."""
    sizes = study.schema.sizes
    owner = list(range(len(sizes)))
    if study.encoding == "binary":
        owner = [a for a, size in enumerate(sizes) for _ in range(bit_count(size))]
    pairs: set[tuple[int, int]] = set()
    for variables in sets:
        attributes = sorted({owner[variable] for variable in variables})
        pairs.update(combinations(attributes, 2))
        if len(pairs) > MOST_LINKS:
            return ()
    every = len(sizes) * (len(sizes) - 1) // 2
    # A picture of three quarters of all pairs shows no structure.
    return () if every > 3 and 4 * len(pairs) > 3 * every else tuple(sorted(pairs))
