"""The section of the report that answers what its study declared."""

from __future__ import annotations

from collections.abc import Sequence

from common.analysis.answers import Answer
from common.analysis.estimates import Estimate
from common.report.page import Markup, Section, folded, heading, joined, paragraph, readable, table

_MOST_LINES = 24  # of one analysis; more are folded away


def answers_section(found: Sequence[Answer]) -> list[Section]:
    """Show the declared analyses, each as a table of estimates, if there are any."""
    if not found:
        return []
    words = paragraph(
        "The owners agreed beforehand on what this release is for, and measured that first. Each "
        "interval of 95 % allows for the noise, for the sampling of the real rows, and for what "
        "groups of values hide; it needs no model to be right. `parley answers` gives the same."
    )
    parts = [part for each in found for part in (heading(each.analysis.words), _answer(each))]
    return [Section("What was asked", joined([words, *parts]))]


def _answer(answer: Answer) -> Markup:
    lines = [_line(each) for each in answer.estimates]
    shown = table(["", "estimate", "95 % interval"], lines)
    return shown if len(lines) <= _MOST_LINES else folded(shown, summary=f"{len(lines)} estimates")


def _line(found: Estimate) -> list[str]:
    name = found.statistic if found.group is None else f"{found.statistic}, {found.group}"
    if found.estimate is None or found.low is None or found.high is None:
        return [name, "too few rows", ""]
    wide = " (wide: not measured together)" if found.flagged else ""
    return [
        name,
        readable(found.estimate),
        f"{readable(found.low)} .. {readable(found.high)}{wide}",
    ]
