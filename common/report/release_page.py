"""report.html: a release explained to its readers.

Everything on the page comes from what was released (noisy tables, synthetic rows, the privacy
statement), so the page is as public as the release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from common.analysis.answers import Answer
from common.analysis.conclusions import Conclusions, PairGroup, pair_groups
from common.analysis.diagnostics import Diagnostics, Relations, noise_caution, relations
from common.analysis.means import Mean
from common.fitted.dependences import Dependences
from common.marginals import count
from common.privacy.statement import REHEARSAL, suspicion
from common.release.folder import verdict_words
from common.release.measured import ExpectedError, Shares
from common.release.spreadsheet import formula_warning
from common.report.charts import Series, distribution, heatmap
from common.report.estimates import answers_section, means_section
from common.report.events_section import events_section
from common.report.network_picture import network_svg
from common.report.page import (
    Markup,
    Section,
    bullets,
    card,
    cards,
    described,
    figure,
    folded,
    grid,
    heading,
    joined,
    page,
    paragraph,
    table,
    warning,
)
from common.report.usable_pairs import usable_pairs
from common.schema import Codes, Schema
from common.study.transcript import Phases
from common.wording import many, plural

_MOST_LINES = 30  # of a table; more are folded away
_MOST_EDGES = 12
_LARGE_EPSILON = 8
_REHEARSED = (
    "REHEARSAL: the owners' nodes answered about simulated rows. Nothing on this page is about a "
    "real row. Do not publish it."
)


@dataclass(frozen=True, kw_only=True)
class ReleaseFacts:
    """What the page tells."""

    schema: Schema  # the public domains
    synthetic: Codes  # the synthetic rows, encoded; the first of them where they are very many
    rows: int  # how many real rows there are, all parties together; public
    privacy: Mapping[str, Any]  # the privacy statement, as in privacy.json
    diagnostics: Diagnostics  # what was measured, and how well the rows follow
    synthetic_rows: int  # how many there are
    date: str  # when the release was made, as 2026-11-17
    # the noisy distribution of every attribute, None where there is none
    shares: Sequence[Shares | None]
    columns: Sequence[ExpectedError]  # what noise does to each column, as far as it is known
    method_facts: Sequence[tuple[str, object]]  # how it was made: words and their values
    pairs: Sequence[ExpectedError] = ()  # what noise does to each pair that was counted
    conclusions: Conclusions | None = None  # None where sums tell no intervals by themselves
    network: Dependences | None = None  # None for a method without a network
    means: Sequence[Mean] = ()  # of the columns of numbers, as far as their noise is known
    traffic: Phases = field(default_factory=dict)  # what was sent in each phase of a study
    method_cautions: Sequence[str] = ()  # what the method itself says must be known first
    title: str | None = None  # the study's name; None for a release of a single owner
    # what is said where independent columns are expected to be closer
    below_floor: str | None = None
    answers: Sequence[Answer] = ()  # what the study declared, answered
    has_rows: bool = True  # whether the release has synthetic rows

    @cached_property
    def relations(self) -> Relations:
        """Which attributes depend on each other in the synthetic rows."""
        return relations(self.schema.names, self.synthetic)

    @cached_property
    def pair_groups(self) -> Sequence[PairGroup]:
        """Every pair by what is told of it, the best group first."""
        return pair_groups(self.diagnostics, self.conclusions)

    @property
    def rehearsal(self) -> bool:
        return REHEARSAL in self.privacy["not_private_because"]

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what a user of the release must know first."""
        warnings = (
            _REHEARSED if self.rehearsal else None,
            self.below_floor,
            noise_caution(self.columns, self.schema.names),
            self.relations.caution() if self.synthetic.rows and self.has_rows else None,
            formula_warning(self.schema),
            *self.method_cautions,
        )
        return tuple(words for words in warnings if words is not None)


def release_page(facts: ReleaseFacts) -> str:
    sections = [
        *answers_section(facts.answers),
        Section("What this is", _introduction()),
        Section("Privacy", _privacy(facts.privacy)),
        Section("One column at a time", _distributions(facts)),
        *means_section(facts.means),
        *events_section(facts.schema, facts.synthetic),
        Section("Pairs of columns", _dependence(facts)),
        Section("Expected error", _errors(facts)),
    ]
    if facts.network is not None:
        sections.append(Section("The network", _network(facts.network)))
    sections += usable_pairs(facts.diagnostics, facts.pair_groups)
    sections += [*_criteria(facts.privacy), *_traffic(facts.traffic)]
    sections.append(Section("How it was made", _made(facts)))
    title = "A synthetic table" if facts.title is None else f"{facts.title}: a synthetic table"
    return page(title, _lead(facts), sections, summary=_summary(facts))


