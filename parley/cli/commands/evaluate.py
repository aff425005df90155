"""`parley evaluate` and `attack`: what an owner learns of a release with the real rows.

How close is a synthetic table to the real one, and what does a release give away about its rows?
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from common.analysis.attacks import AttackReport
from common.analysis.attacks import attack as attacked
from common.analysis.attacks_bounds import Guarantee
from common.analysis.distances import MEANING, LinkedDistances, evaluate_linked
from common.analysis.evaluation import LOSSES, Evaluation, far_off
from common.analysis.evaluation import evaluate as compare
from common.errors import InputError
from common.fitted.loading import is_release_zip, synthetic_table
from common.privacy.budget import parse_epsilon
from common.release import folder as release
from common.release.contents import open_release, read_json
from common.release.synthetic_table import read_linked
from common.report.attack_page import attack_page
from common.report.evaluation_page import evaluation_page
from common.schema import Schema
from common.tables import read_table
from parley.cli import console, options
from parley.cli.commands import new_app
from parley.cli.linked_tables import EventsFile
from parley.cli.result import Result, command
from parley.simulation.linked_files import LinkedFiles

app = new_app()
_REAL = "NOT PRIVATE: computed from the real rows without noise. Do not publish this."


@dataclass(frozen=True)
class PrivatePage:
    """A page of figures for the owner's eyes, which is never written into a release."""

    html: Annotated[
        Path | None, typer.Option(help="Write a page with the figures here. Not for publication.")
    ] = None
    overwrite: options.Overwrite = False

    def check(self) -> None:
        """Refuse a place that the page must not be written to."""
        if self.html is not None:
            release.check_file(self.html, overwrite=self.overwrite)
            release.check_private(self.html)

    def write(self, page: str) -> None:
        """Write the page, if one is asked for."""
        if self.html is not None:
            release.write_file(self.html, page)
            console.note(f"report: {self.html}")


def _lines(evaluation: Evaluation) -> Iterator[str]:
    yield evaluation.sizes
    yield MEANING
    for one in evaluation.distances:
        yield one.words(f"{one.order}-way marginals")
    yield from () if evaluation.linked is None else evaluation.linked.lines()
    for column in far_off(evaluation.numbers):
        yield column.words()
    for c in evaluation.classifications:
        noisy = "" if c.noisy_majority is None else f", {c.noisy_majority:.3f} by the noisy one"
        yield (
            f"predicting {c.target}: error {c.trained_on_synthetic:.3f} trained on synthetic "
            f"rows, {c.trained_on_real:.3f} on real rows, {c.majority:.3f} by always saying "
            f"the majority{noisy}"
        )


@command(app)
def evaluate(
    real: Annotated[Path, typer.Argument(help="The real table: CSV or Parquet.")],
    synthetic: Annotated[
        Path,
        typer.Argument(
            help="The synthetic table, CSV or Parquet, or the release: a folder or a .zip."
        ),
    ],
    *,
    schema: options.SchemaFile,
    second: EventsFile,
    target: Annotated[
        list[str] | None,
        typer.Option(help="An attribute to predict; may be repeated. [default: up to four]"),
    ] = None,
    loss: Annotated[
        str, typer.Option(help="The classifier's loss: squared-hinge, or hinge as in the papers.")
    ] = LOSSES[0],
    majority_epsilon: Annotated[
        str | None,
        typer.Option(help="Report the error of the noisy majority at this epsilon, too."),
    ] = None,
    page: PrivatePage,
    reading: options.Reading,
) -> Result:
    """Compare a synthetic table with the real one: marginals, numbers, dependence, classification.

    With --events and --person, the owner's people and their events are compared with a release of
    two tables: people as any table, and pairs of columns of people, of events and of consecutive
    events.

    The figures are computed from the real rows without noise. They are for the owner's eyes: do not
    publish them with the release; a page is not written into a release folder.
    """
    page.check()
    noisy_epsilon = None
    if majority_epsilon is not None:
        noisy_epsilon = parse_epsilon(majority_epsilon, "--majority-epsilon")
    if loss not in LOSSES:
        raise InputError(f"--loss {loss!r}: choose one of {', '.join(LOSSES)}")
    domains = Schema.load(schema)
    in_release = synthetic.is_dir() or is_release_zip(synthetic)
    if domains.events is not None and not in_release:
        raise InputError(f"{synthetic}: the schema has [events]. Name the release, with two tables")
    place = synthetic_table(synthetic) if in_release else nullcontext(synthetic)
    with console.progress("evaluating") as report, place as rows_file:
        report(0.0, "reading the tables")
        files = second.linked(real, domains, reading)
        table = reading.table(real, domains) if files is None else files.people
        drawn = read_table(rows_file, domains.people)
        report(0.3, "comparing marginals and training classifiers")
        evaluation = compare(
            table, drawn, domains.people, target, loss=loss, majority_epsilon=noisy_epsilon
        )
        if files is not None:
            evaluation = replace(evaluation, linked=_linked(files, synthetic, domains))
    page.write(evaluation_page(evaluation))
    return Result(evaluation, _lines(evaluation), warnings=[_REAL])


def _linked(files: LinkedFiles, synthetic: Path, schema: Schema) -> LinkedDistances:
    """Compare the owner's people and events with the two tables of a release."""
    with open_release(synthetic) as contents:
        return evaluate_linked(files.encode(schema), read_linked(contents, schema), schema)


def _attack_lines(report: AttackReport) -> Iterator[str]:
    yield report.summary()
    yield from report.sentences()
    yield (
        f"For any attack, {report.guarantee.words()} allows a difference of "
        f"{report.guarantee.advantage:.1%}; these attacks prove an epsilon of at least "
        f"{report.epsilon_shown:.2f}."
    )


@command(app)
def attack(
    release_path: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="The release: a folder or a .zip.")
    ],
    *,
    rows: Annotated[Path, typer.Option(help="Your rows that were in the study: CSV or Parquet.")],
    held_back: Annotated[
        Path, typer.Option(help="Rows drawn like them that were NOT in the study.")
    ],
    page: PrivatePage,
    reading: options.Reading,
) -> Result:
    """Attack a release: membership, attribute inference, singling out, equal rows.

    Every attack is made on your rows and on rows that were held back, and stands beside what the
    release's epsilon allows. The figures are computed from real rows without noise: do not publish
    them. A page is not written into a release folder.
    """
    page.check()
    with console.progress("attacking") as report:
        report(0.0, "reading the tables")
        domains, guarantee = _stated(release_path)
        ours, others = (reading.table(path, domains).encode(domains) for path in (rows, held_back))
        with synthetic_table(release_path) as file:
            synthetic = read_table(file, domains).encode(domains)
        attacks = attacked(synthetic, ours, others, domains, guarantee, tell=report)
    page.write(attack_page(attacks))
    return Result(attacks, _attack_lines(attacks), warnings=[_REAL])


def _stated(path: Path) -> tuple[Schema, Guarantee]:
    """Read the schema of a release, and what it promises to a row."""
    with open_release(path) as contents:
        statement = read_json(contents, release.STATEMENT)
        schema = release.read_schema(contents)
    if not statement.get("private"):
        return schema, Guarantee(epsilon=None)
    try:
        epsilon = float(str(statement["epsilon_delivered"]))
        return schema, Guarantee(epsilon=epsilon, delta=float(str(statement["delta"])))
    except (KeyError, ValueError):
        raise InputError(f"{path}: privacy.json states no epsilon. Check it with verify") from None
