"""`parley describe`: what a release is, and which of its relations may be used."""

from __future__ import annotations

from typing import Annotated

import typer

from common.analysis.conclusions import conclude
from common.analysis.diagnostics import Diagnostics, Verdict
from common.release.folder import verdict_lines
from common.release.registry_entry import registry_entry
from common.wording import many
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson, Release, promise_words, warn_unless_private
from parley.reader.fitted import load

app = new_app()


@app.command()
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
    json: AsJson = False,
) -> None:
    """Say what a release holds, and what may be concluded from it: columns, pairs, how exactly.

    With --pairs every pair is listed as safe to use, to be used with care, or not in this release,
    and every released sum is compared with the synthetic rows, in units of its noise. Nothing but
    the release is read.
    """
    if registry:
        console.result_json(registry_entry(release))
        return
    with console.progress("describing") as tell:
        tell(0.0, "reading the release")
        loaded = load(release)
        tell(0.3, "comparing the rows with the released sums")
        found = loaded.diagnostics
        concluded = conclude(loaded, found) if found.direct else None
    privacy = loaded.privacy
    if json:
        console.result_json(
            {
                "rows": loaded.rows,
                "synthetic_rows": loaded.released.rows,
                "attributes": list(loaded.schema.names),
                "epsilon": privacy["epsilon_delivered"],
                "private": privacy["private"],
                "criteria": privacy["criteria"],
                "conclusions": None if concluded is None else concluded.as_json(),
                **found.as_json(),
            }
        )
        return
    console.result(
        f"{many(loaded.released.rows, 'synthetic row')}, {many(len(found.names), 'attribute')}, "
        f"learnt from {many(loaded.rows, 'real row')} with {promise_words(privacy)}"
    )
    for line in verdict_lines(privacy):
        console.result(f"criterion: {line}")
    for line in concluded.lines() if concluded else ():
        console.result(line)
    if pairs or concluded is None:
        _print(found)
    warn_unless_private(privacy)


def _print(found: Diagnostics) -> None:
    for verdict in Verdict:
        pairs = found.listed(verdict)
        console.result(f"{verdict}: {many(len(pairs), 'pair')}")
        for facts in pairs:
            console.result(f"  {' and '.join(facts.names)}: {facts.reason}")
    console.result(
        f"triples counted together: {found.triples:,} of {found.all_triples:,}; the others follow "
        "from the model"
    )
    for each in found.measured:
        if each.spread is not None:
            names = ", ".join(found.names[a] for a in each.attributes)
            doubt = "" if each.follows() else "; the rows do not follow it"
            console.result(
                f"residual of {each.name} ({names}): {each.spread:.2f} times its noise{doubt}"
            )
