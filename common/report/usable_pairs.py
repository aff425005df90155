"""The section of the report on what may be used together: pairs of columns by verdict."""

from __future__ import annotations

from collections.abc import Sequence

from common.analysis.diagnostics import Diagnostics
from common.analysis.pair_groups import PairGroup
from common.report.page import Markup, Section, folded, heading, joined, paragraph, table
from common.wording import many

_MOST_PAIRS = 60
_MOST_SUMS = 60
_UNFOLDED = 12  # lines of a list that is shown without a click


def usable_pairs(found: Diagnostics, groups: Sequence[PairGroup]) -> list[Section]:
    """Show pairs by what is told of them, and how far the rows are from every released sum."""
    if len(found.names) < 2:
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
            lines = [[" and ".join(each.names), group.why(pair)] for pair, each in listed]
            parts.append(_folded_if_long("the pairs", ["pair", "why"], lines))
        if len(group.pairs) > _MOST_PAIRS:
            parts.append(paragraph("`parley describe --pairs` lists the others."))
    parts.append(
        paragraph(
            f"{found.triples:,} of {many(found.all_triples, 'triple')} of attributes were counted "
            "together; the others follow from the model."
        )
    )
    return [Section("What may be used together", joined([*parts, *_residuals(found)]))]


def _residuals(found: Diagnostics) -> list[Markup]:
    compared = [each for each in found.measured if each.spread is not None]
    if not compared:
        return []
    worst = sorted(compared, key=lambda each: -(each.spread or 0.0))[:_MOST_SUMS]
    lines = [
        [
            f"{each.name}: {', '.join(found.names[a] for a in each.attributes)}",
            f"{each.spread:.2f}",
            "yes" if each.follows() else "no",
        ]
        for each in worst
    ]
    words = (
        "A residual is the distance of the synthetic rows from a released sum, in units of its "
        "noise: about 1 or less where the model follows the sum. The largest come first."
    )
    shown = _folded_if_long("the sums", ["sum", "residual", "follows"], lines)
    return [heading("Residuals of the released sums"), paragraph(words), shown]


def _folded_if_long(what: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> Markup:
    made = table(headings, lines)
    return made if len(lines) <= _UNFOLDED else folded(made, summary=f"Show {what}")
