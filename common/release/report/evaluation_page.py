"""The page behind `parley evaluate --html`."""

from __future__ import annotations

from common.release.evaluation import MEANING, Evaluation
from common.release.number_comparison import far_off
from common.release.report.charts import Series, distribution, heatmap
from common.release.report.page import (
    Section,
    card,
    cards,
    grid,
    page,
    paragraph,
    table,
    titled,
    warning,
)
from common.wording import many

_ORDERS = {1: "Single columns", 2: "Pairs of columns", 3: "Three columns together"}
# What a statistician would say of an average share of rows that would have to move.
_VERDICTS = (
    (0.02, "Very close"),
    (0.05, "Close"),
    (0.1, "Fair: good for large groups only"),
    (1.0, "Poor: good for exploring and testing software only"),
)


def evaluation_page(found: Evaluation) -> str:
    """Real and synthetic side by side: distances, distributions, dependence, classification."""
    maps = (
        ("real", found.dependence_real, False),
        ("synthetic", found.dependence_synthetic, False),
        ("synthetic minus real", found.dependence_synthetic - found.dependence_real, True),
    )
    heat = [
        titled(heatmap(f"Dependence: {name}", found.names, values, signed=signed), name)
        for name, values, signed in maps
    ]
    bars = [
        distribution(
            attribute, [Series("real", real.tolist()), Series("synthetic", synthetic.tolist())]
        )
        for attribute, real, synthetic in zip(
            found.schema.attributes, found.shares_real, found.shares_synthetic, strict=True
        )
    ]
    sections = [
        Section(
            "NOT FOR PUBLICATION",
            warning(
                "These figures were computed from the real rows without noise. They are for the "
                "owner of the rows and are not covered by the release's privacy guarantee. Keep "
                "this page apart from the release."
            ),
        ),
        Section(
            "Marginals",
            paragraph(MEANING)
            + table(
                ["order", "average distance", "worst", "worst attributes", "compared", "of"],
                [
                    [d.order, d.average, d.worst, ", ".join(d.worst_attributes), d.compared,
                     d.existing]
                    for d in found.distances
                ],
            ),
        ),
        Section("One attribute at a time", grid(bars)),
        Section("Numbers", _numbers(found)),
        Section("Pairwise dependence (Cramér's V)", grid(heat)),
        Section(
            "Misclassification on held-out real rows",
            table(
                ["target", "trained on synthetic", "trained on real", "majority"],
                [
                    [c.target, c.trained_on_synthetic, c.trained_on_real, c.majority]
                    for c in found.classifications
                ],
            ),
        ),
    ]  # fmt: skip
    lead = (
        f"{many(found.rows_synthetic, 'synthetic row')} against {many(found.rows_real, 'real row')}"
    )
    return page("How close is the synthetic table?", lead, sections, summary=_summary(found))


def _summary(found: Evaluation) -> str:
    """One box for each order of marginals, with a verdict."""
    return cards(
        [
            card(
                _ORDERS.get(one.order, f"{one.order} columns together"),
                f"off by {one.average:.1%}",
                f"{next(words for most, words in _VERDICTS if one.average <= most)}. "
                f"Worst: {', '.join(one.worst_attributes)}, "
                f"{one.worst:.1%}.",
            )
            for one in found.distances
        ]
    )


def _numbers(found: Evaluation) -> str:
    if not found.numbers:
        return paragraph("There are no columns of numbers to compare.")
    words = (
        "Within a bin numbers are drawn evenly, so these can be off where the distances above are "
        "not. “By bins” is the real mean with every number drawn evenly from its bin."
    )
    headings = ["column", "mean, real", "by bins", "synthetic", "median, real", "synthetic"]
    lines = [
        [n.name, n.real.mean, n.binned_mean, n.synthetic.mean, n.real.median, n.synthetic.median]
        for n in found.numbers
    ]
    first = "".join(warning(column.words()) for column in far_off(found.numbers))
    return first + paragraph(words) + table(headings, lines)
