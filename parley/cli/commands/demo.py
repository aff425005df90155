"""`parley demo`: a whole consortium on this machine, on a simulated population."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from common.analysis.answers import Answer
from common.analysis.estimates import CONFIDENCE
from common.analysis.evaluation import Evaluation, evaluate
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
from parley.cli.result import FOR_PEOPLE, Result, command
from parley.cli.study_options import option_of
from parley.reader.fitted import load
from parley.simulation.partition import at_random
from parley.simulation.population import demo_schema_toml, make_population
from parley.simulation.population_visits import PERSON, linked_schema, make_linked_population

app = new_app()
_SEED = 2024  # of the simulated people, not of the noise
_HOSPITALS = ("harbour hospital", "hill hospital", "market hospital")
_OWNERS = ("north", "east", "south")  # as the documentation calls them
_TIMEOUT_S = 900.0
_LOAD_PRIORITY = 10
_ANALYSIS = 'share = "smoker = true", by = "sex"'  # that the study is for, answered
EVALUATION = "{}-evaluation.html"


@dataclass(frozen=True)
class Demonstration(Result):
    """A release of simulated patients, and how far it is from them."""

    out: Path
    refusals: Mapping[str, str]
    privacy: Mapping[str, Any]
    compared: Evaluation = field(metadata=FOR_PEOPLE)
    patients: int = field(metadata=FOR_PEOPLE)
    seconds: float = field(metadata=FOR_PEOPLE)
    answers: tuple[Answer, ...] = field(metadata=FOR_PEOPLE)

    def as_json(self) -> object:
        return super().as_json() | self.compared.as_json()

    def lines(self) -> Iterator[str]:
        yield (
            f"{len(_HOSPITALS)} owners, {self.patients:,} simulated patients, epsilon "
            f"{self.privacy['epsilon_delivered']}, {self.seconds:.0f} s"
        )
        for one in self.compared.distances:
            yield f"average distance of {one.order}-way marginals: {one.average:.4f}"
        yield from answer_lines(self.answers, CONFIDENCE)
        yield f"synthetic table: {self.out / release.table_name('csv')}"
        yield f"report: {self.out / release.REPORT}"
        yield f"comparison with the population: {comparison_of(self.out)}"

    def require(self) -> None:
        require_countersigned(self.out, self.refusals)


@dataclass(frozen=True)
class DemoTables(Result):
    """Tables to try the other commands on."""

    out: Path
    rows: Mapping[str, int]

    def lines(self) -> Iterator[str]:
        yield f"schema of the simulated people: {self.out / release.SCHEMA}"
        for name, rows in self.rows.items():
            yield f"{many(rows, 'row')}: {self.out / name}.csv"


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
        return _write_linked_tables(tables, rows) if linked else _write_tables(tables, rows)
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
    seconds = time.monotonic() - started
    return Demonstration(out, refusals, privacy, compared, rows, seconds, answers)


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


def _write_tables(target: Path, rows: int) -> DemoTables:
    """Write tables to try the other commands on."""
    people = make_population(rows, seed=_SEED)
    parts = at_random(people, len(_OWNERS), SeededRandomSource(f"{_SEED}/owners")).values()
    named = {"people": people, **dict(zip(_OWNERS, parts, strict=True))}
    with release.new_folder(target, overwrite=False) as folder:
        (folder / release.SCHEMA).write_text(demo_schema_toml(), encoding="utf-8")
        for name, table in named.items():
            table.to_csv(folder / f"{name}.csv", index=False)
    return DemoTables(target, {name: len(table) for name, table in named.items()})


def _write_linked_tables(target: Path, rows: int) -> DemoTables:
    """Write the patients of three owners, and the visits of each."""
    people, visits = make_linked_population(rows, seed=_SEED)
    parts = at_random(people, len(_OWNERS), SeededRandomSource(f"{_SEED}/owners")).values()
    named = {}
    for owner, part in zip(_OWNERS, parts, strict=True):
        named[f"{owner}-patients"] = part
        named[f"{owner}-visits"] = visits[visits[PERSON].isin(part[PERSON])]
    with release.new_folder(target, overwrite=False) as folder:
        (folder / release.SCHEMA).write_text(linked_schema().to_toml(), encoding="utf-8")
        for name, table in named.items():
            table.to_csv(folder / f"{name}.csv", index=False)
    return DemoTables(target, {name: len(table) for name, table in named.items()})


def _load_ahead() -> None:
    """Load what takes long while the processes of the study work, and let those go first."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOAD_PRIORITY)
    for module in ("common.release.derive", "sklearn.svm"):  # to verify, and to compare
        import_module(module)
