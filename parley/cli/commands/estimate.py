"""`parley estimate`, `answers` and `query`: statistics and counts of a release, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from common import files
from common.analysis import statistics as kinds
from common.analysis.answers import Answer
from common.analysis.estimates import CONFIDENCE, Estimate, check_confidence
from common.analysis.replicates import SEED, TABLES, check_tables
from common.analysis.statistics import Statistic
from common.analysis.survival import curves_of
from common.analysis.survival import survival as survival_statistic
from common.analysis.views import TableView
from common.errors import InputError
from common.report.charts import curves_svg
from common.schema import Schema
from common.schema import query as language
from common.schema.conditions import Condition, parse
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.linked_tables import asked_of
from parley.cli.options import Release, not_private
from parley.cli.result import Result, command
from parley.reader.fitted import FittedPrivBayes, FittedPrivelet, FittedStudy, Loaded, load

app = new_app()

Mean = Annotated[str | None, typer.Option("--mean", help="The mean of this column.")]
Median = Annotated[str | None, typer.Option("--median", help="The median of this column.")]
Quantile = Annotated[
    str | None, typer.Option("--quantile", help="A quantile of a column, like 0.9:income.")
]
By = Annotated[str | None, typer.Option("--by", help="An estimate for each value of this column.")]
Confidence = Annotated[float, typer.Option(help="The confidence of the intervals.")]


@dataclass(frozen=True)
class Replicated:
    """How an estimate is made: from how many replicates, of which seed, at which confidence."""

    tables: Annotated[int, typer.Option(help="How many replicates to look at.")] = TABLES
    seed: Annotated[int, typer.Option(help="The seed of the replicates.")] = SEED
    confidence: Confidence = CONFIDENCE

    def estimate(
        self, loaded: Loaded, statistic: Statistic, view: TableView | None = None
    ) -> list[Estimate]:
        """Estimate, and tell how far the work is."""
        with console.progress("estimating") as tell:
            tell(0.0, "reading the release")
            return loaded.estimate(
                statistic, of="" if view is None else view, tell=tell, **asdict(self)
            )


def estimate_line(estimate: Estimate, confidence: float) -> str:
    """Return an estimate with its interval, for people."""
    name = (
        estimate.statistic if estimate.group is None else f"{estimate.statistic}, {estimate.group}"
    )
    mark = " [flagged]" if estimate.flagged else ""
    if estimate.estimate is None or estimate.low is None or estimate.high is None:
        return f"{name}: too few rows for an estimate{mark}"
    error, low, high = map(_number, (estimate.standard_error or 0.0, estimate.low, estimate.high))
    interval = f"{100 * confidence:.4g} % interval {low} .. {high}"
    return f"{name}: {_number(estimate.estimate)} (standard error {error}, {interval}){mark}"


def answer_lines(
    answers: Sequence[Answer], confidence: float, most: int | None = None
) -> Iterator[str]:
    """Yield declared analyses with their estimates, at most so many of each, for people."""
    for answer in answers:
        yield f"{answer.analysis.words}:"
        yield from (
            f"  {estimate_line(estimate, confidence)}" for estimate in answer.estimates[:most]
        )
        if most is not None and len(answer.estimates) > most:
            yield f"  and {len(answer.estimates) - most:,} more: parley answers"


@command(app, "estimate")
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
    survival: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="Kaplan-Meier curves: a column of times, and what happened then, a yes-or-no "
            "column or a condition.",
            metavar="TIME STATUS",
        ),
    ] = None,
    by: By = None,
    where: Annotated[str, typer.Option(help="Only rows that satisfy this condition.")] = "",
    of: Annotated[
        str,
        typer.Option(
            help="Of a linked release: the name of its events, for a statistic of events."
        ),
    ] = "",
    picture: Annotated[
        Path | None, typer.Option(help="With --survival, an SVG file to draw the curves into.")
    ] = None,
    how: Replicated,
) -> Result:
    """Estimate a statistic of the people behind a release, with a standard error and an interval.

    The interval covers the sampling of the real rows, the noise and the sampling of synthetic rows.
    Of several columns it also rests on what the published tables say alone. Flagged means
    wide because not measured: columns that were never counted together have the whole range that
    each column alone allows. The first estimate fits the model anew for every replicate; the
    replicates are kept beside the release, and the next estimates are quick.
    """
    statistics = {
        "mean": mean, "share": share, "median": median, "quantile": quantile,
        "correlation": correlation, "model": model,
    }  # fmt: skip
    check_tables(how.tables)
    loaded = load(release)
    if survival is not None:
        if of or family or any(statistics.values()):
            raise InputError("--survival: give it with --by and --where only")
        return _survival(loaded, survival, by, where, picture, how)
    if picture is not None:
        raise InputError(f"--picture {picture}: it belongs to --survival. Leave it out")
    view = loaded.view(of)
    statistic = asked_of(
        loaded.schema,
        view.schema,
        lambda schema: statistic_of(schema, statistics, by, where, family),
    )
    return _estimated(loaded, statistic, how, view)[1]


def _survival(
    loaded: Loaded,
    columns: tuple[str, str],
    by: str | None,
    where: str,
    picture: Path | None,
    how: Replicated,
) -> Result:
    """Estimate survival, and draw it."""
    time, status = columns
    view, happened = loaded.survival_view(time, status=status)
    statistic = survival_statistic(view.schema, time, status=happened, by=by, where=where)
    estimates, result = _estimated(loaded, statistic, how, view)
    if picture is not None:
        attribute = view.schema.attributes[view.schema.position(time)]
        drawn = curves_svg(time, list(curves_of(attribute, estimates)))
        files.replace(picture, f"{drawn}\n".encode())
    return result


def _estimated(
    loaded: Loaded, statistic: Statistic, how: Replicated, view: TableView | None = None
) -> tuple[list[Estimate], Result]:
    """Estimate a statistic; say why the estimates are flagged."""
    estimates = how.estimate(loaded, statistic, view)
    lines = [estimate_line(estimate, how.confidence) for estimate in estimates]
    warnings = [*_flags(loaded, statistic, estimates, view), *not_private(loaded.privacy)]
    return estimates, Result(estimates, lines, warnings=warnings)


def statistic_of(
    schema: Schema,
    statistics: dict[str, str | None],
    by: str | None,
    where: str,
    family: str | None = None,
) -> Statistic:
    """Return the one statistic that was asked for."""
    requests = [(name, text) for name, text in statistics.items() if text is not None]
    if len(requests) != 1:
        names = ", ".join(f"--{name}" for name in statistics)
        raise InputError(f"estimate: give exactly one of {names}")
    ((name, text),) = requests
    if family is not None and name != "model":
        raise InputError(f"--family {family}: it belongs to --model. Give a model, or leave it out")
    by_name = {"share": kinds.share, "mean": kinds.mean, "correlation": kinds.correlation}
    if name in by_name:
        return by_name[name](schema, text, by, where)
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


def _number(value: float) -> str:
    """Write five digits, and thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.5g}"


