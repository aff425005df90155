"""The page behind `parley evaluate --html`."""

from __future__ import annotations

from common.release.evaluation import MEANING, Evaluation
from common.release.number_comparison import far_off
from common.release.report.charts import Series, heatmap
from common.release.report.distributions import distribution
from common.release.report.page import Section, grid, page, paragraph, table, titled, warning
from common.wording import many


def evaluation_page(found: Evaluation) -> str:
    """Real and synthetic side by side: distances, distributions, dependence, classification."""
    top = max(float(found.dependence_real.max()), 0.01)
    heat = [
        titled(heatmap(f"Dependence in the {name} table", found.names, values, top), name)
        for name, values in (
            ("real", found.dependence_real),
            ("synthetic", found.dependence_synthetic),
        )
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
    return page("How close is the synthetic table?", lead, sections)


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