def answers_page(facts: ReleaseFacts) -> str:
    """Return the page of a release without synthetic rows: its analyses, answered."""
    words = (
        "This release answers the analyses that its study declared, and has no synthetic rows. It "
        "consists of noisy tables of the columns that the analyses name; no other column was "
        "counted. The estimates below follow from these tables alone."
    )
    sections = [
        *answers_section(facts.answers),
        Section("What this is", paragraph(words)),
        Section("Privacy", _privacy(facts.privacy)),
        Section("Expected error", _errors(facts)),
        *_traffic(facts.traffic),
        Section("How it was made", _made(facts)),
    ]
    title = "Answers" if facts.title is None else f"{facts.title}: answers"
    boxes = [
        card(
            "What it is",
            f"Estimates with intervals, from noisy counts of {facts.rows:,} real rows of "
            f"{many(len(facts.privacy['parties']), 'owner')}.",
            figure=f"{len(facts.answers):,} analyses, no synthetic rows",
        ),
        _privacy_card(facts.privacy),
    ]
    return page(
        title, _lead(facts), sections, summary=[*map(warning, facts.cautions), cards(boxes)]
    )


def _lead(facts: ReleaseFacts) -> str:
    owners = list(facts.privacy["parties"])
    whose = f"by {', '.join(owners)}" if facts.title is not None else "by one owner"
    return f"Published {whose}, {facts.date}"


def _summary(facts: ReleaseFacts) -> list[Markup]:
    """Say what a reader in a hurry must know: cautions, what it is, how private, how good."""
    boxes = [_size_card(facts), _privacy_card(facts.privacy), _columns_card(facts)]
    boxes += [_pairs_card(facts), _limits_card(facts)]
    return [*map(warning, facts.cautions), cards(boxes)]


def _size_card(facts: ReleaseFacts) -> Markup:
    row, owners = facts.schema.row, many(len(facts.privacy["parties"]), "owner")
    return card(
        "What it is",
        f"{many(len(facts.schema.names), 'column')}, learnt from noisy counts of "
        f"{many(facts.rows, f'real {row}')} of {owners}. No row was copied.",
        figure=many(facts.synthetic_rows, f"synthetic {row}"),
    )


def _privacy_card(privacy: Mapping[str, Any]) -> Markup:
    epsilon, delta = privacy["epsilon_delivered"], privacy["delta"]
    if not privacy["private"]:
        return card("Privacy", "; ".join(privacy["not_private_because"]), figure="NOT PRIVATE")
    sentence = suspicion(epsilon, delta, about=_protected(privacy))
    promise = f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")
    return card("Privacy", f"{sentence[0].upper()}{sentence[1:]}.", figure=promise)


def _protected(privacy: Mapping[str, Any]) -> str:
    return "person" if privacy["unit_of_privacy"].startswith("one person") else "row"


def _columns_card(facts: ReleaseFacts) -> Markup:
    if not facts.columns:
        words = "The distribution of the noise in this method's answers is not known."
        return card("Single columns", words, figure="not known")
    average = float(np.mean([error.distance for error in facts.columns]))
    worst = max(facts.columns, key=lambda error: error.distance)
    return card(
        "Single columns",
        "On average, noise gives this proportion of the rows a different value. Worst column: "
        f"{worst.named(facts.schema.names)}, {worst.distance:.1%}.",
        figure=f"off by {average:.1%}",
    )


def _pairs_card(facts: ReleaseFacts) -> Markup:
    if facts.synthetic.rows == 0 or facts.synthetic.width < 2:
        return card("Pairs of columns", "There are no pairs to show.", figure="none")
    relations, (best, *others) = facts.relations, facts.pair_groups
    rest = ", ".join(f"{len(group.pairs):,} {group.name}" for group in others if group.pairs)
    return card(
        "Pairs of columns",
        *([f"The others: {rest}."] if rest else []),
        f"The synthetic rows relate {many(relations.related, 'pair')}: the marks in the map of "
        "pairs say which to act on.",
        *([f"Related to nothing: {_named(relations.alone, facts)}."] if relations.alone else []),
        figure=f"{len(best.pairs):,} of {relations.pairs:,} {best.name}",
    )


def _named(columns: Sequence[str], facts: ReleaseFacts) -> str:
    return "every column" if len(columns) == facts.synthetic.width else ", ".join(columns)


def _limits_card(facts: ReleaseFacts) -> Markup:
    sentences = ["Ordinary standard errors are too small: use `parley estimate`."]
    if facts.columns:
        least, rows = 2 * max(error.deviation for error in facts.columns), plural(facts.schema.row)
        sentences.insert(0, f"Groups of fewer than {least:,.0f} {rows} are mostly noise.")
    if facts.synthetic.rows and facts.relations.alone:
        sentences.append("The release holds no relations of columns that are related to nothing.")
    return card("Do not use it for", *sentences, figure="small groups")


