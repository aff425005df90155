"""Which pairs of attributes a reader may use: a section of report.html."""

from __future__ import annotations

from common.release.diagnostics import Diagnostics, Verdict
from common.release.report.page import Section, folded, paragraph, table
from common.wording import many

_MOST_PAIRS = 60
_MOST_SUMS = 60
_UNFOLDED = 12  # lines of a list that is shown without a click
_MEANING = {
    Verdict.SAFE: "A released sum tells the pair's table, in all values or at least eight groups "
    "of each column, and the rows follow it. Conditions on values within a group follow from "
    "the model.",
    Verdict.CARE: "The pair is counted in few groups, or under much noise, or the rows do not "
    "follow its table or show no relation. What the rows show of it may be wrong.",
    Verdict.ABSENT: "The pair was never counted together. What the rows show of it follows from "
    "other pairs, or from nothing.",
}


def usable_pairs(found: Diagnostics) -> list[Section]:
    """Pairs by verdict, and how far the rows are from every released sum."""
    if len(found.names) < 2:
        return []
    parts = [
        paragraph(
            "An estimate from several attributes is as good as what was measured of them. "
            "`parley estimate` gives intervals, and flags what is not safe."
        )
    ]
    for verdict in Verdict:
        pairs = found.listed(verdict)
        parts.append(f"<h3>{verdict.capitalize()}: {many(len(pairs), 'pair')}</h3>")
        parts.append(paragraph(_MEANING[verdict]))
        if pairs and verdict is not Verdict.ABSENT:
            lines = [[" and ".join(each.names), each.reason] for each in pairs[:_MOST_PAIRS]]
            parts.append(_shown("the pairs", table(["pair", "why"], lines), len(lines)))
        elif pairs:
            named = "; ".join(" and ".join(each.names) for each in pairs[:_MOST_PAIRS])
            parts.append(paragraph(named))
        if len(pairs) > _MOST_PAIRS:
            parts.append(paragraph("`parley describe` lists the others."))
    parts.append(
        paragraph(
            f"Of {many(found.all_triples, 'triple')} of attributes, {found.triples:,} were counted "
            "together; others follow from the model."
        )
    )
    return [Section("What may be used together", "".join(parts) + _sums(found))]


def _sums(found: Diagnostics) -> str:
    compared = [each for each in found.measured if each.spread is not None]
    if not compared:
        return ""
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
        "How far the synthetic rows are from every released sum, in units of its noise: about 1 or "
        "less where the model follows. The largest come first."
    )
    heading = "<h3>Residuals of the released sums</h3>"
    shown = table(["sum", "residual", "follows"], lines)
    return heading + paragraph(words) + _shown("the sums", shown, len(lines))


def _shown(what: str, html: str, lines: int) -> str:
    """A list; a long one is shown on a click."""
    return html if lines <= _UNFOLDED else folded(f"Show {what}", html)
