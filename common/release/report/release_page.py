"""report.html: a release explained to whoever receives it.

Everything on the page comes from what was released (noisy tables, synthetic rows, the privacy
statement), so the page is as public as the release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from common.marginals import count
from common.privacy.statement import suspicion
from common.release.report.charts import Series, heatmap
from common.release.report.distributions import distribution
from common.release.report.network_picture import draw_network
from common.release.report.page import (
    Section,
    aside,
    bullets,
    described,
    figure,
    grid,
    page,
    paragraph,
    table,
    warning,
)
from common.release.report.relations import Relations, relations
from common.release.report.released import MarginalError, NetworkDrawing, Shares, caution
from common.schema import Codes, Schema
from common.schema.formulas import formula_warning
from common.wording import many

_MOST_ERRORS = 60
_MOST_EDGES = 12
_LARGE_EPSILON = 10


@dataclass(frozen=True, kw_only=True)
class ReleaseFacts:
    """What the page tells.

    Attributes:
        schema: the public domains.
        synthetic: the synthetic rows, encoded; the first of them where they are very many.
        synthetic_rows: how many there are; those in `synthetic` if None.
        rows: how many real rows there are, all parties together; public.
        privacy: the privacy statement, as in privacy.json.
        network: None for a method without one.
        shares: the noisy distribution of every attribute, None where there is none.
        errors: the noise in each released table.
        made: how the release was made, as pairs of a word and its value.
        method_cautions: what the method itself says must be known first.
        more: further sections, for example the ledger and the traffic of a study.
    """

    schema: Schema
    synthetic: Codes
    rows: int
    privacy: Mapping[str, Any]
    network: NetworkDrawing | None
    shares: Sequence[Shares | None]
    errors: Sequence[MarginalError]
    made: Sequence[tuple[str, object]]
    more: Sequence[Section] = field(default_factory=tuple)
    synthetic_rows: int | None = None
    method_cautions: Sequence[str] = ()

    @cached_property
    def relations(self) -> Relations:
        """Which attributes depend on each other in the synthetic rows."""
        return relations(self.schema.names, self.synthetic)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What whoever uses the release must know first."""
        found = (
            caution(self.errors),
            self.relations.caution() if self.synthetic.rows else None,
            formula_warning(self.schema),
            *self.method_cautions,
        )
        return tuple(words for words in found if words is not None)


def release_page(facts: ReleaseFacts) -> str:
    """The whole page."""
    made_up = facts.synthetic.rows if facts.synthetic_rows is None else facts.synthetic_rows
    lead = (
        f"{many(made_up, 'made-up row')} with {many(len(facts.schema.names), 'attribute')}, "
        f"learnt from {many(facts.rows, 'real row')} with an epsilon of "
        f"{facts.privacy['epsilon_delivered']:g}"
    )
    sections = [
        Section("What this is", _introduction(facts)),
        Section("Privacy", _privacy(facts.privacy)),
    ]
    if facts.network is not None:
        sections.append(Section("The network", _network(facts.network)))
    sections += [
        Section("One attribute at a time", _distributions(facts)),
        Section("Pairs of attributes", _dependence(facts)),
        Section("Expected error", _errors(facts.errors)),
        *facts.more,
        Section("How it was made", _made(facts)),
    ]
    return page("A synthetic table", lead, sections)


def _introduction(facts: ReleaseFacts) -> str:
    return (
        "".join(warning(words) for words in facts.cautions)
        + paragraph(
            "The rows of this release are made up. They were drawn from a model that learnt the "
            "statistics of a real table through noise, so that counts, distributions and relations "
            "between attributes are close to the real ones where those stand out of the noise, "
            "while no row was copied from a real person."
        )
        + paragraph(
            "Use it to explore, to teach, to test software and to prepare analyses. Small groups "
            "and rare combinations are the least reliable: the section on expected error says how "
            "large a count must be to stand out of the noise."
        )
    )


def _privacy(privacy: Mapping[str, Any]) -> str:
    parts = []
    if not privacy["private"]:
        reasons = "; ".join(privacy["not_private_because"])
        parts.append(warning(f"NOT PRIVATE: {reasons}. The numbers below protect nobody."))
    epsilon = privacy["epsilon_delivered"]
    if epsilon > _LARGE_EPSILON:
        parts.append(
            warning(
                f"An epsilon of {epsilon:g} promises next to nothing about one row. Values up to "
                "a few are usual; an auditor will ask why this one was chosen."
            )
        )
    parts.append(
        paragraph(
            f"The guarantee is differential privacy with epsilon = {epsilon:g} "
            f"({privacy['epsilon_requested']:g} was asked for) and delta = {privacy['delta']:g}. "
            f"What is protected is {privacy['unit_of_privacy']}: whatever anybody concludes from "
            f"this release would have been at most {_factor(epsilon)} times as likely, or as "
            f"unlikely, had any one row been another; {suspicion(epsilon)}."
        )
    )
    parts.append(paragraph(f"Exactly: {privacy['neighbours']}."))
    against = [
        [
            a["against"],
            "not protected" if a["epsilon"] is None else f"{a['epsilon']:g}",
            a["assumes"],
        ]
        for a in privacy["adversaries"]
    ]
    parts.append(table(["against", "epsilon", "assuming that"], against))
    parts.append("<h3>What is not promised</h3>" + bullets(privacy["not_promised"]))
    parts.append(_ledger(privacy))
    parts += [paragraph(note) for note in privacy["notes"]]
    return "".join(parts)


