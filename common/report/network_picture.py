"""A network as a layered drawing: parents above children, strong edges thick.

Edges have arrowheads where the model has arrows. An edge that skips layers has a stop in each of
them, so that it runs between the boxes and not behind them. Layers are ordered by the mean place of
their neighbours, a few times up and down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise

from common.fitted.dependences import Dependences, Edge
from common.report.charts import shorten, svg
from common.report.page import Markup
from common.wording import many

_ROW_HEIGHT = 84.0
_HALF_BOX = 13.0
_GAP = 26.0
_LETTER = 6.6
_SWEEPS = 4
_MOST_LABELS = 60  # numbers at the edges, while there is room for them
_LABELLED = 0.1  # of the strongest: weaker edges are told apart on hover

# For the picture as a file or an image; drawn into a page, it has the page's colours.
_ARROW = (
    "<style>svg:root{color-scheme:light dark;background:var(--paper,#fff)}"
    "@media(prefers-color-scheme:dark){svg:root{--paper:#16181c;color:#e8e8e8}}</style>"
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
    'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" '
    'fill="currentColor" fill-opacity="0.65"/></marker></defs>'
)

_HEAD = ' marker-end="url(#arrow)"'

Stop = str | tuple[Edge, int]  # an attribute, or where an edge passes a layer
Point = tuple[float, float]


def network_svg(network: Dependences) -> Markup:
    depths = _depths(network.names, network.strengths)
    routes = {edge: _route(edge, depths) for edge in network.strengths}
    layers = _layers(depths, routes)
    places, width = _places(layers)
    ways = {edge: [places[stop] for stop in way] for edge, way in routes.items()}
    parts = [_ARROW, *_edges(network, ways)]
    parts += [_box(name, *places[name]) for name in network.names]
    attributes, edges = many(len(network.names), "attribute"), many(len(network.strengths), "edge")
    kind = "Bayesian network" if network.directed else "Dependences"
    label = f"{kind} of {attributes} with {edges}"
    return svg(width, _ROW_HEIGHT * (len(layers) - 1) + 60, "".join(parts), label=label)


def _edges(network: Dependences, routes: Mapping[Edge, Sequence[Point]]) -> list[str]:
    """Draw the edges, the strongest thickest, and their numbers above every line."""
    strongest = max(network.strengths.values(), default=0.0)
    lines, labels = list[str](), list[str]()
    reached: Counter[str] = Counter()  # by labelled edges
    for edge, strength in network.strengths.items():
        share = strength / strongest if strongest > 0 else 0.3
        note = network.notes.get(edge, "")
        title = network.edge_words(edge) + (f" ({note})" if note else "")
        lines.append(_edge(routes[edge], title, share, directed=network.directed))
        if strongest > 0 and share >= _LABELLED and len(routes) <= _MOST_LABELS:
            labels.append(_label(routes[edge], strength, above=reached[edge[1]]))
            reached[edge[1]] += 1
    return lines + labels


def _box(name: str, x: float, y: float) -> str:
    wide = _width(name)
    return (
        f'<g><title>{escape(name)}</title><rect x="{x - wide / 2:.1f}" '
        f'y="{y - _HALF_BOX:.1f}" width="{wide:.1f}" height="26" rx="7" fill="#0072b2"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="#fff">'
        f"{escape(shorten(name, 20))}</text></g>"
    )


def _depths(names: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """Put each attribute one layer below its lowest parent."""
    depths = dict.fromkeys(names, 0)
    for name in names:  # parents first, so one pass is enough
        depths[name] = max((depths[a] + 1 for a, b in edges if b == name), default=0)
    return depths


def _route(edge: Edge, depths: Mapping[str, int]) -> list[Stop]:
    between = range(depths[edge[0]] + 1, depths[edge[1]])
    return [edge[0], *((edge, level) for level in between), edge[1]]


def _layers(depths: Mapping[str, int], routes: Mapping[Edge, list[Stop]]) -> list[list[Stop]]:
    """Order the stops of every layer from left to right, so that few edges cross."""
    layers: list[list[Stop]] = [[] for _ in range(max(depths.values()) + 1)]
    for name, depth in depths.items():
        layers[depth].append(name)
    above: dict[Stop, list[Stop]] = {}
    below: dict[Stop, list[Stop]] = {}
    for route in routes.values():
        for stop in route[1:-1]:
            layers[int(stop[1])].append(stop)
        for upper, lower in pairwise(route):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for layer in layers[1:] if down else layers[-2::-1]:
            _sort(layer, layers, neighbours)
    return layers


def _sort(
    layer: list[Stop], layers: list[list[Stop]], neighbours: Mapping[Stop, list[Stop]]
) -> None:
    """Order one layer by the mean place of each stop's neighbours in the layer next to it."""
    at = {stop: (index + 0.5) / len(layer) for layer in layers for index, stop in enumerate(layer)}
    pull = {
        stop: sum(at[n] for n in near) / len(near) if (near := neighbours.get(stop)) else at[stop]
        for stop in layer
    }
    layer.sort(key=lambda stop: pull[stop])


def _width(stop: Stop) -> float:
    return 18 + _LETTER * len(shorten(stop, 20)) if isinstance(stop, str) else 0.0


def _places(layers: list[list[Stop]]) -> tuple[dict[Stop, Point], float]:
    """Return the centre of every stop, and the width of the drawing; layers are centred."""
    spans = [sum(_width(stop) + _GAP for stop in layer) + _GAP for layer in layers]
    width = max(spans)
    places: dict[Stop, Point] = {}
    for level, layer in enumerate(layers):
        x = (width - spans[level]) / 2 + _GAP
        for stop in layer:
            wide = _width(stop)
            places[stop] = (x + wide / 2, 30 + _ROW_HEIGHT * level)
            x += wide + _GAP
    return places, width


def _label(points: Sequence[Point], strength: float, *, above: int) -> str:
    """Write the strength where the edge reaches the child, above the labels already there."""
    (x1, y1), (x2, y2) = points[-2:]
    way = 0.3 + 0.2 * min(above, 3)  # from the child to the parent, as the edge bends
    x = x2 + (3 * way**2 - 2 * way**3) * (x1 - x2)
    y = y2 - _HALF_BOX - way * (y2 - y1 - 2 * _HALF_BOX)
    words = f"{strength:.2f}"
    wide = 8 + 5.5 * len(words)
    return (  # on paper of its own, which interrupts the line
        f'<rect x="{x - wide / 2:.1f}" y="{y - 7:.1f}" width="{wide:.1f}" height="14" rx="3" '
        f'fill="var(--paper,#fff)"/><text x="{x:.1f}" y="{y + 3.5:.1f}" text-anchor="middle" '
        f'font-size="10">{words}</text>'
    )


def _edge(points: Sequence[Point], title: str, share: float, *, directed: bool) -> str:
    path = f"M{points[0][0]:.1f} {points[0][1] + _HALF_BOX:.1f}"
    for (x1, y1), (x2, y2) in pairwise(points):
        start, end = y1 + _HALF_BOX, y2 - _HALF_BOX - 1
        bend = (end - start) / 2
        path += f"L{x1:.1f} {start:.1f}"  # straight past the boxes of a layer
        path += f"C{x1:.1f} {start + bend:.1f} {x2:.1f} {end - bend:.1f} {x2:.1f} {end:.1f}"
    return (
        f'<path d="{path}" fill="none" stroke="currentColor"{_HEAD if directed else ""} '
        f'stroke-opacity="{0.25 + 0.5 * share:.2f}" stroke-width="{0.8 + 3.2 * share:.2f}">'
        f"<title>{escape(title)}</title></path>"
    )
