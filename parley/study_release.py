"""What a study of several owners releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from common.marginals import count
from common.privacy.randomness import RandomSource
from common.schema import Codes, Schema
from common.study import Study
from common.subn.network_model import NetworkModel
from common.subn.steps import Model, Step
from parley.columns import Columns
from parley.privbayes import FORMAT
from parley.report.network_picture import Edge, draw_network
from parley.report.released import NetworkDrawing, mutual_information
from parley.report.study_figures import study_noise
from parley.single_owner import source_of

_NUMBERS = "Numbers are the mutual information in bits, in the synthetic rows"
_DRAWN = (
    "Each attribute was drawn given its parents, the attributes with an arrow to it. "
    f"{_NUMBERS}: thick arrows are strong dependences, if their table has a small expected "
    "distance below. Noise makes arrows, too."
)
_TREE = (
    "The strongest dependences that hold all attributes together. The model of this release has no "
    f"arrows of its own: it draws every attribute given a hidden class. {_NUMBERS}."
)


@dataclass(frozen=True, eq=False)
class FittedStudy:
    """The outcome of a study: everything in it is noisy, so all of it may be published.

    Attributes:
        study: what was agreed.
        model: what the curator learnt.
        steps: every step that was made.
        results: what was published in each of them.
        privacy: the privacy statement, as in privacy.json.
        columns: the columns of the owners' tables.
        transcript: bytes, rounds and seconds by phase and party; a release leaves the seconds out.
        seed: of a run that is not private.
    """

    study: Study
    model: Model
    steps: tuple[Step, ...]
    results: tuple[bytes, ...]
    privacy: dict[str, object]
    columns: Columns
    transcript: Mapping[str, object]
    seed: int | None = None

    @property
    def schema(self) -> Schema:
        """The public domains."""
        return self.study.schema

    @property
    def rows(self) -> int:
        """The public number of rows of all owners together."""
        return self.study.rows

    @property
    def output_rows(self) -> int:
        """How many synthetic rows are made if nobody says."""
        return self.study.output_rows or self.rows

    def sample_codes(self, rows: int | None = None) -> Codes:
        """Synthetic rows as codes of the schema."""
        wanted = self.output_rows if rows is None else rows
        return self.draw(wanted, source_of(self.seed, "rows"))

    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Synthetic rows from a source of one's own."""
        return self.model.sample(rows, source)

    def decode(self, codes: Codes) -> pd.DataFrame:
        """Codes as a table like the owners'."""
        table = self.schema.decode(codes, source_of(self.seed, "numbers"))
        return self.columns.shape(table, self.schema)

    def sample(self, rows: int | None = None) -> pd.DataFrame:
        """Any number of synthetic rows; they cost nothing."""
        return self.decode(self.sample_codes(rows))

    def network_svg(self) -> str:
        """The network, or the strongest dependences, as a picture."""
        drawing = study_drawing(self.model, self.schema, self.sample_codes())
        return draw_network(drawing.names, drawing.edges, drawing.strengths, drawing.notes)

    def to_json(self) -> dict[str, object]:
        """The content of model.json."""
        return {
            "format": FORMAT,
            "method": self.study.method,
            "rows": self.rows,
            "schema": self.schema.to_toml(),
            "columns": dict(self.columns.kinds),
            "model": self.model.as_json(),
            "noise_in_a_count": study_noise(self.study, self.steps),
            "privacy": self.privacy,
        }


def study_drawing(model: Model, schema: Schema, synthetic: Codes) -> NetworkDrawing:
    """The model's network; for a model without one, the tree of the strongest dependences.

    Strengths are mutual information in the synthetic rows, so nothing real is looked at.
    """
    names, caption = schema.names, _DRAWN
    if isinstance(model, NetworkModel) and not model.variables.in_bits:
        order = [pair.child for pair in model.network.pairs]
        pairs = [
            (view.attribute, pair.child) for pair in model.network.pairs for view in pair.parents
        ]
    else:
        (order, pairs), caption = _strongest_tree(synthetic), _TREE
    tables = count(synthetic, pairs)
    strengths: dict[Edge, float] = {
        (names[a], names[b]): mutual_information(table.astype(np.float64))
        for (a, b), table in zip(pairs, tables, strict=True)
    }
    notes = {edge: f"{strength:.3f} bits" for edge, strength in strengths.items()}
    return NetworkDrawing([names[a] for a in order], list(strengths), strengths, notes, caption)


def _strongest_tree(synthetic: Codes) -> tuple[list[int], list[tuple[int, int]]]:
    """A maximum spanning tree of the pairs' mutual information, from the first attribute on."""
    width = synthetic.width
    pairs = [(a, b) for a in range(width) for b in range(a + 1, width)]
    strength = {
        pair: mutual_information(table.astype(np.float64))
        for pair, table in zip(pairs, count(synthetic, pairs), strict=True)
    }
    order, edges = [0], list[tuple[int, int]]()
    while len(order) < width:
        parent, child = max(
            ((a, b) for a in order for b in range(width) if b not in order),
            key=lambda edge: strength[min(edge), max(edge)],
        )
        order.append(child)
        edges.append((parent, child))
    return order, edges
