"""The section of the report that answers what its study declared."""

from __future__ import annotations

from collections.abc import Sequence

from common.analysis.answers import Answer
from common.analysis.estimates import Estimate
from common.report.page import Markup, Section, folded, heading, joined, paragraph, readable, table

_MOST_LINES = 24  # of one analysis; more are folded away


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
