"""Small charts as inline SVG: bars, intervals, maps of pairs, survival curves.

They use `currentColor` and CSS variables, so that one picture serves light pages, dark pages and
paper; every chart carries a title that a screen reader reads, and prints its numbers, so that
nothing has to be hovered over. Colours are Okabe and Ito's and shades of one of them, safe for the
colour-blind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from common.analysis.survival import Curve
from common.report.page import Markup, titled
from common.schema.attribute import Attribute
from common.schema.binning import Binning

Interval = tuple[float, float]
Point = tuple[float, float]
SERIES_COLOURS = ("#0072b2", "#e69f00")
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#999999")
_MORE, _LESS = "#e69f00", "#0072b2"
_LIGHTS = ("#009e73", "#e69f00", "#d55e00")
_WIDTH, _LABELS, _NUMBERS = 372.0, 140.0, 56.0
_MOST_LABEL = 22  # characters
_ROW = 18.0
_MOST_ROWS = 16  # an attribute with more unordered values is shown by its most frequent ones
_MOST_BINS = 40  # an attribute with more ordered values is shown in groups of equally many values
_TWO_SIDED_95 = 1.96
_ALIKE = 1.2  # times the narrowest bin: wider ones are drawn by density
_CURVES_WIDTH, _CURVES_HEIGHT, _LEFT, _TOP, _LEGEND = 420.0, 220.0, 36.0, 10.0, 16.0
_NUMBERED = 20.0  # the least width of a cell that has room for its number


@dataclass(frozen=True, slots=True)
class Series:
    """One named sequence of shares."""

    name: str
    values: Sequence[float]


def svg(width: float, height: float, body: str, *, label: str) -> Markup:
    """Make an SVG element of the given size whose accessible name is `label`."""
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" role="img" aria-label="{escape(label, quote=True)}" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="currentColor">'
        f"<title>{escape(label)}</title>{body}</svg>"
    )


def text(x: float, y: float, words: str, *, anchor: str = "start", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(words)}</text>'


def shorten(words: str, limit: int) -> str:
    """Cut words to `limit` characters, the last of them an ellipsis."""
    return words if len(words) <= limit else words[: limit - 1] + "…"


def bar_rows(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    intervals: Sequence[Interval] | None = None,
    widths: Sequence[float] | None = None,
) -> Markup:
    """Draw a row for each label: its name, bars and numbers of its shares, and intervals.

    With `widths` a bar is as long as its share divided by the width of its bin.
    """
    numbers = _NUMBERS * len(series)
    room = _WIDTH - _LABELS - numbers - 8
    widths = widths or [1.0] * len(labels)
    highest = [
        share / wide for one in series for share, wide in zip(one.values, widths, strict=True)
    ]
    highest += [high / wide for (_, high), wide in zip(intervals or (), widths, strict=False)]
    top = max([*highest, 1e-9])
    height = _ROW if len(series) == 1 else 1.3 * _ROW
    head = 18.0 if len(series) > 1 else 0.0
    parts = [_heads(series, room)] if head else []
    for place, label in enumerate(labels):
        y = head + height * place
        middle = y + height / 2
        parts.append(text(_LABELS - 6, middle + 4, shorten(label, _MOST_LABEL), anchor="end"))
        scale = room / top / widths[place]
        parts += _bars(place, series, y, height, scale)
        if intervals:
            parts.append(_whisker(intervals[place], middle, scale))
    return svg(_WIDTH, head + height * len(labels) + 4, "".join(parts), label=title)


def _heads(series: Sequence[Series], room: float) -> str:
    """Draw the names above the numbers, each over its colour."""
    parts = []
    for index, one in enumerate(series):
        x = _LABELS + room + _NUMBERS * (index + 1)
        parts.append(text(x, 9, one.name, anchor="end"))
        parts.append(
            f'<rect x="{x - 40:.1f}" y="12" width="40" height="3" fill="{SERIES_COLOURS[index]}"/>'
        )
    return "".join(parts)


def _bars(place: int, series: Sequence[Series], y: float, height: float, scale: float) -> list[str]:
    parts = []
    thick = 0.7 * height / len(series)
    room = _WIDTH - _LABELS - _NUMBERS * len(series) - 8
    for index, one in enumerate(series):
        value = one.values[place]
        parts.append(
            f'<rect x="{_LABELS}" y="{y + 0.15 * height + thick * index:.1f}" '
            f'width="{max(0.0, value) * scale:.1f}" height="{thick:.1f}" '
            f'fill="{SERIES_COLOURS[index]}"/>'
        )
        x = _LABELS + room + _NUMBERS * (index + 1)
        parts.append(text(x, y + height / 2 + 4, f"{value:.1%}", anchor="end"))
    return parts


def _whisker(interval: Interval, y: float, scale: float) -> str:
    low, high = (_LABELS + max(0.0, end) * scale for end in interval)
    return (
        f'<path d="M{low:.1f} {y:.1f}H{high:.1f}M{low:.1f} {y - 4:.1f}v8M{high:.1f} {y - 4:.1f}v8" '
        'stroke="currentColor" stroke-width="1.2" fill="none"/>'
    )


def forest(title: str, rows: Sequence[tuple[str, float, float, float]]) -> Markup:
    """Draw a line for each name, lower end, middle and upper end, between 0 and 1."""
    room = _WIDTH - _LABELS - 8
    parts = []
    for place, (label, low, middle, high) in enumerate(rows):
        y = _ROW * (place + 0.5)
        parts.append(text(_LABELS - 6, y + 4, shorten(label, _MOST_LABEL), anchor="end"))
        parts.append(
            f'<path d="M{_LABELS:.1f} {y:.1f}h{room:.1f}" stroke="currentColor" '
            'stroke-opacity="0.25"/>'
        )
        parts.append(_whisker((low, high), y, room))
        parts.append(
            f'<circle cx="{_LABELS + middle * room:.1f}" cy="{y:.1f}" r="3" '
            f'fill="{SERIES_COLOURS[0]}"/>'
        )
    return svg(_WIDTH, _ROW * len(rows) + 4, "".join(parts), label=title)


def heatmap(
    title: str,
    names: Sequence[str],
    values: NDArray[np.float64],
    *,
    signed: bool = False,
    lights: Mapping[tuple[int, int], int] | None = None,
    legend: Sequence[str] = (),
) -> Markup:
    """Draw a square matrix of numbers from 0 to 1; with `signed` from -1 to 1, in two colours.

    `lights` are 0, 1 or 2 for pairs, the best first, and are drawn as marks that differ in colour
    and in form; `legend` names them.
    """
    count = len(names)
    cell = max(8.0, min(36.0, 640.0 / max(1, count)))
    left = 8 + 6.2 * max((len(shorten(name, 16)) for name in names), default=1)
    deepest = max(float(np.abs(values).max(initial=0.0)), 1e-9) if signed else 1.0
    parts = []
    for row in range(count):
        at = left + cell * row + 0.68 * cell
        if cell >= 9:
            parts.append(text(left - 4, at, shorten(names[row], 16), anchor="end"))
            turn = f'transform="rotate(-90 {at:.1f} {left - 4:.1f})"'
            parts.append(text(at, left - 4, shorten(names[row], 16), extra=turn))
        parts += [
            _cell(
                (left + cell * column, left + cell * row, cell),
                float(values[row, column]),
                deepest,
                f"{names[row]}, {names[column]}",
            )
            for column in range(count)
        ]
    size = left + cell * count + 4
    for (row, column), light in (lights or {}).items():
        for x, y in ((row, column), (column, row)) if cell >= _NUMBERED else ((row, column),):
            place = left + cell * (x + 1) - 5.5, left + cell * y + 4.5
            parts.append(_light(place, light, 2.8 if cell >= _NUMBERED else 1.8))
    for light, words in enumerate(legend):
        parts.append(_light((left + 8, size + 14 + 17 * light), light, 4.0))
        parts.append(text(left + 18, size + 18 + 17 * light, words))
    return svg(size, size + 17 * len(legend) + 8, "".join(parts), label=title)


def _light(place: tuple[float, float], light: int, size: float) -> str:
    """Draw a mark: a green disc, an amber triangle or a red cross."""
    x, y = place
    disc = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="{_LIGHTS[0]}"/>'
    triangle = f"M{x:.1f} {y - size:.1f}l{size:.1f} {2 * size:.1f}h{-2 * size:.1f}z"
    cross = (
        f"M{x - size:.1f} {y - size:.1f}l{2 * size:.1f} {2 * size:.1f}"
        f"m0 {-2 * size:.1f}l{-2 * size:.1f} {2 * size:.1f}"
    )
    red = f'stroke="{_LIGHTS[2]}" stroke-width="{size / 2:.1f}"'
    shapes = (
        disc, f'<path d="{triangle}" fill="{_LIGHTS[1]}"/>', f'<path d="{cross}" {red}/>'
    )  # fmt: skip
    return shapes[light]


def _cell(place: tuple[float, float, float], value: float, deepest: float, words: str) -> str:
    """Draw one square; it shades the page's own background, so it fits dark pages, too."""
    x, y, cell = place
    depth = min(1.0, abs(value) / deepest)
    colour = _MORE if value > 0 and deepest < 1 else _LESS
    shown = f"{value:.2f}".replace("0.", ".", 1)
    number = ""
    if cell >= _NUMBERED and abs(value) >= 0.005:
        ink = 'fill="#fff"' if depth > 0.6 and colour == _LESS else ""
        number = text(x + cell / 2, y + 0.62 * cell, shown, anchor="middle",
                      extra=f'font-size="{min(9.0, 0.36 * cell):.1f}" {ink}')  # fmt: skip
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell - 1:.1f}" height="{cell - 1:.1f}" '
        f'fill="{colour}" fill-opacity="{0.04 + 0.96 * depth:.2f}"><title>'
        f"{escape(words)}: {value:.3f}</title></rect>{number}"
    )


