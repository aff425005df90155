"""`parley attack`: what a release gives away about an owner's rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from common.analysis.attacks import AttackReport
from common.analysis.attacks import attack as attacked
from common.analysis.attacks_bounds import Guarantee
from common.errors import InputError
from common.fitted.loading import synthetic_table
from common.release import folder as release
from common.release.contents import open_release, read_json
from common.report.attack_page import attack_page
from common.schema import Schema
from common.tables import read_table
from parley.cli import console, options
from parley.cli.commands import new_app
from parley.cli.result import Result, command

app = new_app()
_REAL = "NOT PRIVATE: computed from real rows without noise. Do not publish this."


def _lines(report: AttackReport) -> Iterator[str]:
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
    html: Annotated[
        Path | None, typer.Option(help="Write a page with the figures here. Not for publication.")
    ] = None,
    reading: options.Reading,
    overwrite: options.Overwrite = False,
) -> Result:
    """Attack a release: membership, attribute inference, singling out, equal rows.

    Every attack is made on your rows and on rows that were held back, and stands beside what the
    release's epsilon allows. The figures are computed from real rows without noise: do not publish
    them. A page is not written into a release folder.
    """
    if html is not None:
        release.check_file(html, overwrite=overwrite)
        release.check_private(html)
    with console.progress("attacking") as report:
        report(0.0, "reading the tables")
        domains, guarantee = _stated(release_path)
        ours, others = (reading.table(path, domains).encode(domains) for path in (rows, held_back))
        with synthetic_table(release_path) as file:
            synthetic = read_table(file, domains).encode(domains)
        attacks = attacked(synthetic, ours, others, domains, guarantee, tell=report)
    if html is not None:
        release.write_file(html, attack_page(attacks))
        console.note(f"report: {html}")
    return Result(attacks, _lines(attacks), warnings=[_REAL])


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
