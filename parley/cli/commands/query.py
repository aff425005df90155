"""`parley query`: how many rows satisfy a condition, from a release and without the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.release.estimates import ModelCount
from common.release.fitted import SEED
from common.release.fitted_privbayes import FittedPrivBayes
from common.release.fitted_privelet import FittedPrivelet
from common.release.fitted_study import FittedStudy
from common.release.loading import Loaded, load
from common.release.replicates import TABLES
from common.release.statistics import Statistic, count
from common.schema import query as language
from common.schema.conditions import Condition, parse
from parley.cli import console
from parley.cli.commands import estimate as estimates
from parley.cli.commands import new_app
from parley.cli.options import AsJson

app = new_app()


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
    mean: estimates.Mean = None,
    median: estimates.Median = None,
    quantile: estimates.Quantile = None,
    by: estimates.By = None,
    confidence: estimates.Confidence = 0.95,
    tables: estimates.Tables = TABLES,
    seed: estimates.ReplicateSeed = SEED,
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
    about = {"query": condition, "rows": loaded.rows, "private": loaded.privacy["private"]}
    if mean is not None or median is not None or quantile is not None or by is not None:
        _grouped(
            loaded, parsed, (mean, median, quantile), by, (tables, seed, confidence), json=json
        )
        return
    if isinstance(loaded, FittedPrivelet) and _is_box(condition):
        words, answer = _from_counts(loaded, condition, confidence)
    elif not isinstance(loaded, FittedPrivelet) and len(parsed.attributes) < 2:
        words, answer = _from_one_attribute(loaded, condition, confidence)
    else:
        words, answer = _from_replicates(loaded, parsed, tables, seed, confidence)
    if not loaded.privacy["private"] and "replicates" not in str(answer["source"]):
        console.warn("this release is NOT PRIVATE: it was made with a seed")
    console.show(about | answer, words, as_json=json)


def _is_box(condition: str) -> bool:
    """Whether a condition joins its tests by `and` only."""
    return _joined(language.parse(condition))


def _joined(expression: language.Expression) -> bool:
    match expression:
        case language.Predicate():
            return True
        case language.Every(parts=parts):
            return all(map(_joined, parts))
        case _:
            return False


def _grouped(
    loaded: Loaded,
    condition: Condition,
    asked: tuple[str | None, str | None, str | None],
    by: str | None,
    how: tuple[int, int, float],
    *,
    json: bool,
) -> None:
    """A statistic of the rows that satisfy a condition; counts where none is asked for."""
    statistic: Statistic
    if any(asked):
        names = dict(zip(("mean", "median", "quantile"), asked, strict=True))
        statistic = estimates.statistic_of(loaded.schema, names, by, condition.text)
    else:
        statistic = count(loaded.schema, condition.text, loaded.rows, by)
    found = estimates.run(loaded, statistic, *how)
    if json:
        console.result_json([each.as_json() for each in found])
    else:
        estimates.show(found, how[2])
    estimates.explain(loaded, statistic, found)


def _answer(
    value: float | None,
    deviation: float | None,
    interval: tuple[float | None, float | None],
    confidence: float | None,
    *,
    source: str,
    flagged: bool = False,
) -> dict[str, object]:
    """What a script is told, wherever the answer comes from."""
    return {
        "count": value, "standard_deviation": deviation, "low": interval[0], "high": interval[1],
        "confidence": confidence, "source": source, "flagged": flagged,
    }  # fmt: skip


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
    interval = f"{100 * confidence:.4g} % interval {found.low:,.1f} .. {found.high:,.1f}"
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
    return f"{noise}; {100 * confidence:.4g} % interval {interval[0]:,.1f} .. {interval[1]:,.1f}"


def _from_replicates(
    loaded: Loaded, condition: Condition, tables: int, seed: int, confidence: float
) -> tuple[str, dict[str, object]]:
    statistic = count(loaded.schema, condition.text, loaded.rows)
    (found,) = estimates.run(loaded, statistic, tables, seed, confidence)
    answer = _answer(
        found.estimate, found.standard_error, (found.low, found.high), confidence,
        source=f"{tables} replicates", flagged=found.flagged,
    )  # fmt: skip
    estimates.explain(loaded, statistic, [found])
    if found.estimate is None or found.low is None or found.high is None:
        return "too few rows for an answer", answer
    interval = f"{100 * confidence:.4g} % interval {found.low:,.1f} .. {found.high:,.1f}"
    words = f"standard error {found.standard_error:,.1f}; {interval}"
    return f"{found.estimate:,.1f} ({words}){' [flagged]' if found.flagged else ''}", answer
