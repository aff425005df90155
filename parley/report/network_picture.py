"""A Bayesian network as a layered drawing: parents above children, strong edges thick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from parley.report.charts import shorten, svg

_ROW_HEIGHT = 84.0
_GAP = 14.0
_LETTER = 6.6

Edge = tuple[str, str]


def draw_network(
    names: Sequence[str],
    edges: Sequence[Edge],
    strengths: Mapping[Edge, float] | None = None,
    notes: Mapping[Edge, str] | None = None,
) -> str:
    """The network as SVG.

    Args:
        names: every attribute, in an order in which parents come before their children.
        edges: (parent, child) pairs.
        strengths: relative weight of each edge; the strongest is drawn thickest.
        notes: what to say of an edge on hover, for example the level of a generalised parent.
    """
    layers = _layers(names, edges)
    places, width = _places(layers, edges)
    height = _ROW_HEIGHT * (len(layers) - 1) + 60
    strongest = max((strengths or {}).values(), default=0.0)
    parts = [
        (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" '
            'fill="currentColor" fill-opacity="0.65"/></marker></defs>'
        )
    ]
    for edge in edges:
        share = strengths.get(edge, 0.0) / strongest if strengths and strongest > 0 else 0.3
        parts.append(_edge(places, edge, share, (notes or {}).get(edge, "")))
    for name in names:
        x, y = places[name]
        wide = _node_width(name)
        parts.append(
            f'<g><title>{escape(name)}</title><rect x="{x - wide / 2:.1f}" y="{y - 13:.1f}" '
            f'width="{wide:.1f}" height="26" rx="7" fill="#0072b2"/>'
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="#fff">'
            f"{escape(shorten(name, 20))}</text></g>"
        )
    label = f"Bayesian network of {len(names)} attributes with {len(edges)} edges"
    return svg(width, height, label, "".join(parts))


def _layers(names: Sequence[str], edges: Sequence[Edge]) -> list[list[str]]:
    """Each attribute one layer below its lowest parent."""
    depth = dict.fromkeys(names, 0)
    for name in names:  # parents first, so one pass is enough
        depth[name] = max((depth[a] + 1 for a, b in edges if b == name), default=0)
    return [[n for n in names if depth[n] == level] for level in range(max(depth.values()) + 1)]


def _node_width(name: str) -> float:
    return 18 + _LETTER * len(shorten(name, 20))


def _places(
    layers: list[list[str]], edges: Sequence[Edge]
) -> tuple[dict[str, tuple[float, float]], float]:
    """Centre of every node; layers ordered by the mean place of their parents, then centred."""
    spans = [sum(_node_width(n) + _GAP for n in layer) + _GAP for layer in layers]
    width = max(spans)
    places: dict[str, tuple[float, float]] = {}
    for level, layer in enumerate(layers):
        pulls = {}
        for name in layer:
            above = [places[a][0] for a, b in edges if b == name and a in places]
            pulls[name] = sum(above) / len(above) if above else width / 2
        x = (width - spans[level]) / 2 + _GAP
        for name in sorted(layer, key=lambda n: (pulls[n], layer.index(n))):
            wide = _node_width(name)
            places[name] = (x + wide / 2, 30 + _ROW_HEIGHT * level)
            x += wide + _GAP
    return places, width


def _edge(places: Mapping[str, tuple[float, float]], edge: Edge, share: float, note: str) -> str:
    (x1, y1), (x2, y2) = places[edge[0]], places[edge[1]]
    y1, y2 = y1 + 13, y2 - 14
    bend = (y2 - y1) / 2
    title = f"{edge[0]} → {edge[1]}" + (f" ({note})" if note else "")
    return (
        f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} '
        f'{x2:.1f} {y2:.1f}" fill="none" stroke="currentColor" marker-end="url(#arrow)" '
        f'stroke-opacity="{0.25 + 0.5 * share:.2f}" stroke-width="{0.8 + 3.2 * share:.2f}">'
        f"<title>{escape(title)}</title></path>"
    )
