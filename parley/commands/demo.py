"""`parley demo`: the main job on a made-up population."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from common.schema import Schema
from parley import console, release
from parley.commands import new_app
from parley.commands.options import AsJson
from parley.evaluation import evaluate
from parley.population import demo_schema_toml, make_population
from parley.privbayes import PrivBayes
from parley.report.evaluation_page import evaluation_page
from parley.synthesis import write_release

app = new_app()
_SEED = 2024  # of the made-up people, not of the noise
EVALUATION = "evaluation.html"


@app.command()
def demo(
    *,
    out: Annotated[Path, typer.Option(help="The folder; an earlier release there is replaced.")],
    rows: Annotated[int, typer.Option(help="How many people to make up.")] = 30_000,
    epsilon: Annotated[str, typer.Option(help="The privacy budget.")] = "1",
    json: AsJson = False,
) -> None:
    """Make up a population, publish a synthetic table of it, and compare the two.

    The comparison is in the folder only because nobody real is in the population.
    """
    schema = Schema.from_toml(demo_schema_toml())
    people = make_population(rows, _SEED)
    with release.new_folder(out, overwrite=True) as folder:
        with console.progress("learning") as tell:
            fitted = PrivBayes(epsilon=epsilon).fit(people, schema, tell=tell)
        with console.progress("writing") as tell:
            written = write_release(folder, fitted, tell=tell)
        with console.progress("comparing with the population"):
            found = evaluate(people, written.synthetic, schema)
        (folder / EVALUATION).write_text(evaluation_page(found), encoding="utf-8")
    if json:
        console.result_json({"out": str(out), "privacy": fitted.privacy} | found.as_json())
        return
    console.result(f"{rows:,} made-up people, epsilon {fitted.privacy['epsilon_delivered']}")
    for one in found.distances:
        console.result(f"average distance of {one.order}-way marginals: {one.average:.4f}")
    console.result(f"report: {out / release.REPORT}")
    console.result(f"comparison with the population: {out / EVALUATION}")
