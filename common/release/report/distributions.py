"""The distribution of one attribute after the other, as bars side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from common.release.report.charts import Series, bar_chart
from common.release.report.page import titled
from common.schema.attribute import Attribute

_MOST_BARS = 40  # an attribute with more values is shown in this many groups of neighbours


def distribution(attribute: Attribute, series: Sequence[Series]) -> str:
    """A chart of one attribute's shares under its name."""
    labels, drawn = _grouped(attribute.labels, series)
    words = f"Distribution of {attribute.name}: {' and '.join(s.name for s in drawn)}"
    return titled(bar_chart(words, labels, drawn), attribute.name)


def _grouped(labels: Sequence[str], series: Sequence[Series]) -> tuple[list[str], list[Series]]:
    """Neighbouring values together where there are too many to draw."""
    if len(labels) <= _MOST_BARS:
        return list(labels), list(series)
    starts = np.linspace(0, len(labels), _MOST_BARS, endpoint=False).astype(int)
    merged = [Series(s.name, np.add.reduceat(s.values, starts).tolist()) for s in series]
    ends = [*starts[1:], len(labels)]
    names = [
        labels[a] if b - a == 1 else f"{labels[a]} … {labels[b - 1]}"
        for a, b in zip(starts, ends, strict=True)
    ]
    return names, merged