def _flags(
    loaded: Loaded,
    statistic: Statistic,
    estimates: Sequence[Estimate],
    view: TableView | None = None,
) -> list[str]:
    """Return why estimates are flagged."""
    flagged = any(estimate.flagged for estimate in estimates)
    concerns = loaded.concerns(statistic, view) if flagged else []
    return [f"flagged, wide because not measured: {concern}" for concern in concerns]


@command(app, "answers")
def answers_command(release: Release, *, confidence: Confidence = CONFIDENCE) -> Result:
    """Answer the analyses that the study of a release declared, with intervals.

    They were measured first, so no model is fitted again. The report has the same numbers.
    """
    loaded = load(release)
    if not loaded.analyses:
        raise InputError(
            f"{release}: its study declared no analysis. Ask for a statistic: parley estimate"
        )
    with console.progress("answering") as tell:
        tell(0.0, "drawing noise and rows again")
        answers = loaded.answers(confidence=confidence)
    lines = answer_lines(answers, confidence)
    return Result(answers, lines, warnings=not_private(loaded.privacy))


@command(app)
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
    how: Replicated,
) -> Result:
    """Ask a release how many of the real rows satisfy a condition. It costs no budget.

    Conditions know = != < <= > >=, `in` with a value, a group, a range or a list, `is missing`,
    `and`, `or`, `not` and parentheses. With --mean, --median or --quantile the answer is about the
    rows that satisfy the condition; with --by there is an answer for each value of a column.

    A Privelet release answers conjunctions from its noisy counts, with the exact deviation of the
    noise. Other releases answer conditions on one attribute from the noise of its released table,
    and everything else from replicates (see `parley estimate`). An answer that rests on relations
    which the release does not hold safely is flagged.
    """
    check_confidence(how.confidence)
    loaded = load(release)
    parsed = asked_of(loaded.schema, loaded.schema, lambda schema: parse(condition, schema))
    statistics = {"mean": mean, "median": median, "quantile": quantile}
    if by is not None or any(text is not None for text in statistics.values()):
        return _estimated(loaded, _grouped(loaded, parsed, statistics, by), how)[1]
    if isinstance(loaded, FittedPrivelet) and _is_box(language.parse(condition)):
        count = _from_counts(loaded, condition, how.confidence)
    elif not isinstance(loaded, FittedPrivelet) and len(parsed.attributes) < 2:
        count = _from_one_attribute(loaded, condition, how.confidence)
    else:
        count = _from_replicates(loaded, parsed, how)
    form = {"query": condition, "rows": loaded.rows, "private": loaded.privacy["private"]}
    return Result(
        form | count.as_json(),
        [count.line()],
        warnings=[*count.notices, *not_private(loaded.privacy)],
    )


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
    loaded: Loaded, condition: Condition, statistics: dict[str, str | None], by: str | None
) -> Statistic:
    """Return the statistic of the rows that satisfy a condition; counts where none is asked for."""
    if any(statistics.values()):
        return statistic_of(loaded.schema, statistics, by, condition.text)
    return kinds.count(loaded.schema, condition.text, loaded.rows, by)


