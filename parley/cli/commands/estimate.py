"""`parley estimate` and `parley query`: statistics and counts of a release, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from common.analysis import statistics as kinds
from common.analysis.estimates import Estimate
from common.analysis.replicates import SEED, TABLES, check_tables
from common.analysis.statistics import Statistic
from common.errors import InputError
from common.fitted.counts import ModelCount
from common.schema import Schema
from common.schema import query as language
from common.schema.conditions import Condition, parse
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson, Release, warn_unless_private
from parley.reader.fitted import FittedPrivBayes, FittedPrivelet, FittedStudy, Loaded, load

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
    release: Release,
    *,
    mean: Mean = None,
    share: Annotated[
        str | None,
        typer.Option(help="The proportion of rows with: age >= 65 and smoker = true"),
    ] = None,
    median: Median = None,
    quantile: Quantile = None,
    correlation: Annotated[
        str | None, typer.Option(help="The correlation of two columns: age, income")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "--regress",
            help="Coefficients: income ~ age + sex. Logistic for a yes-or-no outcome.",
        ),
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="Of the model: linear, logistic or poisson.")
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
    Of several columns it also covers what the published tables say without the model. Flagged means
    wide because not measured: columns that were never counted together have the whole range that
    each column alone allows. The first estimate fits the model anew for every replicate; the
    replicates are kept beside the release, and the next estimates are quick.
    """
    asked = {
        "mean": mean, "share": share, "median": median, "quantile": quantile,
        "correlation": correlation, "model": model,
    }  # fmt: skip
    check_tables(tables)
    loaded = load(release)
    statistic = statistic_of(loaded.schema, asked, by, where, family)
    answer(loaded, statistic, Replicated(tables, seed, confidence), as_json=json)


@dataclass(frozen=True, slots=True)
class Replicated:
    """How an estimate is made: from how many replicates, of which seed, at which confidence."""

    tables: int
    seed: int
    confidence: float

    def estimate(self, loaded: Loaded, statistic: Statistic) -> list[Estimate]:
        """Estimate, and tell how far the work is."""
        with console.progress("estimating") as tell:
            tell(0.0, "reading the release")
            return loaded.estimate(
                statistic,
                tables=self.tables,
                seed=self.seed,
                confidence=self.confidence,
                tell=tell,
            )


def answer(loaded: Loaded, statistic: Statistic, how: Replicated, *, as_json: bool) -> None:
    """Print the estimates of a statistic, and why they are flagged."""
    found = how.estimate(loaded, statistic)
    lines = (_line(each, how.confidence) for each in found)
    console.show([each.as_json() for each in found], *lines, as_json=as_json)
    _explain(loaded, statistic, found)


def statistic_of(
    schema: Schema,
    asked: dict[str, str | None],
    by: str | None,
    where: str,
    family: str | None = None,
) -> Statistic:
    """Return the one statistic that was asked for.

    Raises:
        InputError: none was, or several.
    """
    given = [(name, text) for name, text in asked.items() if text is not None]
    if len(given) != 1:
        names = ", ".join(f"--{name}" for name in asked)
        raise InputError(f"estimate: give exactly one of {names}")
    ((name, text),) = given
    if family is not None and name != "model":
        raise InputError(f"--family {family}: it belongs to --model. Give a model, or leave it out")
    if name == "share":
        return kinds.share(schema, text, by, where)
    if name == "mean":
        return kinds.mean(schema, text, by, where)
    if name == "correlation":
        return kinds.correlation(schema, text, by, where)
    if name == "model":
        return kinds.regression(schema, text, by, where, family)
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


def _line(each: Estimate, confidence: float) -> str:
    name = each.statistic if each.group is None else f"{each.statistic}, {each.group}"
    mark = " [flagged]" if each.flagged else ""
    if each.estimate is None or each.low is None or each.high is None:
        return f"{name}: too few rows for an estimate{mark}"
    interval = f"{100 * confidence:.4g} % interval {_number(each.low)} .. {_number(each.high)}"
    error = _number(each.standard_error or 0.0)
    return f"{name}: {_number(each.estimate)} (standard error {error}, {interval}){mark}"


