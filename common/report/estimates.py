"""The sections of the report with estimates: what was declared, and means of columns."""

from __future__ import annotations

from collections.abc import Sequence

from common.analysis.answers import Answer
from common.analysis.estimates import Estimate
from common.analysis.means import Mean
from common.report.charts import forest
from common.report.page import (
    Markup,
    Section,
    figure,
    folded,
    heading,
    joined,
    paragraph,
    readable,
    table,
)

_MOST_LINES = 24  # of one analysis; more are folded away


def means_section(means: Sequence[Mean]) -> list[Section]:
    """Show the means as a picture and a table, if there are any."""
    if not means:
        return []
    words = (
        "The means are those of the released counts of single columns. The 95 % interval is for "
        "the mean of the population: it allows for the noise, for the sampling of the real rows, "
        "and for where numbers are in their bins: by what was measured of it, else by half a bin. "
        "`parley estimate --mean` gives the same; for means by group, and for other statistics, "
        "use it, too."
    )
    picture = forest("Means with their intervals", [(mean.name, *mean.relative) for mean in means])
    caption = "Each line is the range of a column. The mark is the mean, inside its interval."
    lines = [
        [mean.name, readable(mean.mean), f"{readable(mean.low)} .. {readable(mean.high)}"]
        for mean in means
    ]
    listed = table(["column", "mean", "95 % interval"], lines)
    return [Section("Means", joined([paragraph(words), figure(picture, caption=caption), listed]))]


def answers_section(answers: Sequence[Answer]) -> list[Section]:
    """Show the declared analyses, each as a table of estimates, if there are any."""
    if not answers:
        return []
    words = paragraph(
        "The owners agreed beforehand on what this release is for, and measured that first. Each "
        "interval of 95 % allows for the noise, for the sampling of the real rows, and for what "
        "groups of values hide; it needs no model to be right. `parley answers` gives the same."
    )
    parts = [
        part for answer in answers for part in (heading(answer.analysis.words), _answer(answer))
    ]
    return [Section("What was asked", joined([words, *parts]))]


def _answer(answer: Answer) -> Markup:
    lines = [_line(estimate) for estimate in answer.estimates]
    shown = table(["", "estimate", "95 % interval"], lines)
    return shown if len(lines) <= _MOST_LINES else folded(shown, summary=f"{len(lines)} estimates")


def _line(estimate: Estimate) -> list[str]:
    name = (
        estimate.statistic if estimate.group is None else f"{estimate.statistic}, {estimate.group}"
    )
    if estimate.estimate is None or estimate.low is None or estimate.high is None:
        return [name, "too few rows", ""]
    wide = " (wide: not measured together)" if estimate.flagged else ""
    return [
        name,
        readable(estimate.estimate),
        f"{readable(estimate.low)} .. {readable(estimate.high)}{wide}",
    ]