def _introduction() -> Markup:
    first = paragraph(
        "The rows of this release are synthetic: they were drawn from a model, and no row was "
        "copied from a real person. The model was fitted to noisy counts of a real table. Counts, "
        "distributions and relations between columns are close to the real ones where the real "
        "ones are larger than the noise."
    )
    second = paragraph(
        "Use the table to explore, to teach, to test software and to prepare analyses. Small "
        "groups and rare combinations are the least reliable: the section on expected error says "
        "how large a count must be to be more than noise."
    )
    return joined([first, second])


def _privacy(privacy: Mapping[str, Any]) -> Markup:
    parts = []
    if not privacy["private"]:
        reasons = "; ".join(privacy["not_private_because"])
        parts.append(warning(f"NOT PRIVATE: {reasons}. The numbers below protect no row."))
    epsilon, about = privacy["epsilon_delivered"], _protected(privacy)
    if epsilon > _LARGE_EPSILON:
        parts.append(
            warning(
                f"An epsilon of {epsilon:g} promises next to nothing about one {about}. Values "
                "up to a few are usual; an auditor will ask why this one was chosen."
            )
        )
    parts.append(
        paragraph(
            f"The guarantee is differential privacy with epsilon = {epsilon:g} "
            f"({privacy['epsilon_requested']:g} was asked for) and delta = {privacy['delta']:g}. "
            f"It protects {privacy['unit_of_privacy']}: if any one {about} were another, a "
            f"conclusion that a reader draws from this release would be at most {_factor(epsilon)} "
            f"times as likely, or as unlikely; {suspicion(epsilon, privacy['delta'], about=about)}."
        )
    )
    if privacy["delta"]:
        parts.append(paragraph(privacy["what_delta_means"]))
        curve = [[f"{point['delta']:g}", point["epsilon"]] for point in privacy["epsilon_by_delta"]]
        parts.append(table(["delta", "epsilon that holds"], curve))
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
    parts += [heading("What is not promised"), bullets(privacy["not_promised"])]
    parts += [_ledger(privacy), *map(paragraph, privacy["notes"])]
    return joined(parts)


def _factor(epsilon: float) -> str:
    factor = float(np.exp(min(epsilon, 700.0)))
    return f"{factor:.2f}" if factor < 100 else f"{factor:.3g}"


def _ledger(privacy: Mapping[str, Any]) -> Markup:
    steps = privacy["steps"]
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for step in steps:  # many choices of one kind make one line
        grouped.setdefault((step["step"].split(":")[0], step["mechanism"]), []).append(step)
    lines = []
    for (name, mechanism), group in grouped.items():
        words = group[0]["step"] if len(group) == 1 else f"{name}: {many(len(group), 'answer')}"
        lines.append([words, mechanism, float(sum(step[privacy["currency"]] for step in group))])
    paid = [[party, float(cost)] for party, cost in privacy["parties"].items()]
    return joined(
        [
            heading("What the budget was spent on"),
            table(["step", "mechanism", privacy["currency"]], lines),
            heading("What the rows of each party paid"),
            table(["party", "epsilon"], paid),
        ]
    )


def _network(drawing: Dependences) -> Markup:
    strongest = sorted(drawing.strengths, key=lambda edge: -drawing.strengths[edge])[:_MOST_EDGES]
    lines = [[drawing.edge_words(edge), drawing.notes.get(edge, "")] for edge in strongest]
    if not lines:
        return figure(network_svg(drawing), caption=drawing.without_edges)
    picture = figure(network_svg(drawing), caption=drawing.caption)
    strongest_edges = table(["edge", "mutual information"], lines)
    return joined([picture, heading("The strongest edges"), strongest_edges])


def _distributions(facts: ReleaseFacts) -> Markup:
    positions = range(facts.synthetic.width)
    counted = count(facts.synthetic, [[position] for position in positions])
    noise = {error.attributes[0]: error.deviation / facts.rows for error in facts.columns}
    charts = []
    for place, (attribute, synthetic) in enumerate(
        zip(facts.schema.attributes, counted, strict=True)
    ):
        drawn = Series("synthetic", (synthetic / max(1, facts.synthetic.rows)).tolist())
        known = facts.shares[place] is not None and place in noise
        charts.append(
            distribution(
                attribute,
                [drawn],
                noisy=facts.shares[place] if known else None,
                deviation=noise.get(place, 0.0),
            )
        )
    words = paragraph(
        f"Bars and numbers are proportions of the rows in {_shown(facts)}. The line across a bar "
        "is a 95 % interval for the real proportion: the released count, plus or minus its noise. "
        "A column with many values is shown in groups of values. Where bins differ in width, a bar "
        "is as long as its proportion divided by its width, so that no wide bin looks like a peak."
    )
    return joined([words, grid(charts)])


