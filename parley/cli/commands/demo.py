"""`parley demo`: a whole consortium on this machine, on a simulated population."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from common.analysis.estimates import CONFIDENCE
from common.analysis.evaluation import evaluate
from common.errors import InputError
from common.methods.registry import methods
from common.privacy.randomness import SeededRandomSource
from common.release import folder as release
from common.report.evaluation_page import evaluation_page
from common.schema import Schema
from common.study.document import DEFAULT_METHOD
from common.tables import read_table
from common.wording import many
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.estimate import answer_lines
from parley.cli.commands.simulate import require_countersigned, run_in_processes
from parley.cli.options import tell_of_release
from parley.cli.result import Result, command
from parley.cli.study_options import option_of
from parley.reader.fitted import load
from parley.simulation.partition import at_random
from parley.simulation.population import (
    PERSON,
    demo_schema_toml,
    linked_schema,
    make_linked_population,
    make_population,
)

app = new_app()
_SEED = 2024  # of the simulated people, not of the noise
_HOSPITALS = ("harbour hospital", "hill hospital", "market hospital")
_OWNERS = ("north", "east", "south")  # as the documentation calls them
_TIMEOUT_S = 900.0
_LOAD_PRIORITY = 10
_ANALYSIS = 'share = "smoker = true", by = "sex"'  # that the study is for, answered
EVALUATION = "{}-evaluation.html"


@command(app)
def demo(
    *,
    out: Annotated[
        Path, typer.Option(help="The folder; an earlier release there is replaced.")
    ] = Path("demo-release"),
    rows: Annotated[int, typer.Option(min=30, help="How many people to simulate.")] = 30_000,
    epsilon: Annotated[str, option_of("epsilon")] = "1",
    method: Annotated[str, option_of("method")] = DEFAULT_METHOD,
    aggregation: Annotated[str, option_of("aggregation")] = "paillier",
    tables: Annotated[
        Path | None,
        typer.Option(help="Only write the tables of three owners, and their schema, here."),
    ] = None,
    linked: Annotated[
        bool, typer.Option("--linked", help="With --tables: patients, and their visits.")
    ] = False,
) -> Result:
    """Three hospitals publish ONE synthetic table of their simulated patients.

    A curator and three party nodes run as processes of their own on this machine, with real
    certificates; all four sign the release. The comparison with the population is written beside it
    only because no real person is in it.
    """
    if str(tables) == "--linked":  # typed without a folder
        tables, linked = Path("demo-tables"), True
    if linked and tables is None:
        raise InputError(
            "--linked: the demonstration is of single tables. Add --tables FOLDER, and follow "
            "docs/linked-tables.md"
        )
    if tables is not None:
        if linked:
            return _write_tables(tables, linked_schema().to_toml(), _simulated_pairs(rows))
        return _write_tables(tables, demo_schema_toml(), _simulated_tables(rows))
    release.check_target(out, overwrite=True)
    started = time.monotonic()
    schema = Schema.from_toml(demo_schema_toml())
    people = make_population(rows, seed=_SEED)
    terms = {
        "epsilon": epsilon, "name": "demonstration", "method": method, "aggregation": aggregation,
        **_asked(method),
    }  # fmt: skip
    console.note(f"{rows:,} simulated patients of {len(_HOSPITALS)} hospitals")
    with release.new_folder(out, overwrite=True) as folder:
        threading.Thread(target=_load_ahead, daemon=True).start()
        parts = at_random(people, len(_HOSPITALS), SeededRandomSource(f"{_SEED}/hospitals"))
        owners = dict(zip(_HOSPITALS, parts.values(), strict=True))
        _, refusals = run_in_processes(owners, schema, terms, folder, timeout_s=_TIMEOUT_S)
        synthetic = read_table(folder / release.table_name("csv"), schema)
        with console.progress("comparing with the population"):
            compared = evaluate(people, synthetic, schema)
    # Beside the release, not in it: a release is what the curator and the owners signed.
    release.write_file(comparison_of(out), evaluation_page(compared))
    privacy = release.read_json(out, release.STATEMENT)
    tell_of_release(out, privacy)
    answers = load(out).answers()
    cost, seconds = f"epsilon {privacy['epsilon_delivered']}", time.monotonic() - started
    lines = [
        f"{len(_HOSPITALS)} owners, {rows:,} simulated patients, {cost}, {seconds:.0f} s",
        *(f"average distance of {d.order}-way marginals: {d.average:.4f}"
          for d in compared.distances),
        *answer_lines(answers, CONFIDENCE),
        f"synthetic table: {out / release.table_name('csv')}",
        f"report: {out / release.REPORT}",
        f"comparison with the population: {comparison_of(out)}",
    ]  # fmt: skip
    form = {"out": out, "refusals": refusals, "privacy": privacy} | compared.as_json()
    return Result(form, lines, require=partial(require_countersigned, out, refusals))


def _asked(method: str) -> dict[str, object]:
    """Return one analysis for a method that takes some, and most of the budget for the others."""
    known = methods().get(method)
    if known is not None and not known.publishes_rows:
        raise InputError(
            f"--method {method}: it makes no synthetic rows to compare with the population. Try it "
            "with `parley simulate --analysis ...`"
        )
    return {"analyses": [_ANALYSIS], "others": "3/4"} if known and known.analyses else {}


def comparison_of(out: Path) -> Path:
    """Return the page beside a release that compares it with the population."""
    return out.parent / EVALUATION.format(out.name)


def _simulated_tables(rows: int) -> dict[str, pd.DataFrame]:
    """Simulate people, and deal them out to three owners."""
    people = make_population(rows, seed=_SEED)
    return {"people": people, **dict(zip(_OWNERS, _owners_parts(people), strict=True))}


def _simulated_pairs(rows: int) -> dict[str, pd.DataFrame]:
    """Simulate the patients of three owners, and the visits of each."""
    people, visits = make_linked_population(rows, seed=_SEED)
    named = {}
    for owner, part in zip(_OWNERS, _owners_parts(people), strict=True):
        named[f"{owner}-patients"] = part
        named[f"{owner}-visits"] = visits[visits[PERSON].isin(part[PERSON])]
    return named


def _owners_parts(people: pd.DataFrame) -> Iterable[pd.DataFrame]:
    return at_random(people, len(_OWNERS), SeededRandomSource(f"{_SEED}/owners")).values()


def _write_tables(target: Path, schema: str, tables: Mapping[str, pd.DataFrame]) -> Result:
    """Write tables to try the other commands on."""
    with release.new_folder(target, overwrite=False) as folder:
        (folder / release.SCHEMA).write_text(schema, encoding="utf-8")
        for name, table in tables.items():
            table.to_csv(folder / f"{name}.csv", index=False)
    rows = {name: len(table) for name, table in tables.items()}
    lines = [f"{many(number, 'row')}: {target / name}.csv" for name, number in rows.items()]
    return Result(
        {"out": target, "rows": rows},
        [f"schema of the simulated people: {target / release.SCHEMA}", *lines],
    )


def _load_ahead() -> None:
    """Load what takes long while the processes of the study work, and let those go first."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOAD_PRIORITY)
    for module in ("common.release.derive", "sklearn.svm"):  # to verify, and to compare
        import_module(module)
