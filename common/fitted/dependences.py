"""The dependences that a release tells of: a network, or the strongest of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from common.bayes.contingency import significant
from common.bayes.form import Model
from common.bayes.postprocessing import mutual_information
from common.marginals import count
from common.schema import Codes, Schema

_NUMBERS = "Numbers are the mutual information in bits, in the synthetic rows"
_DRAWN = (
    "Each attribute was drawn given its parents, the attributes with an arrow to it. "
    f"{_NUMBERS}: thick arrows are strong dependences, provided that the expected distance of "
    "their table, above, is small. Noise, too, can draw arrows."
)
_TREE = (
    "The tree of the strongest dependences between the attributes, as far as they are "
    "significant. The model of this release has no arrows of its own: it draws every attribute "
    f"given a hidden class. {_NUMBERS}. Noise, too, can make attributes dependent."
)
_NO_TREE = "No two attributes are significantly dependent in the synthetic rows."
_BY_CHANCE = ", not significant"

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Dependences:
    """A network with the strength of its edges."""

    names: Sequence[str]  # the attributes, parents before their children
    strengths: Mapping[Edge, float]  # of every edge (parent, child): mutual information in bits
    notes: Mapping[Edge, str]  # what to say of an edge on hover
    caption: str = (
        "Each attribute was drawn given its parents, the attributes with an arrow to it. Numbers "
        "are the mutual information in bits, from the noisy tables: thick arrows are strong "
        "dependences. Noise, too, can draw arrows."
    )
    without_edges: str = "No attribute was drawn given another one."
    directed: bool = True  # whether an edge leads from a parent to its child

    def edge_words(self, edge: Edge) -> str:
        return f"{edge[0]} → {edge[1]}" if self.directed else f"{edge[0]} and {edge[1]}"


def study_dependences(
    model: Model, schema: Schema, synthetic: Codes, *, in_bits: bool
) -> Dependences:
    """Return the model's network; without a network, the tree of the strongest dependences.

    Strengths are mutual information in the synthetic rows, so nothing real is looked at.
    """
    network = None if in_bits else model.arrows
    if network is None:
        return _strongest_tree(schema.names, synthetic)
    names = schema.names
    pairs = [(view.attribute, pair.child) for pair in network.pairs for view in pair.parents]
    strengths, notes = dict[Edge, float](), dict[Edge, str]()
    for (a, b), counts in zip(pairs, count(synthetic, pairs), strict=True):
        edge = (names[a], names[b])
        strengths[edge] = mutual_information(counts.astype(np.float64))
        chance = "" if significant(counts, among=len(pairs)) else _BY_CHANCE
        notes[edge] = f"{strengths[edge]:.3f} bits{chance}"
    order = [names[pair.child] for pair in network.pairs]
    return Dependences(order, strengths, notes, _DRAWN)


def _strongest_tree(names: Sequence[str], synthetic: Codes) -> Dependences:
    """Return a maximum spanning tree of significant dependences, from the first attribute on."""
    pairs = list(combinations(range(synthetic.width), 2))
    strength = {
        pair: mutual_information(counts.astype(np.float64))
        if significant(counts, among=len(pairs))
        else 0.0
        for pair, counts in zip(pairs, count(synthetic, pairs), strict=True)
    }
    order, bits_by_edge = [0], dict[Edge, float]()
    while len(order) < synthetic.width:
        parent, child = max(
            ((a, b) for a in order for b in range(synthetic.width) if b not in order),
            key=lambda edge: strength[min(edge), max(edge)],
        )
        order.append(child)
        bits = strength[min(parent, child), max(parent, child)]
        if bits > 0:
            bits_by_edge[names[parent], names[child]] = bits
    notes = {edge: f"{bits:.3f} bits" for edge, bits in bits_by_edge.items()}
    return Dependences(
        [names[a] for a in order], bits_by_edge, notes, _TREE, _NO_TREE, directed=False
    )
