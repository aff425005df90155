"""`parley query`: how many rows satisfy a condition, from a release and without the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.release.fitted_privbayes import FittedPrivBayes
from common.release.fitted_privelet import FittedPrivelet
from common.release.model_count import ModelCount
from common.release.released_rows import ReleasedRows
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import AsJson
from parley.loading import load

app = new_app()


@app.command()
def query(
    release: Annotated[Path, typer.Argument(help="A release folder, or the file of a model.")],
    condition: Annotated[
        str,
        typer.Argument(help="Like: age in 20..39 and sex = Female and country in Europe"),
    ],
    *,
    confidence: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
    json: AsJson = False,
) -> None:
    """Ask a release how many of the real rows satisfy a condition. It costs no budget.

    A Privelet release answers from its noisy counts, with the exact standard deviation of the noise
    and an interval. A PrivBayes release answers by its model, with a million rows drawn from it, a
    study's release by its synthetic rows: with an interval for conditions on one attribute, from
    the deviations of noise and drawing. How well a model holds several attributes together is not
    known, and in no deviation.
    """
    if not 0 < confidence < 1:
        raise InputError(f"--confidence {confidence}: give a number between 0 and 1")
    fitted = load(release)
    if isinstance(fitted, FittedPrivelet):
        words, answer = _from_counts(fitted, condition, confidence)
    else:
        words, answer = _from_model(fitted, condition, confidence)
    if not fitted.privacy["private"]:
        console.warn("this release is NOT PRIVATE: it was made with a seed")
    if json:
        console.result_json(
            {"query": condition, "rows": fitted.rows, "private": fitted.privacy["private"]} | answer
        )
    else:
        console.result(words)


def _from_counts(
    fitted: FittedPrivelet, condition: str, confidence: float
) -> tuple[str, dict[str, object]]:
    found = fitted.count(condition, confidence=confidence)
    answer: dict[str, object] = {
        "count": found.value,
        "standard_deviation": found.standard_deviation,
        "low": found.low,
        "high": found.high,
        "confidence": found.confidence,
        "source": "noisy counts",
    }
    if found.low is None or found.high is None:
        return f"{found.value:,.1f} (the noise of this method is not known exactly)", answer
    interval = f"{confidence:.4g} interval {found.low:,.1f} .. {found.high:,.1f}"
    return f"{found.value:,.1f} (noise sd {found.standard_deviation:,.1f}; {interval})", answer


def _from_model(
    fitted: FittedPrivBayes | ReleasedRows, condition: str, confidence: float
) -> tuple[str, dict[str, object]]:
    rows = "synthetic rows" if isinstance(fitted, ReleasedRows) else "a million rows"
    with console.progress("asking the model") as tell:
        tell(0.0, f"counting {rows}")
        estimate = fitted.count(condition)
    interval = estimate.interval(confidence)
    low, high = (None, None) if interval is None else interval
    answer: dict[str, object] = {
        "count": estimate.value,
        "standard_deviation": estimate.standard_deviation,
        "noise_deviation": estimate.noise_deviation,
        "sampling_deviation": estimate.sampling_deviation,
        "low": low,
        "high": high,
        "confidence": None if interval is None else confidence,
        "source": f"a sample of the model: {rows}",
    }
    return f"{estimate.value:,.1f} by the model ({_error_words(estimate, confidence)})", answer


def _error_words(estimate: ModelCount, confidence: float) -> str:
    sampling = f"sampling sd {estimate.sampling_deviation:,.1f}"
    if estimate.noise_deviation is None:
        return f"{sampling}; the model's own error is not known"
    known = f"noise sd about {estimate.noise_deviation:,.1f}, {sampling}"
    interval = estimate.interval(confidence)
    if interval is None:
        together = " and ".join(estimate.attributes)
        return f"{known}; how well the model holds {together} together is not known"
    return f"{known}; {confidence:.4g} interval {interval[0]:,.1f} .. {interval[1]:,.1f}"