def distribution(
    attribute: Attribute,
    series: Sequence[Series],
    *,
    noisy: NDArray[np.float64] | None = None,
    deviation: float = 0.0,
) -> Markup:
    """Draw one attribute's shares, with intervals around released noisy shares."""
    groups = _groups(attribute, np.asarray(series[-1].values))
    labels = [label for label, _ in groups]
    drawn = [
        Series(one.name, [float(np.asarray(one.values)[places].sum()) for _, places in groups])
        for one in series
    ]
    intervals = (
        None if noisy is None else [_interval(noisy, places, deviation) for _, places in groups]
    )
    words, widths = f"Distribution of {attribute.name}", _widths(attribute, groups)
    title = f"{attribute.name} (bars by density)" if widths else attribute.name
    return titled(bar_rows(words, labels, drawn, intervals, widths), title=title)


def _widths(
    attribute: Attribute, groups: Sequence[tuple[str, NDArray[np.intp]]]
) -> list[float] | None:
    """Return how wide the groups of bins are, in units of their mean; None if they are alike."""
    if not isinstance(attribute.domain, Binning):
        return None
    bins, count = attribute.domain, attribute.value_count
    wide = np.ones(count) if bins.equal else np.diff(np.asarray(bins.edges, dtype=np.float64))
    if not bins.equal and attribute.kind != "real":
        wide[-1] += 1  # whole numbers: the last edge belongs to the last bin
    sums = [float(wide[places].sum()) for _, places in groups if places[0] < count]
    if max(sums) <= _ALIKE * min(sums):
        return None
    middle = sum(sums) / len(sums)  # what an empty cell counts as, too
    return [*(total / middle for total in sums), *[1.0] * (len(groups) - len(sums))]


