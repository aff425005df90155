"""`parley demo`: a whole consortium on this machine, on a simulated population."""

from __future__ import annotations

import os
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from common.analysis.evaluation import evaluate
from common.privacy.randomness import SeededRandomSource
from common.release import folder as release
from common.report.evaluation_page import evaluation_page
from common.schema import Schema
from common.study.document import DEFAULT_METHOD
from common.tables import read_table
from common.wording import many
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.simulate import require_countersigned, run_in_processes
from parley.cli.options import AsJson, StudyMethod, tell_of_release, warned_of_large_epsilon
from parley.simulation.partition import at_random
from parley.simulation.population import demo_schema_toml, make_population

app = new_app()
_SEED = 2024  # of the simulated people, not of the noise
_HOSPITALS = ("harbour hospital", "hill hospital", "market hospital")
_OWNERS = ("north", "east", "south")  # as the documentation calls them
_TIMEOUT_S = 900.0
_LOAD_PRIORITY = 10
EVALUATION = "{}-evaluation.html"


@app.command()
def demo(
    *,
    out: Annotated[
        Path, typer.Option(help="The folder; an earlier release there is replaced.")
    ] = Path("demo-release"),
    rows: Annotated[int, typer.Option(min=30, help="How many people to simulate.")] = 30_000,
    epsilon: Annotated[
        str, typer.Option(help="The privacy budget.", callback=warned_of_large_epsilon)
    ] = "1",
    method: StudyMethod = DEFAULT_METHOD,
    aggregation: Annotated[str, typer.Option(help="paillier or masked.")] = "paillier",
    tables: Annotated[
        Path | None,
        typer.Option(help="Only write the tables of three owners, and their schema, here."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Three hospitals publish ONE synthetic table of their simulated patients.

    A curator and three party nodes run as processes of their own on this machine, with real
    certificates; all four sign the release. The comparison with the population is written beside it
    only because no real person is in it.
    """
    if tables is not None:
        _write_tables(tables, rows, as_json=json)
        return
    release.check_target(out, overwrite=True)
    started = time.monotonic()
    schema = Schema.from_toml(demo_schema_toml())
    people = make_population(rows, seed=_SEED)
    terms = {
        "epsilon": epsilon, "name": "demonstration", "method": method, "aggregation": aggregation,
    }  # fmt: skip
    console.note(f"{rows:,} simulated patients of {len(_HOSPITALS)} hospitals")
    with release.new_folder(out, overwrite=True) as folder:
        threading.Thread(target=_load_ahead, daemon=True).start()
        parts = at_random(people, len(_HOSPITALS), SeededRandomSource(f"{_SEED}/hospitals"))
        owners = dict(zip(_HOSPITALS, parts.values(), strict=True))
        _, refusals = run_in_processes(owners, schema, terms, folder, timeout_s=_TIMEOUT_S)
        synthetic = read_table(folder / release.table_name("csv"), schema)
        with console.progress("comparing with the population"):
            found = evaluate(people, synthetic, schema)
    # Beside the release, not in it: a release is what the curator and the owners signed.
    comparison = out.parent / EVALUATION.format(out.name)
    release.write_file(comparison, evaluation_page(found))
    privacy = release.read_json(out, release.STATEMENT)
    tell_of_release(out, privacy)
    if json:
        told = {"out": str(out), "refusals": dict(refusals), "privacy": privacy}
        console.result_json(told | found.as_json())
        require_countersigned(out, refusals)
        return
    console.result(
        f"{len(_HOSPITALS)} owners, {rows:,} simulated patients, epsilon "
        f"{privacy['epsilon_delivered']}, {time.monotonic() - started:.0f} s"
    )
    for one in found.distances:
        console.result(f"average distance of {one.order}-way marginals: {one.average:.4f}")
    console.result(f"synthetic table: {out / release.table_name('csv')}")
    console.result(f"report: {out / release.REPORT}")
    console.result(f"comparison with the population: {comparison}")
    require_countersigned(out, refusals)


def _write_tables(target: Path, rows: int, *, as_json: bool) -> None:
    """Write tables to try the other commands on."""
    people = make_population(rows, seed=_SEED)
    parts = at_random(people, len(_OWNERS), SeededRandomSource(f"{_SEED}/owners")).values()
    named = {"people": people, **dict(zip(_OWNERS, parts, strict=True))}
    with release.new_folder(target, overwrite=False) as folder:
        (folder / release.SCHEMA).write_text(demo_schema_toml(), encoding="utf-8")
        for name, table in named.items():
            table.to_csv(folder / f"{name}.csv", index=False)
    if as_json:
        console.result_json({"out": str(target), "rows": {n: len(t) for n, t in named.items()}})
        return
    console.result(f"schema of the simulated people: {target / release.SCHEMA}")
    for name, table in named.items():
        console.result(f"{many(len(table), 'row')}: {target / name}.csv")


def _load_ahead() -> None:
    """Load what takes long while the processes of the study work, and let those go first."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOAD_PRIORITY)
    for module in ("common.release.derive", "sklearn.svm"):  # to verify, and to compare
        import_module(module)