def _factor(epsilon: float) -> str:
    factor = float(np.exp(min(epsilon, 700.0)))
    return f"{factor:.2f}" if factor < 100 else f"{factor:.3g}"


def _ledger(privacy: Mapping[str, Any]) -> str:
    steps = privacy["steps"]
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for step in steps:  # many choices of one kind make one line
        grouped.setdefault((step["step"].split(":")[0], step["mechanism"]), []).append(step)
    lines = []
    for (name, mechanism), group in grouped.items():
        words = group[0]["step"] if len(group) == 1 else f"{name}: {len(group)} releases"
        lines.append([words, mechanism, float(sum(step["epsilon"] for step in group))])
    paid = [[party, float(cost)] for party, cost in privacy["parties"].items()]
    return (
        "<h3>What the budget was spent on</h3>"
        + table(["step", "mechanism", "epsilon"], lines)
        + "<h3>What the rows of each party paid</h3>"
        + table(["party", "epsilon"], paid)
    )


def _network(drawing: NetworkDrawing) -> str:
    picture = draw_network(drawing.names, drawing.edges, drawing.strengths, drawing.notes)
    strongest = sorted(drawing.edges, key=lambda edge: -drawing.strengths[edge])[:_MOST_EDGES]
    lines = [[f"{a} → {b}", drawing.notes.get((a, b), "")] for a, b in strongest]
    if not lines:
        return figure(picture, drawing.without_edges)
    return (
        figure(picture, drawing.caption)
        + "<h3>The strongest edges</h3>"
        + table(["edge", "mutual information"], lines)
    )


def _distributions(facts: ReleaseFacts) -> str:
    positions = range(facts.synthetic.width)
    counted = count(facts.synthetic, [[position] for position in positions])
    charts = []
    for attribute, noisy, synthetic in zip(
        facts.schema.attributes, facts.shares, counted, strict=True
    ):
        drawn = synthetic / max(1, facts.synthetic.rows)
        series = [Series("noisy", noisy.tolist())] if noisy is not None else []
        series.append(Series("synthetic", drawn.tolist()))
        charts.append(distribution(attribute, series))
    return (
        paragraph(
            f"“Noisy” is what was released of the real rows; “synthetic” is {_shown(facts)}. "
            "Where the noisy share of a value is below zero no bar is drawn."
        )
        + aside("Hover over a bar for its value.")
        + grid(charts)
    )  # fmt: skip


def _shown(facts: ReleaseFacts) -> str:
    """Which of the synthetic rows the pictures are about."""
    if facts.synthetic_rows is None or facts.synthetic_rows == facts.synthetic.rows:
        return "the table of this release"
    return f"the first {facts.synthetic.rows:,} rows of this release"


def _dependence(facts: ReleaseFacts) -> str:
    if facts.synthetic.rows == 0 or facts.synthetic.width < 2:
        return paragraph("There are no pairs to show.")
    found = facts.relations
    words = "Dependence of every pair of attributes"
    picture = heatmap(words, facts.schema.names, found.strength, 1.0)
    return figure(
        picture,
        "Cramér's V in the synthetic rows: 0 for independent attributes, 1 where one "
        f"determines the other. {found.standing_out:,} of {found.pairs:,} pairs stand out of what "
        "chance makes of independent attributes; the others are shown as 0. Noise makes "
        "dependence, too.",
    ) + aside("Hover over a cell for its value.")


def _errors(errors: Sequence[MarginalError]) -> str:
    if not errors:
        return paragraph("The noise in the answers of this method is not known exactly.")
    tables = sorted((e for e in errors if e.distance is not None), key=_noisiest)
    others = [e for e in errors if e.distance is None]
    shown = tables[:_MOST_ERRORS]
    words = (
        "Noise of this size was added to the released tables. The distance is half the sum of the "
        "absolute differences of shares that noise alone is expected to cause, before tables are "
        "made to agree, which reduces it."
    )
    telling = [error.deviation for error in tables if error.telling]
    if telling:
        words += (
            f" A count of one attribute's values well above {2 * max(telling):,.0f} rows stands "
            "out of the noise."
        )
    rows = [[e.attributes, e.cells, e.deviation, e.distance] for e in shown]
    rows += [[f"{e.attributes} (no table)", e.cells, e.deviation, "-"] for e in others]
    headings = ["table", "cells", "deviation (rows)", "expected distance"]
    stars = any("*" in error.attributes for error in shown)
    note = paragraph("* the attribute is counted in groups of its values") if stars else ""
    left = len(tables) - len(shown)
    more = paragraph(f"{left} further tables have a smaller distance.") if left else ""
    return paragraph(words) + table(headings, rows) + note + more


def _noisiest(error: MarginalError) -> float:
    return -(error.distance or 0.0)


def _made(facts: ReleaseFacts) -> str:
    versions = ", ".join(f"{name} {v}" for name, v in facts.privacy["versions"].items())
    lines = [*facts.made, ("sampler", facts.privacy["sampler"]), ("versions", versions)]
    return described(lines)
