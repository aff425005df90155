"""Small charts as inline SVG.

They use `currentColor` and CSS variables, so that one picture serves light pages, dark pages and
paper; every chart carries a title that a screen reader reads. Colours are Okabe and Ito's and a
single-hue ramp, both safe for the colour-blind; series also differ by shape, not by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

SERIES_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")
_HEAT_STOPS = ((247, 251, 255), (158, 202, 225), (66, 146, 198), (8, 48, 107))
_LABEL_ROOM = 17.0  # between two slanted labels
_MOST_LABEL = 14  # characters
_LETTER = 6.4  # about the width of one


@dataclass(frozen=True, slots=True)
class Series:
    """One named sequence of heights or values."""

    name: str
    values: Sequence[float]


def svg(width: float, height: float, label: str, body: str) -> str:
    """An SVG element of the given size whose accessible name is `label`."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" role="img" aria-label="{escape(label, quote=True)}" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="currentColor">'
        f"<title>{escape(label)}</title>{body}</svg>"
    )


def text(x: float, y: float, words: str, *, anchor: str = "start", extra: str = "") -> str:
    """Text at a point."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(words)}</text>'


def shorten(words: str, limit: int) -> str:
    """At most `limit` characters, the last one an ellipsis where something was cut."""
    return words if len(words) <= limit else words[: limit - 1] + "…"


def axis_label(words: str) -> str:
    """A label short enough for an axis: of a long range, where it begins."""
    begins, dots, _ = words.partition("..")
    return shorten(f"{begins}…" if dots and len(words) > _MOST_LABEL else words, _MOST_LABEL)


def bar_chart(title: str, labels: Sequence[str], series: Sequence[Series]) -> str:
    """Grouped vertical bars, one group per label; heights are shares of the total."""
    top = _round_up(max((max(s.values, default=0.0) for s in series), default=0.0) or 1.0)
    slot = max(14.0, min(46.0, 560.0 / max(1, len(labels))))
    words = [axis_label(label) for label in labels]
    longest = _LETTER * max(map(len, words), default=1)
    # Slanted labels hang down to the left of their bars; the first ones must not leave the picture.
    left = max(62.0, 0.77 * longest + 12 - 0.5 * slot)
    bottom, height = 22.0 + 0.65 * longest, 150.0
    width = left + slot * len(labels) + 12
    parts = [_axis(left, height, top, width)]
    bar = 0.8 * slot / len(series)
    for index, one in enumerate(series):
        colour = SERIES_COLOURS[index % len(SERIES_COLOURS)]
        for position, value in enumerate(one.values):
            tall = height * max(0.0, value) / top
            x = left + slot * position + 0.1 * slot + bar * index
            parts.append(
                f'<rect x="{x:.1f}" y="{20 + height - tall:.1f}" width="{bar:.1f}" '
                f'height="{tall:.1f}" fill="{colour}">'
                f"<title>{escape(labels[position])}, {escape(one.name)}: {value:.1%}</title></rect>"
            )
    every = math.ceil(_LABEL_ROOM / slot)
    for position, label in enumerate(words):
        if position % every == 0:
            x = left + slot * (position + 0.5)
            turn = f'transform="rotate(-40 {x:.1f} {height + 32:.1f})"'
            parts.append(text(x, height + 32, label, anchor="end", extra=turn))
    parts.append(_legend([s.name for s in series], left))
    return svg(max(width, left + 90.0 * len(series)), height + 20 + bottom, title, "".join(parts))


def _round_up(share: float) -> float:
    """The least number from here on that makes four steps people like to read."""
    for step in (m * 10.0**power for power in range(-6, 3) for m in (1, 2, 2.5, 5)):
        if 4 * step >= share:
            return 4 * step
    return share


def _axis(left: float, height: float, top: float, width: float) -> str:
    lines = []
    for step in range(5):
        y = 20 + height * (1 - step / 4)
        lines.append(
            f'<line x1="{left}" x2="{width - 8:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="currentColor" stroke-opacity="0.15"/>'
        )
        lines.append(text(left - 5, y + 4, f"{top * step / 4 * 100:.3g}%", anchor="end"))
    return "".join(lines)


def _legend(names: Sequence[str], left: float) -> str:
    parts = []
    for index, name in enumerate(names):
        x = left + 90 * index
        colour = SERIES_COLOURS[index % len(SERIES_COLOURS)]
        parts.append(f'<rect x="{x}" y="3" width="10" height="10" fill="{colour}"/>')
        parts.append(text(x + 14, 12, name))
    return "".join(parts)


def heat_colour(share: float) -> str:
    """The colour of a value in 0..1 on the single-hue ramp."""
    position = min(1.0, max(0.0, share)) * (len(_HEAT_STOPS) - 1)
    low = min(int(position), len(_HEAT_STOPS) - 2)
    mix = position - low
    pairs = zip(_HEAT_STOPS[low], _HEAT_STOPS[low + 1], strict=True)
    return "#" + "".join(f"{round(a + (b - a) * mix):02x}" for a, b in pairs)


def heatmap(title: str, names: Sequence[str], values: NDArray[np.float64], top: float) -> str:
    """A square matrix of values in 0..top; cells tell their value on hover."""
    count = len(names)
    cell = max(8.0, min(26.0, 420.0 / max(1, count)))
    left = 8 + 6.2 * max((len(shorten(n, 16)) for n in names), default=1)
    parts = []
    for row in range(count):
        y = left + cell * row
        if cell >= 9:
            parts.append(text(left - 4, y + 0.7 * cell, shorten(names[row], 16), anchor="end"))
            turn = f'transform="rotate(-90 {y + 0.7 * cell:.1f} {left - 4:.1f})"'
            parts.append(text(y + 0.7 * cell, left - 4, shorten(names[row], 16), extra=turn))
        for column in range(count):
            value = float(values[row, column])
            parts.append(
                f'<rect x="{left + cell * column:.1f}" y="{y:.1f}" width="{cell - 0.5:.1f}" '
                f'height="{cell - 0.5:.1f}" fill="{heat_colour(value / top if top else 0)}"><title>'
                f"{escape(names[row])}, {escape(names[column])}: {value:.3f}</title></rect>"
            )
    parts.append(_heat_scale(left, left + cell * count + 8, cell * count, top))
    size = left + cell * count + 4
    return svg(size, size + 34, title, "".join(parts))


def _heat_scale(x: float, y: float, width: float, top: float) -> str:
    steps = 24
    blocks = "".join(
        f'<rect x="{x + width * i / steps:.1f}" y="{y:.1f}" width="{width / steps + 0.5:.1f}" '
        f'height="8" fill="{heat_colour(i / (steps - 1))}"/>'
        for i in range(steps)
    )
    return blocks + text(x, y + 20, "0") + text(x + width, y + 20, f"{top:.2g}", anchor="end")
