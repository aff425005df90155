"""`parley describe`: what a release is, and which of its relations may be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from common.analysis.answers import Answer
from common.analysis.conclusions import Conclusions, conclude, pair_groups
from common.analysis.diagnostics import Diagnostics, PairFacts
from common.analysis.estimates import CONFIDENCE
from common.release.folder import verdict_lines
from common.release.registry_entry import registry_entry
from common.wording import many
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.estimate import answer_lines
from parley.cli.options import Release, not_private, promise_words
from parley.cli.result import Result, command
from parley.reader.fitted import Loaded, load

app = new_app()
_MOST_ESTIMATES = 3  # of an analysis


def _lines(
    release: Loaded,
    answers: Sequence[Answer],
    conclusions: Conclusions | None,
    *,
    pairs: bool,
) -> Iterator[str]:
    row = release.schema.row
    rows = many(release.released.rows, f"synthetic {row}") if release.has_rows else "answers"
    yield (
        f"{rows}, {many(len(release.schema.names), 'attribute')}, learnt from "
        f"{many(release.rows, f'real {row}')} with {promise_words(release.privacy)}"
    )
    yield from () if release.events_told is None else release.events_told.lines()
    for line in verdict_lines(release.privacy):
        yield f"criterion: {line}"
    yield from answer_lines(answers, CONFIDENCE, _MOST_ESTIMATES)
    yield from conclusions.lines() if conclusions else ()
    yield from _pairs(release.diagnostics, conclusions) if pairs else ()


def _pairs(diagnostics: Diagnostics, conclusions: Conclusions | None) -> Iterator[str]:
    for group in pair_groups(diagnostics, conclusions):
        yield f"{group.name}: {many(len(group.pairs), 'pair')}"
        yield from _by_reason(group.pairs.values())
    yield (
        f"triples counted together: {diagnostics.triples:,} of "
        f"{diagnostics.all_triples:,}; the others follow from the model"
    )
    for sums in diagnostics.measured:
        if sums.spread is not None:
            names = ", ".join(diagnostics.names[a] for a in sums.attributes)
            doubt = "" if sums.follows() else "; the rows do not follow it"
            yield f"residual of {sums.name} ({names}): {sums.spread:.2f} times its noise{doubt}"


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
        return Result(registry_entry(release))
    with console.progress("describing") as tell:
        tell(0.0, "reading the release")
        loaded = load(release)
        tell(0.3, "comparing the rows with the released sums")
        diagnostics = loaded.diagnostics
        known = loaded.has_rows and diagnostics.direct
        conclusions = conclude(loaded, diagnostics) if known else None
    answers, events = loaded.answers(), loaded.events_told
    form = {
        "rows": loaded.rows,
        "synthetic_rows": loaded.released.rows if loaded.has_rows else 0,
        "attributes": loaded.schema.names,
        "epsilon": loaded.privacy["epsilon_delivered"],
        "private": loaded.privacy["private"],
        "criteria": loaded.privacy["criteria"],
        "conclusions": conclusions,
        **({"answers": answers} if answers else {}),
        **({} if events is None else {"events": asdict(events)}),
        **diagnostics.as_json(),
    }
    every_pair = pairs or (conclusions is None and loaded.has_rows)
    lines = _lines(loaded, answers, conclusions, pairs=every_pair)
    return Result(form, lines, warnings=not_private(loaded.privacy))
