"""`parley estimate`: shares, means, quantiles and regressions with honest intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.release import statistics as kinds
from common.release.estimates import Estimate
from common.release.fitted import SEED
from common.release.loading import Loaded, load
from common.release.replicates import TABLES, check_tables
from common.release.statistics import Statistic
from common.schema import Schema
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson

app = new_app()

Mean = Annotated[str | None, typer.Option("--mean", help="The mean of this column.")]
Median = Annotated[str | None, typer.Option("--median", help="The median of this column.")]
Quantile = Annotated[
    str | None, typer.Option("--quantile", help="A quantile of a column, like 0.9:income.")
]
By = Annotated[str | None, typer.Option("--by", help="An estimate for each value of this column.")]
Tables = Annotated[int, typer.Option(help="How many replicates to look at.")]
ReplicateSeed = Annotated[int, typer.Option(help="The seed of the replicates.")]
Confidence = Annotated[float, typer.Option(help="The confidence of the intervals.")]


@app.command(name="estimate")
def estimate_command(
    release: Annotated[Path, typer.Argument(help="The release: a folder or a .zip.")],
    *,
    mean: Mean = None,
    share: Annotated[
        str | None,
        typer.Option(help="The proportion of rows with: age >= 65 and smoker = true"),
    ] = None,
    median: Median = None,
    quantile: Quantile = None,
    regress: Annotated[
        str | None,
        typer.Option(help="Coefficients: income ~ age + sex. Logistic for a yes-or-no outcome."),
    ] = None,
    by: By = None,
    where: Annotated[str, typer.Option(help="Only rows that satisfy this condition.")] = "",
    tables: Tables = TABLES,
    seed: ReplicateSeed = SEED,
    confidence: Confidence = 0.95,
    json: AsJson = False,
) -> None:
    """Estimate a statistic of the people behind a release, with a standard error and an interval.

    The interval covers the sampling of the real rows, the noise and the sampling of synthetic rows.
    It does not cover what the model leaves out: an estimate that rests on relations which the
    release does not hold safely is flagged. The first estimate fits the model anew for every
    replicate; the replicates are kept beside the release, and the next estimates are quick.
    """
    asked = {"mean": mean, "share": share, "median": median, "quantile": quantile}
    check_tables(tables)
    loaded = load(release)
    statistic = statistic_of(loaded.schema, asked | {"regress": regress}, by, where)
    found = run(loaded, statistic, tables, seed, confidence)
    if json:
        console.result_json([each.as_json() for each in found])
    else:
        show(found, confidence)
    explain(loaded, statistic, found)


def statistic_of(
    schema: Schema, asked: dict[str, str | None], by: str | None, where: str
) -> Statistic:
    """The one statistic that was asked for.

    Raises:
        InputError: none was, or several.
    """
    given = [(name, text) for name, text in asked.items() if text is not None]
    if len(given) != 1:
        names = ", ".join(f"--{name}" for name in asked)
        raise InputError(f"estimate: give exactly one of {names}")
    ((name, text),) = given
    if name == "share":
        return kinds.share(schema, text, by, where)
    if name == "mean":
        return kinds.mean(schema, text, by, where)
    if name == "regress":
        return kinds.regression(schema, text, by, where)
    at, column = (0.5, text) if name == "median" else _quantile(text)
    return kinds.quantile(schema, column, at, by, where)


def _quantile(text: str) -> tuple[float, str]:
    at, colon, column = text.partition(":")
    try:
        if colon and column.strip():
            return float(at), column.strip()
    except ValueError:
        pass
    raise InputError(f"--quantile {text!r}: write it like 0.9:income")


def run(
    loaded: Loaded, statistic: Statistic, tables: int, seed: int, confidence: float
) -> list[Estimate]:
    """Estimate, and tell how far the work is."""
    with console.progress("estimating") as tell:
        tell(0.0, "reading the release")
        return loaded.estimate(
            statistic, tables=tables, seed=seed, confidence=confidence, tell=tell
        )


def show(found: Sequence[Estimate], confidence: float) -> None:
    """A line for each estimate."""
    for each in found:
        name = each.statistic if each.group is None else f"{each.statistic}, {each.group}"
        mark = " [flagged]" if each.flagged else ""
        if each.estimate is None or each.low is None or each.high is None:
            console.result(f"{name}: too few rows for an estimate{mark}")
            continue
        interval = f"{100 * confidence:.4g} % interval {number(each.low)} .. {number(each.high)}"
        error = number(each.standard_error or 0.0)
        console.result(
            f"{name}: {number(each.estimate)} (standard error {error}, {interval}){mark}"
        )


def number(value: float) -> str:
    """Five digits, and thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.5g}"


def explain(loaded: Loaded, statistic: Statistic, found: Sequence[Estimate]) -> None:
    """Why an estimate is flagged."""
    if any(each.flagged for each in found):
        for concern in loaded.concerns(statistic):
            console.warn(f"flagged: {concern}. The interval may miss the truth")
    if not loaded.privacy["private"]:
        console.warn("this release is NOT PRIVATE: it was made with a seed")
