"""`parley describe`: what a release is, and which of its relations may be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer

from common.analysis.answers import Answer
from common.analysis.conclusions import Conclusions, conclude
from common.analysis.diagnostics import Diagnostics, PairFacts
from common.analysis.estimates import CONFIDENCE
from common.analysis.pair_groups import pair_groups
from common.fitted.linked import EventsTold
from common.release.folder import verdict_lines
from common.release.registry_entry import registry_entry
from common.wording import many
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.estimate import answer_lines
from parley.cli.options import Release, not_private, promise_words
from parley.cli.result import FOR_PEOPLE, JsonOnly, Result, command
from parley.reader.fitted import load

app = new_app()
_MOST_ESTIMATES = 3  # of an analysis


@dataclass(frozen=True, kw_only=True)
class Description(Result):
    """What a release holds."""

    rows: int
    synthetic_rows: int
    attributes: tuple[str, ...]
    epsilon: float
    private: bool
    criteria: object
    privacy: Mapping[str, Any] = field(metadata=FOR_PEOPLE)
    diagnostics: Diagnostics = field(metadata=FOR_PEOPLE)
    conclusions: Conclusions | None = field(metadata=FOR_PEOPLE)
    answers: tuple[Answer, ...] = field(metadata=FOR_PEOPLE)
    every_pair: bool = field(metadata=FOR_PEOPLE)
    events: EventsTold | None = field(metadata=FOR_PEOPLE)

    def as_json(self) -> object:
        concluded = None if self.conclusions is None else self.conclusions.as_json()
        answered = (
            {"answers": [answer.as_json() for answer in self.answers]} if self.answers else {}
        )
        events = {} if self.events is None else {"events": asdict(self.events)}
        sections = {"conclusions": concluded} | answered | events
        return super().as_json() | sections | self.diagnostics.as_json()

    def lines(self) -> Iterator[str]:
        row = "row" if self.events is None else "person"
        rows = many(self.synthetic_rows, f"synthetic {row}") if self.synthetic_rows else "answers"
        yield (
            f"{rows}, "
            f"{many(len(self.attributes), 'attribute')}, learnt from "
            f"{many(self.rows, f'real {row}')} with {promise_words(self.privacy)}"
        )
        yield from () if self.events is None else self.events.lines()
        for line in verdict_lines(self.privacy):
            yield f"criterion: {line}"
        yield from answer_lines(self.answers, CONFIDENCE, _MOST_ESTIMATES)
        yield from self.conclusions.lines() if self.conclusions else ()
        yield from self._pairs() if self.every_pair else ()

    def _pairs(self) -> Iterator[str]:
        for group in pair_groups(self.diagnostics, self.conclusions):
            yield f"{group.name}: {many(len(group.pairs), 'pair')}"
            yield from _by_reason(group.pairs.values())
        yield (
            f"triples counted together: {self.diagnostics.triples:,} of "
            f"{self.diagnostics.all_triples:,}; the others follow from the model"
        )
        for sums in self.diagnostics.measured:
            if sums.spread is not None:
                names = ", ".join(self.diagnostics.names[a] for a in sums.attributes)
                doubt = "" if sums.follows() else "; the rows do not follow it"
                yield f"residual of {sums.name} ({names}): {sums.spread:.2f} times its noise{doubt}"

    def warnings(self) -> list[str]:
        return not_private(self.privacy)


def _by_reason(pairs: Iterable[PairFacts]) -> Iterator[str]:
    """Yield a line for every reason, with the pairs that it is true of."""
    by_reason: dict[str, list[str]] = {}
    for facts in pairs:
        by_reason.setdefault(facts.reason, []).append(" and ".join(facts.names))
    for reason, named in by_reason.items():
        yield f"  {reason}: {'; '.join(named)}"


@command(app)
def describe(
    release: Release,
    *,
    registry: Annotated[
        bool,
        typer.Option("--registry", help="Print an entry for registries of deployments, as JSON."),
    ] = False,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="List every pair of columns, and every released sum."),
    ] = False,
) -> Result:
    """Say what a release holds, and what may be concluded from it: columns, pairs, how exactly.

    With --pairs every pair is listed as told well, told roughly or not measured, with the reason,
    and every released sum is compared with the synthetic rows, in units of its noise. Nothing but
    the release is read.
    """
    if registry:
        return JsonOnly(registry_entry(release))
    with console.progress("describing") as tell:
        tell(0.0, "reading the release")
        loaded = load(release)
        tell(0.3, "comparing the rows with the released sums")
        diagnostics = loaded.diagnostics
        known = loaded.has_rows and diagnostics.direct
        conclusions = conclude(loaded, diagnostics) if known else None
    privacy: Mapping[str, Any] = loaded.privacy
    return Description(
        rows=loaded.rows,
        synthetic_rows=loaded.released.rows if loaded.has_rows else 0,
        attributes=loaded.schema.names,
        epsilon=privacy["epsilon_delivered"],
        private=privacy["private"],
        criteria=privacy["criteria"],
        privacy=privacy,
        diagnostics=diagnostics,
        conclusions=conclusions,
        answers=loaded.answers(),
        every_pair=pairs or (conclusions is None and loaded.has_rows),
        events=loaded.events_told,
    )
