"""The section of the report on what may be used together: pairs of columns by verdict."""

from __future__ import annotations

from collections.abc import Sequence

from common.analysis.conclusions import PairGroup
from common.analysis.diagnostics import Diagnostics
from common.report.page import Markup, Section, folded, heading, joined, paragraph, table
from common.wording import many

_MOST_PAIRS = 60
_MOST_SUMS = 60
_UNFOLDED = 12  # lines of a list that is shown without a click


def usable_pairs(diagnostics: Diagnostics, groups: Sequence[PairGroup]) -> list[Section]:
    """Show pairs by what is told of them, and how far the rows are from every released sum."""
    if len(diagnostics.names) < 2:
        return []
    parts = [
        paragraph(
            "An estimate from several attributes is only as good as the counts behind it. "
            "`parley estimate` gives intervals, and flags what no count is behind."
        )
    ]
    for group in groups:
        parts.append(heading(f"{group.name.capitalize()}: {many(len(group.pairs), 'pair')}"))
        parts.append(paragraph(group.meaning))
        if group.pairs:
            listed = list(group.pairs.items())[:_MOST_PAIRS]
            lines = [[" and ".join(described.names), group.why(pair)] for pair, described in listed]
            parts.append(_folded_if_long("the pairs", ["pair", "why"], lines))
        if len(group.pairs) > _MOST_PAIRS:
            parts.append(paragraph("`parley describe --pairs` lists the others."))
    parts.append(
        paragraph(
            f"{diagnostics.triples:,} of {many(diagnostics.all_triples, 'triple')} of attributes "
            "were counted together; the others follow from the model."
        )
    )
    return [Section("What may be used together", joined([*parts, *_residuals(diagnostics)]))]


def _residuals(diagnostics: Diagnostics) -> list[Markup]:
    compared = [measured for measured in diagnostics.measured if measured.spread is not None]
    if not compared:
        return []
    worst = sorted(compared, key=lambda measured: -(measured.spread or 0.0))[:_MOST_SUMS]
    lines = [
        [
            f"{measured.name}: {', '.join(diagnostics.names[a] for a in measured.attributes)}",
            f"{measured.spread:.2f}",
            "yes" if measured.follows() else "no",
        ]
        for measured in worst
    ]
    words = (
        "A residual is the distance of the synthetic rows from a released sum, in units of its "
        "noise: about 1 or less where the model follows the sum. The largest come first."
    )
    shown = _folded_if_long("the sums", ["sum", "residual", "follows"], lines)
    return [heading("Residuals of the released sums"), paragraph(words), shown]


def _folded_if_long(what: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> Markup:
    rendered = table(headings, lines)
    return rendered if len(lines) <= _UNFOLDED else folded(rendered, summary=f"Show {what}")
