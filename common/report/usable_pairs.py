"""The section of the report on what may be used together: pairs of columns by verdict."""

from __future__ import annotations

from collections.abc import Sequence

from common.analysis.diagnostics import Diagnostics, PairVerdict
from common.report.page import Markup, Section, folded, heading, joined, paragraph, table
from common.wording import many

_MOST_PAIRS = 60
_MOST_SUMS = 60
_UNFOLDED = 12  # lines of a list that is shown without a click
_MEANING = {
    PairVerdict.SAFE: "A released sum contains the pair's table, by all values or by at least "
    "eight groups of each column, and the rows follow it. Proportions of values within a group "
    "follow from the model.",
    PairVerdict.CARE: "The pair was counted in few groups or with much noise, or the rows do not "
    "follow its table, or they show no relation. The relation in the rows may be wrong.",
    PairVerdict.ABSENT: "The two columns were never counted together. Their relation in the rows "
    "follows from other pairs, or from nothing.",
}


def usable_pairs(found: Diagnostics) -> list[Section]:
    """Show pairs by verdict, and how far the rows are from every released sum."""
    if len(found.names) < 2:
        return []
    parts = [
        paragraph(
            "An estimate from several attributes is only as good as the counts behind it. "
            "`parley estimate` gives intervals, and flags estimates that are not safe."
        )
    ]
    for verdict in PairVerdict:
        pairs = found.listed(verdict)
        parts.append(heading(f"{verdict.capitalize()}: {many(len(pairs), 'pair')}"))
        parts.append(paragraph(_MEANING[verdict]))
        if pairs and verdict is not PairVerdict.ABSENT:
            lines = [[" and ".join(each.names), each.reason] for each in pairs[:_MOST_PAIRS]]
            parts.append(_folded_if_long("the pairs", ["pair", "why"], lines))
        elif pairs:
            named = "; ".join(" and ".join(each.names) for each in pairs[:_MOST_PAIRS])
            parts.append(paragraph(named))
        if len(pairs) > _MOST_PAIRS:
            parts.append(paragraph("`parley describe` lists the others."))
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