@dataclass(frozen=True, kw_only=True)
class _Count:
    """How many rows satisfy a condition, how exactly, and where that comes from."""

    count: float | None
    standard_deviation: float | None
    low: float | None
    high: float | None
    confidence: float | None
    source: str
    words: str  # what the error is of
    by: str = ""  # what the count is by, if not by published counts
    flagged: bool = False
    notices: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if key not in _FOR_PEOPLE}

    def line(self) -> str:
        """Return the count with its interval, for people."""
        if self.count is None:
            return "too few rows for an answer"
        words = self.words
        if self.low is not None and self.high is not None and self.confidence is not None:
            words += f"; {100 * self.confidence:.4g} % interval {self.low:,.1f} .. {self.high:,.1f}"
        return f"{self.count:,.1f}{self.by} ({words}){' [flagged]' if self.flagged else ''}"


_FOR_PEOPLE = ("words", "by", "notices")


def _from_counts(fitted: FittedPrivelet, condition: str, confidence: float) -> _Count:
    count = fitted.count(condition, confidence=confidence)
    words = "the noise of this method is not known exactly"
    if count.low is not None:
        words = f"noise sd {count.standard_deviation:,.1f}"
    return _Count(
        count=count.value, standard_deviation=count.standard_deviation, low=count.low,
        high=count.high, confidence=count.confidence, source="noisy counts", words=words,
    )  # fmt: skip


def _from_one_attribute(
    loaded: FittedPrivBayes | FittedStudy, condition: str, confidence: float
) -> _Count:
    rows = "synthetic rows" if isinstance(loaded, FittedStudy) else "a million rows"
    with console.progress("asking the model") as tell:
        tell(0.0, f"counting {rows}")
        count = loaded.count(condition)
    words = f"sampling sd {count.sampling_deviation:,.1f}"
    if count.noise_deviation is None:
        words = f"{words}; the noise in its attribute is not known"
    else:
        words = f"noise sd about {count.noise_deviation:,.1f}, {words}"
    interval = count.interval(confidence)
    low, high = interval or (None, None)
    return _Count(
        count=count.value, standard_deviation=count.standard_deviation, low=low, high=high,
        confidence=None if interval is None else confidence, words=words, by=" by the model",
        source=f"a sample of the model: {rows}",
    )  # fmt: skip


def _from_replicates(loaded: Loaded, condition: Condition, how: Replicated) -> _Count:
    statistic = kinds.count(loaded.schema, condition.text, loaded.rows)
    (answer,) = how.estimate(loaded, statistic)
    return _Count(
        count=answer.estimate, standard_deviation=answer.standard_error, low=answer.low,
        high=answer.high, confidence=how.confidence, source=f"{how.tables} replicates",
        words=f"standard error {answer.standard_error or 0:,.1f}", flagged=answer.flagged,
        notices=tuple(_flags(loaded, statistic, [answer])),
    )  # fmt: skip
