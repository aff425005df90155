"""The page behind `parley evaluate --html`."""

from __future__ import annotations

from collections.abc import Sequence

from common.analysis.distances import KINDS, MEANING, Distances, LinkedDistances
from common.analysis.evaluation import Evaluation, far_off
from common.report.charts import Series, bar_rows, distribution, heatmap
from common.report.page import (
    Markup,
    Section,
    card,
    cards,
    grid,
    heading,
    joined,
    page,
    paragraph,
    table,
    titled,
    warning,
)

_ORDERS = {1: "Single columns", 2: "Pairs of columns", 3: "Three columns together"}
# What a statistician would say of an average distance.
_VERDICTS = (
    (0.02, "Very close"),
    (0.05, "Close"),
    (0.1, "Fair: good for large groups only"),
    (1.0, "Poor: good for exploring and testing software only"),
)
_PRIVATE = (
    "NOT FOR PUBLICATION. These figures were computed from the real rows without noise. They are "
    "for the owner of the rows and are not covered by the release's privacy guarantee. Keep this "
    "page apart from the release."
)
_DEPENDENCE = (
    "Cramér's V of every pair: 0 for independent columns, 1 where one determines the other."
)


def evaluation_page(evaluation: Evaluation) -> str:
    """Show real and synthetic rows side by side, for the owner of the real rows."""
    maps = (
        ("real", evaluation.dependence_real, False),
        ("synthetic", evaluation.dependence_synthetic, False),
        (
            "synthetic minus real",
            evaluation.dependence_synthetic - evaluation.dependence_real,
            True,
        ),
    )
    heat = [
        titled(heatmap(f"Dependence: {name}", evaluation.names, values, signed=signed), title=name)
        for name, values, signed in maps
    ]
    bars = [
        distribution(
            attribute, [Series("real", real.tolist()), Series("synthetic", synthetic.tolist())]
        )
        for attribute, real, synthetic in zip(
            evaluation.schema.attributes,
            evaluation.shares_real,
            evaluation.shares_synthetic,
            strict=True,
        )
    ]
    sections = [
        Section(
            "Distances of counts",
            joined([paragraph(MEANING), _distances(evaluation)]),
        ),
        *_events(evaluation.linked),
        Section("One column at a time", grid(bars)),
        Section("Numbers", _numbers(evaluation)),
        Section("Pairs of columns", joined([paragraph(_DEPENDENCE), grid(heat)])),
        Section(
            "Misclassification on held-out real rows",
            table(
                ["target", "trained on synthetic", "trained on real", "majority"],
                [
                    [c.target, c.trained_on_synthetic, c.trained_on_real, c.majority]
                    for c in evaluation.classifications
                ],
            ),
        ),
    ]
    summary = [warning(_PRIVATE), cards([_card(distances) for distances in evaluation.distances])]
    return page("How close is the synthetic table?", evaluation.sizes, sections, summary=summary)


def _card(distances: Distances) -> Markup:
    """Show the distance of the marginals of one order, with a verdict."""
    verdict = next(words for most, words in _VERDICTS if distances.average <= most)
    return card(
        _ORDERS[distances.order],
        f"{verdict}. Worst: {', '.join(distances.worst_attributes)}, {distances.worst:.1%}.",
        figure=f"off by {distances.average:.1%}",
    )


def _distances(evaluation: Evaluation) -> Markup:
    return _table("order", [(d.order, d) for d in evaluation.distances])


def _table(first: str, lines: Sequence[tuple[object, Distances]]) -> Markup:
    headings = [first, "average distance", "worst", "worst attributes", "compared", "of"]
    return table(
        headings,
        [
            [what, d.average, d.worst, ", ".join(d.worst_attributes), d.compared, d.existing]
            for what, d in lines
        ],
    )


def _events(linked: LinkedDistances | None) -> list[Section]:
    """Return the section about people's events; none for a single table."""
    if linked is None:
        return []
    name = linked.name
    words = (
        f"{linked.events_synthetic:,} synthetic {name} against {linked.events_real:,} real ones "
        "that count. Distances of pairs of columns:"
    )
    kinds = [(f"{kind}: {KINDS[kind]}", distances) for kind, distances in linked.kinds.items()]
    parts = [paragraph(words), _table("kind", kinds)]
    if linked.left_out:
        parts.append(paragraph(f"Nothing to compare: {', '.join(linked.left_out)}."))
    title = f"Number of {name} of a person"
    series = [
        Series("real", linked.numbers_real.tolist()),
        Series("synthetic", linked.numbers_synthetic.tolist()),
    ]
    bars = bar_rows(title, [str(n) for n in range(len(linked.numbers_real))], series)
    parts += [heading(title), bars]
    return [Section(f"People and their {name}", joined(parts))]


def _numbers(evaluation: Evaluation) -> Markup:
    if not evaluation.numbers:
        return paragraph("There are no columns of numbers to compare.")
    words = (
        "Within a bin numbers are drawn uniformly, so means and medians can be wrong even where "
        "the distances above are small. “By bins” is the real mean with every number drawn "
        "uniformly from its bin."
    )
    headings = ["column", "mean, real", "by bins", "synthetic", "median, real", "synthetic"]
    lines = [
        [n.name, n.real.mean, n.binned_mean, n.synthetic.mean, n.real.median, n.synthetic.median]
        for n in evaluation.numbers
    ]
    warnings = [warning(column.words()) for column in far_off(evaluation.numbers)]
    return joined([*warnings, paragraph(words), table(headings, lines)])