def _shown(facts: ReleaseFacts) -> str:
    """Say which of the synthetic rows the pictures are about."""
    if facts.synthetic_rows == facts.synthetic.rows:
        return "the table of this release"
    return f"the first {facts.synthetic.rows:,} rows of this release"


def _dependence(facts: ReleaseFacts) -> Markup:
    if facts.synthetic.rows == 0 or facts.synthetic.width < 2:
        return paragraph("There are no pairs to show.")
    relations = facts.relations
    words = "Dependence of every pair of columns, and how well it is told"
    groups = facts.pair_groups
    lights = {pair: place for place, group in enumerate(groups) for pair in group.pairs}
    named = [f"{group.name} ({many(len(group.pairs), 'pair')})" for group in groups]
    picture = figure(
        heatmap(words, facts.schema.names, relations.strength, lights=lights, legend=named),
        caption="Cramér's V in the synthetic rows: 0 for independent columns, 1 where one "
        f"determines the other. {relations.related:,} of {relations.pairs:,} pairs are "
        "significantly dependent; the others are shown as 0. Noise, too, can make columns "
        "dependent. The marks say what is told of a pair, related or not.",
    )
    names, strength = facts.schema.names, relations.strength
    pairs = [(i, j) for i in range(len(names)) for j in range(i) if strength[i, j] > 0]
    pairs.sort(key=lambda pair: -float(strength[pair]))
    lines = [[f"{names[i]} and {names[j]}", float(strength[i, j])] for i, j in pairs]
    if not lines:
        return picture
    summary = f"{many(len(lines), 'related pair')} as a table"
    return joined([picture, folded(table(["pair", "Cramér's V"], lines), summary=summary)])


def _errors(facts: ReleaseFacts) -> Markup:
    if not facts.columns:
        return paragraph("The noise in the answers of this method is not known exactly.")
    least = 2 * max(error.deviation for error in facts.columns)
    words = (
        "This is the error that noise alone adds to the counts of a column or a pair, in the most "
        "informative table that has them. The expected distance is the proportion of rows that "
        "would have to change. The model is fitted to all tables together, which makes the error "
        "a little smaller; what the model cannot represent makes it larger. A count well above "
        f"{least:,.0f} rows is more than noise."
    )
    parts = [paragraph(words), _error_table("column", facts.columns, facts.schema.names)]
    if facts.pairs:
        parts.append(_error_table("pair", facts.pairs, facts.schema.names))
    return joined(parts)


def _error_table(kind: str, errors: Sequence[ExpectedError], names: Sequence[str]) -> Markup:
    """List the errors, worst first; a long table is folded away."""
    worst = sorted(errors, key=lambda error: -error.distance)
    lines = [
        [
            e.named(names) + (" (in groups of values)" if e.grouped else ""),
            e.cells,
            e.deviation,
            e.distance,
        ]
        for e in worst
    ]
    headings = [kind, "cells", "standard deviation of a count (rows)", "expected distance"]
    rendered, summary = table(headings, lines), f"{len(lines):,} {kind}s counted"
    return rendered if len(lines) <= _MOST_LINES else folded(rendered, summary=summary)


def _criteria(privacy: Mapping[str, Any]) -> list[Section]:
    """Show which criteria the model meets, if the study named any."""
    if not privacy["criteria"]:
        return []
    words = (
        "The owners agreed on these criteria beforehand. Each was measured in their rows, with "
        "noise, after the model was fitted. All verdicts together are right with a probability of "
        "95 %."
    )
    lines = [list(verdict_words(verdict)) for verdict in privacy["criteria"]]
    shown = table(["criterion", "", "measured"], lines)
    return [Section("Criteria", joined([paragraph(words), shown]))]


def _traffic(phases: Phases) -> list[Section]:
    """Show what the phases of a study took, if there was one."""
    if not phases:
        return []
    lines = [
        [phase, traffic.rounds, sum(traffic.sent.values()), sum(traffic.received.values())]
        for phase, traffic in phases.items()
    ]
    headings = ["phase", "rounds", "bytes from the parties", "bytes to the parties"]
    return [Section("Communication", table(headings, lines))]


def _made(facts: ReleaseFacts) -> Markup:
    versions = ", ".join(f"{name} {v}" for name, v in facts.privacy["versions"].items())
    lines = [*facts.method_facts, ("sampler", facts.privacy["sampler"]), ("versions", versions)]
    return described(lines)
