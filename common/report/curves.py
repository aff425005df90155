"""Survival curves as inline SVG: a staircase for each group, inside of its intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from common.analysis.survival import Curve
from common.report.charts import svg, text
from common.report.page import Markup

# Okabe and Ito's, safe for the colour-blind
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#999999")
_WIDTH, _HEIGHT, _LEFT, _TOP, _LEGEND = 420.0, 220.0, 36.0, 10.0, 16.0
Point = tuple[float, float]


def curves_svg(time: str, curves: Sequence[Curve]) -> Markup:
    """Draw survival by time; the table of the estimates has the numbers."""
    longest = max((curve.times[-1] for curve in curves if curve.times), default=1.0) or 1.0
    height = _TOP + _HEIGHT + 34 + _LEGEND * len(curves)
    parts = [_axes(time, longest)]
    for number, curve in enumerate(curves):
        colour = _COLOURS[number % len(_COLOURS)]
        parts += _drawn(curve, longest, colour)
        at = _TOP + _HEIGHT + 44 + _LEGEND * number
        words = "all" if curve.group is None else curve.group
        parts.append(f'<rect x="{_LEFT}" y="{at - 8}" width="12" height="4" fill="{colour}"/>')
        parts.append(text(_LEFT + 18, at, words))
    label = f"survival by {time}, with intervals"
    return svg(_LEFT + _WIDTH + 12, height, "".join(parts), label=label)


def _at(time: float, share: float, longest: float) -> Point:
    return _LEFT + _WIDTH * time / longest, _TOP + _HEIGHT * (1 - share)


def _axes(time: str, longest: float) -> str:
    lines = []
    for part in range(5):
        x, y = _at(longest * part / 4, part / 4, longest)
        lines.append(f'<path d="M{_LEFT} {y:.1f}h{_WIDTH}" stroke="currentColor" '
                     'stroke-opacity="0.15"/>')  # fmt: skip
        lines.append(text(_LEFT - 4, y + 4, f"{part / 4:g}", anchor="end"))
        lines.append(text(x, _TOP + _HEIGHT + 14, f"{longest * part / 4:g}", anchor="middle"))
    lines.append(text(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 28, time, anchor="middle"))
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