def _number(value: float) -> str:
    """Write five digits, and thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.5g}"


def _explain(loaded: Loaded, statistic: Statistic, found: Sequence[Estimate]) -> None:
    """Say why an estimate is flagged."""
    if any(each.flagged for each in found):
        for concern in loaded.concerns(statistic):
            console.warn(f"flagged, wide because not measured: {concern}")
    warn_unless_private(loaded.privacy)


@app.command()
def query(
    release: Annotated[
        Path, typer.Argument(help="The release, a folder or a .zip; or the file of a model.")
    ],
    condition: Annotated[
        str,
        typer.Argument(
            help="Like: age in 20..39 and (sex = Female or income is missing); empty for all rows."
        ),
    ] = "",
    *,
    mean: Mean = None,
    median: Median = None,
    quantile: Quantile = None,
    by: By = None,
    confidence: Confidence = 0.95,
    tables: Tables = TABLES,
    seed: ReplicateSeed = SEED,
    json: AsJson = False,
) -> None:
    """Ask a release how many of the real rows satisfy a condition. It costs no budget.

    Conditions know = != < <= > >=, `in` with a value, a group, a range or a list, `is missing`,
    `and`, `or`, `not` and parentheses. With --mean, --median or --quantile the answer is about the
    rows that satisfy the condition; with --by there is an answer for each value of a column.

    A Privelet release answers conjunctions from its noisy counts, with the exact deviation of the
    noise. Other releases answer conditions on one attribute from the noise of its released table,
    and everything else from replicates (see `parley estimate`). An answer that rests on relations
    which the release does not hold safely is flagged.
    """
    if not 0 < confidence < 1:
        raise InputError(f"--confidence {confidence}: give a number between 0 and 1")
    loaded = load(release)
    parsed = parse(condition, loaded.schema)
    asked = {"mean": mean, "median": median, "quantile": quantile}
    how = Replicated(tables, seed, confidence)
    if by is not None or any(text is not None for text in asked.values()):
        answer(loaded, _grouped(loaded, parsed, asked, by), how, as_json=json)
        return
    if isinstance(loaded, FittedPrivelet) and _is_box(language.parse(condition)):
        words, found = _from_counts(loaded, condition, confidence)
    elif not isinstance(loaded, FittedPrivelet) and len(parsed.attributes) < 2:
        words, found = _from_one_attribute(loaded, condition, confidence)
    else:
        words, found = _from_replicates(loaded, parsed, how)
    if "replicates" not in str(found["source"]):
        warn_unless_private(loaded.privacy)
    about = {"query": condition, "rows": loaded.rows, "private": loaded.privacy["private"]}
    console.show(about | found, words, as_json=json)


def _is_box(expression: language.Expression) -> bool:
    """Return whether a condition joins its tests by `and` only."""
    match expression:
        case language.Predicate():
            return True
        case language.Every(parts=parts):
            return all(map(_is_box, parts))
        case _:
            return False


def _grouped(
    loaded: Loaded, condition: Condition, asked: dict[str, str | None], by: str | None
) -> Statistic:
    """Return the statistic of the rows that satisfy a condition; counts where none is asked for."""
    if any(asked.values()):
        return statistic_of(loaded.schema, asked, by, condition.text)
    return kinds.count(loaded.schema, condition.text, loaded.rows, by)


def _answer(
    value: float | None,
    deviation: float | None,
    interval: tuple[float | None, float | None],
    confidence: float | None,
    *,
    source: str,
    flagged: bool = False,
) -> dict[str, object]:
    """Return what a script is told, wherever the answer comes from."""
    return {
        "count": value, "standard_deviation": deviation, "low": interval[0], "high": interval[1],
        "confidence": confidence, "source": source, "flagged": flagged,
    }  # fmt: skip


def _interval(low: float, high: float, confidence: float) -> str:
    return f"{100 * confidence:.4g} % interval {low:,.1f} .. {high:,.1f}"


def _from_counts(
    fitted: FittedPrivelet, condition: str, confidence: float
) -> tuple[str, dict[str, object]]:
    found = fitted.count(condition, confidence=confidence)
    answer = _answer(
        found.value, found.standard_deviation, (found.low, found.high), found.confidence,
        source="noisy counts",
    )  # fmt: skip
    if found.low is None or found.high is None:
        return f"{found.value:,.1f} (the noise of this method is not known exactly)", answer
    interval = _interval(found.low, found.high, confidence)
    return f"{found.value:,.1f} (noise sd {found.standard_deviation:,.1f}; {interval})", answer


def _from_one_attribute(
    loaded: FittedPrivBayes | FittedStudy, condition: str, confidence: float
) -> tuple[str, dict[str, object]]:
    rows = "synthetic rows" if isinstance(loaded, FittedStudy) else "a million rows"
    with console.progress("asking the model") as tell:
        tell(0.0, f"counting {rows}")
        found = loaded.count(condition)
    interval = found.interval(confidence)
    answer = _answer(
        found.value, found.standard_deviation, interval or (None, None),
        None if interval is None else confidence, source=f"a sample of the model: {rows}",
    )  # fmt: skip
    return f"{found.value:,.1f} by the model ({_error_words(found, confidence)})", answer


def _error_words(found: ModelCount, confidence: float) -> str:
    sampling = f"sampling sd {found.sampling_deviation:,.1f}"
    interval = found.interval(confidence)
    if interval is None:
        return f"{sampling}; the noise in its attribute is not known"
    noise = f"noise sd about {found.noise_deviation:,.1f}, {sampling}"
    return f"{noise}; {_interval(*interval, confidence)}"


def _from_replicates(
    loaded: Loaded, condition: Condition, how: Replicated
) -> tuple[str, dict[str, object]]:
    statistic = kinds.count(loaded.schema, condition.text, loaded.rows)
    (found,) = how.estimate(loaded, statistic)
    answer = _answer(
        found.estimate, found.standard_error, (found.low, found.high), how.confidence,
        source=f"{how.tables} replicates", flagged=found.flagged,
    )  # fmt: skip
    _explain(loaded, statistic, [found])
    if found.estimate is None or found.low is None or found.high is None:
        return "too few rows for an answer", answer
    interval = _interval(found.low, found.high, how.confidence)
    words = f"standard error {found.standard_error:,.1f}; {interval}"
    return f"{found.estimate:,.1f} ({words}){' [flagged]' if found.flagged else ''}", answer
