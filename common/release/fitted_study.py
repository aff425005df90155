"""What a study of several owners releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from common.bayes.postprocessing import mutual_information
from common.marginals import count
from common.methods.network_model import NetworkModel
from common.privacy.randomness import RandomSource
from common.release import folder as release
from common.release.diagnostics import Diagnostics
from common.release.fitted import DrawnModel
from common.release.measured import study_diagnostics, study_noise
from common.release.model_count import ModelCount, model_count
from common.release.prior import PriorRelease
from common.release.refit import refit_study, replay
from common.release.report.network_picture import Edge, NetworkDrawing
from common.release.report.relations import stands_out
from common.schema import Codes, Schema
from common.study.document import Study
from common.study.script import ScriptRun
from common.study.steps import Model, Step

_NUMBERS = "Numbers are the mutual information in bits, in the synthetic rows"
_DRAWN = (
    "Each attribute was drawn given its parents, the attributes with an arrow to it. "
    f"{_NUMBERS}: thick arrows are strong dependences, if their table has a small expected "
    "distance below. Noise makes arrows, too."
)
_TREE = (
    "The strongest dependences that hold the attributes together, if they are beyond chance. The "
    "model of this release has no arrows of its own: it draws every attribute given a hidden "
    f"class. {_NUMBERS}. Noise makes dependence, too."
)
_NO_TREE = "No two attributes depend on each other in the synthetic rows but by chance."
_BY_CHANCE = ", no more than by chance"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedStudy(DrawnModel):
    """The outcome of a study; see `DrawnModel` for what is not here.

    Attributes:
        study: what was agreed.
        results: what was published in each step.
        transcript: bytes, rounds and seconds by phase and party; a release leaves the seconds out.
        prior: the release that the study builds on, if it does.
        made: its steps and its model; if None they are derived when something asks for them.
    """

    study: Study
    results: tuple[bytes, ...]
    transcript: Mapping[str, object]
    prior: PriorRelease | None = None
    made: tuple[tuple[Step, ...], Model] | None = None

    @cached_property
    def _script(self) -> ScriptRun:
        return replay(self.study, self.results, self.missing, self.prior)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every step that was made."""
        return tuple(self._script.made) if self.made is None else self.made[0]

    @cached_property
    def model(self) -> Model:
        """What the curator learnt; slow where it is derived."""
        return self._script.model() if self.made is None else self.made[1]

    def __getstate__(self) -> dict[str, object]:
        """Another process gets the model, and not the script that leads to it."""
        kept = {name: value for name, value in vars(self).items() if name != "_script"}
        return kept | {"made": (self.steps, self.model)}

    @property
    def rows(self) -> int:
        """The public number of rows of all owners together."""
        return self.study.rows

    @property
    def output_rows(self) -> int:
        """How many synthetic rows are made by default."""
        return self.study.output_rows or self.rows

    @property
    def missing(self) -> Mapping[str, int]:
        """For each party that went missing, the first step without it."""
        found = self.privacy.get("missing")
        return found if isinstance(found, dict) else {}

    @property
    def _drawn_from(self) -> Model:
        return self.model

    def refit(self, rows: Codes, source: RandomSource) -> FittedStudy:
        """Run the study's own script again, on these rows in place of the owners'."""
        prior = None if self.prior is None else self.prior.rows
        model = refit_study(self.study, rows, source, self.missing, prior)
        return replace(self, made=(self.steps, model))

    def diagnose(self, synthetic: Codes) -> Diagnostics:
        """Every published sum, compared with these rows."""
        return study_diagnostics(self.study, self.steps, self.results, synthetic)

    @property
    def noise(self) -> Mapping[str, float]:
        """Of the published tables of all parties."""
        return study_noise(self.study, self.steps)

    def count(self, query: str) -> ModelCount:
        """How many rows satisfy a query; by the synthetic rows, if it was read from a release."""
        if self.origin is None:
            return super().count(query)
        return model_count(query, self.schema, [self.released], rows=self.rows, noise=self.noise)

    def save(self, path: Path | str) -> None:
        """Write a new release folder, which `parley.load` reads and `parley verify` checks."""
        from common.release.writing import write_release  # it writes every kind of model

        with release.new_folder(Path(path), overwrite=False) as folder:
            write_release(folder, self)

    def drawing(self) -> NetworkDrawing:
        """The network, or the strongest dependences."""
        return study_drawing(self.model, self.schema, self.sample_codes())

    def _content(self) -> dict[str, object]:
        return {
            "method": self.study.method,
            "rows": self.rows,
            "model": self.model.as_json(),
            "noise_in_a_count": self.noise,
        }


def study_drawing(model: Model, schema: Schema, synthetic: Codes) -> NetworkDrawing:
    """The model's network; for a model without one, the tree of the strongest dependences.

    Strengths are mutual information in the synthetic rows, so nothing real is looked at.
    """
    if not isinstance(model, NetworkModel) or model.variables.in_bits:
        return _strongest_tree(schema.names, synthetic)
    names = schema.names
    pairs = [(view.attribute, pair.child) for pair in model.network.pairs for view in pair.parents]
    strengths, notes = dict[Edge, float](), dict[Edge, str]()
    for (a, b), table in zip(pairs, count(synthetic, pairs), strict=True):
        edge = (names[a], names[b])
        strengths[edge] = mutual_information(table.astype(np.float64))
        chance = "" if stands_out(table, among=len(pairs)) else _BY_CHANCE
        notes[edge] = f"{strengths[edge]:.3f} bits{chance}"
    order = [names[pair.child] for pair in model.network.pairs]
    return NetworkDrawing(order, strengths, notes, _DRAWN)


def _strongest_tree(names: Sequence[str], synthetic: Codes) -> NetworkDrawing:
    """A maximum spanning tree of what stands out of chance, from the first attribute on."""
    pairs = list(combinations(range(synthetic.width), 2))
    strength = {
        pair: mutual_information(table.astype(np.float64))
        if stands_out(table, among=len(pairs))
        else 0.0
        for pair, table in zip(pairs, count(synthetic, pairs), strict=True)
    }
    order, found = [0], dict[Edge, float]()
    while len(order) < synthetic.width:
        parent, child = max(
            ((a, b) for a in order for b in range(synthetic.width) if b not in order),
            key=lambda edge: strength[min(edge), max(edge)],
        )
        order.append(child)
        bits = strength[min(parent, child), max(parent, child)]
        if bits > 0:
            found[names[parent], names[child]] = bits
    notes = {edge: f"{bits:.3f} bits" for edge, bits in found.items()}
    return NetworkDrawing([names[a] for a in order], found, notes, _TREE, _NO_TREE)
