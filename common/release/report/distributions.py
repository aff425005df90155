"""The distribution of one attribute after the other, as rows of bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.release.report.charts import Interval, Series, bar_rows
from common.release.report.page import titled
from common.schema.attribute import Attribute

_MOST_ROWS = 16  # an attribute with more values is shown in so many groups, or by its largest ones
_TWO_SIDED_95 = 1.96


def distribution(
    attribute: Attribute,
    series: Sequence[Series],
    *,
    noisy: NDArray[np.float64] | None = None,
    deviation: float = 0.0,
) -> str:
    """A chart of one attribute's shares, with intervals around released noisy ones."""
    groups = _groups(attribute, np.asarray(series[-1].values))
    labels = [label for label, _ in groups]
    drawn = [
        Series(one.name, [float(np.asarray(one.values)[own].sum()) for _, own in groups])
        for one in series
    ]
    intervals = None if noisy is None else [_interval(noisy, own, deviation) for _, own in groups]
    words = f"Distribution of {attribute.name}"
    return titled(bar_rows(words, labels, drawn, intervals), attribute.name)


def _interval(noisy: NDArray[np.float64], own: NDArray[np.intp], deviation: float) -> Interval:
    """Where the true share of some values is expected, 19 times of 20."""
    middle = float(noisy[own].sum())
    reach = _TWO_SIDED_95 * deviation * len(own) ** 0.5
    return middle - reach, middle + reach


def _groups(
    attribute: Attribute, shares: NDArray[np.float64]
) -> list[tuple[str, NDArray[np.intp]]]:
    """What is drawn as one row: a value, neighbours of an order, or all the small ones."""
    labels = attribute.labels
    if len(labels) <= _MOST_ROWS:
        return [(label, np.array([place])) for place, label in enumerate(labels)]
    if attribute.ordered:
        values = attribute.value_count
        pieces = np.array_split(np.arange(values), _MOST_ROWS - (len(labels) - values))
        special = [(labels[place], np.array([place])) for place in range(values, len(labels))]
        return [*((_range(labels, own), own) for own in pieces), *special]
    order = np.argsort(-shares, kind="stable")
    shown = [(labels[place], np.array([place])) for place in order[: _MOST_ROWS - 1]]
    rest = order[_MOST_ROWS - 1 :]
    return [*shown, (f"{len(rest):,} others", rest)]


def _range(labels: Sequence[str], own: NDArray[np.intp]) -> str:
    """From the beginning of the first bin to the end of the last."""
    first, last = labels[int(own[0])], labels[int(own[-1])]
    if len(own) == 1:
        return first
    if ".." in first and ".." in last:
        return f"{first.partition('..')[0]}..{last.rpartition('..')[2]}"
    return f"{first} … {last}"