def _interval(noisy: NDArray[np.float64], places: NDArray[np.intp], deviation: float) -> Interval:
    middle = float(noisy[places].sum())
    reach = _TWO_SIDED_95 * deviation * len(places) ** 0.5
    return middle - reach, middle + reach


def _groups(
    attribute: Attribute, shares: NDArray[np.float64]
) -> list[tuple[str, NDArray[np.intp]]]:
    """Return what is drawn as one row: a value, neighbours, or all values with few rows."""
    labels = attribute.labels
    values = attribute.value_count
    if len(labels) <= _MOST_ROWS or (attribute.ordered and values <= _MOST_BINS):
        return [(label, np.array([place])) for place, label in enumerate(labels)]
    if attribute.ordered:
        # Groups of unequally many values would show modes that are not there.
        together = -(-values // _MOST_BINS)
        pieces = np.split(np.arange(values), range(together, values, together))
        special = [(labels[place], np.array([place])) for place in range(values, len(labels))]
        return [*((_range(labels, places), places) for places in pieces), *special]
    order = np.argsort(-shares, kind="stable")
    shown = [(labels[place], np.array([place])) for place in order[: _MOST_ROWS - 1]]
    rest = order[_MOST_ROWS - 1 :]
    return [*shown, (f"{len(rest):,} others", rest)]


def _range(labels: Sequence[str], places: NDArray[np.intp]) -> str:
    """Name a group from the beginning of its first bin to the end of its last."""
    first, last = labels[int(places[0])], labels[int(places[-1])]
    if len(places) == 1:
        return first
    if ".." in first and ".." in last:
        return f"{first.partition('..')[0]}..{last.rpartition('..')[2]}"
    return f"{first} … {last}"


def curves_svg(time: str, curves: Sequence[Curve]) -> Markup:
    """Draw survival by time; the table of the estimates has the numbers."""
    longest = max((curve.times[-1] for curve in curves if curve.times), default=1.0) or 1.0
    height = _TOP + _CURVES_HEIGHT + 34 + _LEGEND * len(curves)
    parts = [_axes(time, longest)]
    for number, curve in enumerate(curves):
        colour = _COLOURS[number % len(_COLOURS)]
        parts += _drawn(curve, longest, colour)
        at = _TOP + _CURVES_HEIGHT + 44 + _LEGEND * number
        words = "all" if curve.group is None else curve.group
        parts.append(f'<rect x="{_LEFT}" y="{at - 8}" width="12" height="4" fill="{colour}"/>')
        parts.append(text(_LEFT + 18, at, words))
    label = f"survival by {time}, with intervals"
    return svg(_LEFT + _CURVES_WIDTH + 12, height, "".join(parts), label=label)


def _at(time: float, share: float, longest: float) -> Point:
    return _LEFT + _CURVES_WIDTH * time / longest, _TOP + _CURVES_HEIGHT * (1 - share)


def _axes(time: str, longest: float) -> str:
    lines = []
    for part in range(5):
        x, y = _at(longest * part / 4, part / 4, longest)
        lines.append(f'<path d="M{_LEFT} {y:.1f}h{_CURVES_WIDTH}" stroke="currentColor" '
                     'stroke-opacity="0.15"/>')  # fmt: skip
        lines.append(text(_LEFT - 4, y + 4, f"{part / 4:g}", anchor="end"))
        lines.append(
            text(x, _TOP + _CURVES_HEIGHT + 14, f"{longest * part / 4:g}", anchor="middle")
        )
    lines.append(text(_LEFT + _CURVES_WIDTH / 2, _TOP + _CURVES_HEIGHT + 28, time, anchor="middle"))
    return "".join(lines)


def _drawn(curve: Curve, longest: float, colour: str) -> list[str]:
    """Draw a curve up to the first time at which there is no estimate."""
    known: list[tuple[float, float, float, float]] = [(0.0, 1.0, 1.0, 1.0)]
    for time, point in zip(curve.times, curve.points, strict=True):
        if point.estimate is None or point.low is None or point.high is None:
            break
        known.append((time, point.estimate, point.low, point.high))
    middle, low, high = (
        _stairs([(row[0], row[place]) for row in known], longest) for place in (1, 2, 3)
    )
    band = _path([*high, *reversed(low)])
    return [
        f'<path d="{band}Z" fill="{colour}" fill-opacity="0.15"/>',
        f'<path d="{_path(middle)}" fill="none" stroke="{colour}" stroke-width="1.6"/>',
    ]


def _stairs(points: Sequence[Point], longest: float) -> list[Point]:
    """Return the corners of a staircase: level until the next time, and down there."""
    corners = []
    level = points[0][1]
    for time, share in points:
        corners += [_at(time, level, longest), _at(time, share, longest)]
        level = share
    return corners


def _path(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
