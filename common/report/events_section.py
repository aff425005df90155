"""The events of a linked release on its report: how many, of whom, and what follows what."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from common.marginals import count
from common.report.charts import Series, bar_rows, distribution, heatmap
from common.report.page import Markup, Section, figure, grid, heading, joined, paragraph, titled
from common.schema import Codes, Schema
from common.schema.linked import LinkedCodes

_MOST_BARS = 16  # values of a column of people
_MOST_SIDE = 24  # values of a column of events, to show what follows each


def events_section(schema: Schema, synthetic: Codes) -> list[Section]:
    """Return the section about events; none for a release of a single table."""
    events = schema.events
    if events is None or not isinstance(synthetic, LinkedCodes) or not synthetic.rows:
        return []
    name, most = events.name, events.most
    words = paragraph(
        f"One promise holds for a person and all of her {name}; of a person, at most {most} count. "
        f"The release has {synthetic.events.rows:,} synthetic {name} of {synthetic.rows:,} people."
    )
    parts = [words, heading(f"How many {name} a person has"), _numbers(name, synthetic)]
    parts += [heading(f"Mean number of {name}, by columns of people")]
    parts.append(grid(_by_people(schema, synthetic)))
    parts += [heading(f"Columns of {name}"), grid(_columns(schema.of_events, synthetic.events))]
    following = _following(schema.of_events, synthetic)
    if following:
        parts += [heading("What comes next"), *following]
    return [Section(name.capitalize(), joined(parts))]


def _numbers(name: str, linked: LinkedCodes) -> Markup:
    shares = np.bincount(linked.numbers, minlength=linked.most + 1) / linked.rows
    labels = [str(number) for number in range(linked.most + 1)]
    return bar_rows(f"Number of {name}", labels, [Series("synthetic", shares.tolist())])


def _by_people(schema: Schema, linked: LinkedCodes) -> list[Markup]:
    """Draw the mean number of events of each value of a column of people."""
    charts = []
    for attribute, codes in zip(schema.attributes, linked.columns, strict=True):
        people = np.bincount(codes, minlength=attribute.size)
        total = np.bincount(codes, weights=linked.numbers, minlength=attribute.size)
        shown = np.flatnonzero(people)[:_MOST_BARS]
        means = (total[shown] / people[shown]).tolist()
        labels = [attribute.labels[code] for code in shown]
        bars = bar_rows(f"Mean number by {attribute.name}", labels, [Series("mean", means)])
        charts.append(titled(bars, title=attribute.name))
    return charts


def _columns(schema: Schema, events: Codes) -> list[Markup]:
    counted = count(events, [[place] for place in range(events.width)])
    return [
        distribution(attribute, [Series("synthetic", (counts / max(1, events.rows)).tolist())])
        for attribute, counts in zip(schema.attributes, counted, strict=True)
    ]


def _following(schema: Schema, linked: LinkedCodes) -> list[Markup]:
    """Draw, for every column of events, how its values follow each other."""
    pairs, _ = linked.consecutive
    width = len(schema.attributes)
    small = [a for a, attribute in enumerate(schema.attributes) if 1 < attribute.size <= _MOST_SIDE]
    if not small or not pairs.rows:
        return []
    tables = count(pairs, [(a, width + a) for a in small])
    return [
        figure(
            heatmap(
                f"{schema.names[a]} of the next event", schema.attributes[a].labels, _rows(counts)
            ),
            caption=f"{schema.names[a]}: of events with the value of a row, the proportion whose "
            "next one has the value of a column.",
        )
        for a, counts in zip(small, tables, strict=True)
    ]


def _rows(table: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), 1), dtype=np.float64)
