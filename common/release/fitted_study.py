"""What a study of several owners releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from common.bayes.postprocessing import mutual_information
from common.marginals import count
from common.methods.criteria import PHASE
from common.methods.network_model import NetworkModel
from common.methods.registry import cautions_of, method_of
from common.methods.subn_plus.descent import SpreadModel
from common.privacy.randomness import RandomSource
from common.release import folder as release
from common.release.diagnostics import Diagnostics
from common.release.estimates import ModelCount, model_count
from common.release.fitted import DrawnModel
from common.release.measured import (
    study_diagnostics,
    study_noise,
    study_shares,
    study_tables,
)
from common.release.prior import PriorRelease
from common.release.refit import refit_study, replay
from common.release.report.network_picture import Edge, NetworkDrawing
from common.release.report.page import Section, joined, paragraph, table
from common.release.report.relations import floor_forecast, significant
from common.release.report.release_page import MethodFacts
from common.release.writing import write_release
from common.schema import Codes, Schema
from common.study.accounting import missing_in
from common.study.document import Study
from common.study.script import ScriptRun
from common.study.steps import Model, Step
from common.study.transcript import phases_of, without_times
from common.wording import many

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
        """Hand the model to another process, and not the script that leads to it."""
        kept = {name: value for name, value in vars(self).items() if name != "_script"}
        return kept | {"made": (self.steps, self.model)}

    @property
    def rows(self) -> int:
        """The public number of rows of all owners together."""
        return self.study.rows

    @property
    def output_rows(self) -> int:
        """The number of synthetic rows that are made by default."""
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
        """Compare every published sum with these rows."""
        return study_diagnostics(self.study, self.steps, self.results, synthetic)

    @property
    def noise(self) -> Mapping[str, float]:
        """That of the published tables of all parties."""
        return study_noise(self.study, self.steps)

    def count(self, query: str) -> ModelCount:
        """Count the rows that satisfy a query; by the rows of a release, if it was read from it."""
        if self.origin is None:
            return super().count(query)
        return model_count(query, self.schema, [self.released], rows=self.rows, noise=self.noise)

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write a release folder, which `parley.load` reads and `parley verify` checks."""
        with release.new_folder(Path(path), overwrite=overwrite) as folder:
            write_release(folder, self)

    def drawing(self) -> NetworkDrawing:
        """Draw the network, or the strongest dependences in a sample."""
        return study_drawing(self.model, self.schema, self.sample_codes())

    def _made(self) -> list[tuple[str, object]]:
        study = self.study
        return [
            ("study", study.name),
            ("method", study.method),
            ("parties", ", ".join(f"{m.name} ({many(m.rows, 'row')})" for m in study.members)),
            *self._missing_lines(),
            ("profile", study.profile),
            ("noise", study.noise.value),
            ("aggregation", study.aggregation.value),
            ("colluding parties tolerated", study.effective_colluders),
            ("attributes as", "bits" if study.encoding == "binary" else "their own domains"),
            *((each.name, each.value) for each in method_of(study).decisions(study)),
            *self._frequencies(),
            ("study digest", study.digest.hex()),
        ]

    def _frequencies(self) -> list[tuple[str, object]]:
        """Name the attributes whose rare values were drawn by the schema's public frequencies."""
        public = self.model.public if isinstance(self.model, SpreadModel) else {}
        names = [self.schema.names[a] for a, own in public.items() if own is not None]
        return [("rare values drawn by public frequencies of", ", ".join(names))] if names else []

    def _missing_lines(self) -> list[tuple[str, object]]:
        """Say which parties are in which sum, in a study that may miss parties."""
        if not self.study.may_miss:
            return []
        first = missing_in(self.study, [step.parties for step in self.steps])
        lines: list[tuple[str, object]] = [
            ("parties that may be missing", self.study.may_miss),
            ("parties that went missing", ", ".join(first) or "none"),
        ]
        left = self.privacy.get("left")
        if isinstance(left, dict):
            words = (f"{name} (left after sum {number})" for name, number in left.items())
            lines.append(("parties that left and are counted", ", ".join(words)))
        if first:
            lines += [
                (f"parties in sum {number}, {step.name}", ", ".join(step.parties))
                for number, step in enumerate(self.steps, start=1)
            ]
        return lines

    def method_facts(self, synthetic: Codes) -> MethodFacts:
        """Return what the report tells of this study."""
        forecast = floor_forecast(
            self.model,
            [step for step in self.steps if step.phase != PHASE],
            synthetic,
            rows=self.rows,
            promise=self.study.method_promise,
        )
        tables = study_tables(self.study, self.steps)
        shares = study_shares(self.study, self.steps, self.results)
        return replace(
            self._table_facts(tables, shares, self._made()),
            network=study_drawing(self.model, self.schema, synthetic),
            method_cautions=cautions_of(self.study),
            more=[*_criteria(self.privacy), _traffic(self.transcript)],
            title=self.study.name,
            below_floor=forecast.words() if forecast and forecast.below_floor else None,
        )

    @property
    def study_digest(self) -> bytes:
        """The digest of the study."""
        return self.study.digest

    def write_own_files(self, folder: Path) -> None:
        """Write the study, its results and its transcript, and the prior if there is one."""
        release.write_json(folder / release.TRANSCRIPT, without_times(self.transcript))
        (folder / release.STUDY).write_text(self.study.to_toml(), encoding="utf-8")
        release.write_results(folder / release.RESULTS, self.results)
        if self.prior is not None:
            (folder / release.PRIOR).write_bytes(self.prior.data)

    def _content(self) -> dict[str, object]:
        return {
            "method": self.study.method,
            "rows": self.rows,
            "model": self.model.as_json(),
            "noise_in_a_count": self.noise,
        }


def study_drawing(model: Model, schema: Schema, synthetic: Codes) -> NetworkDrawing:
    """Draw the model's network; without a network, the tree of the strongest dependences.

    Strengths are mutual information in the synthetic rows, so nothing real is looked at.
    """
    if not isinstance(model, NetworkModel) or model.variables.in_bits:
        return _strongest_tree(schema.names, synthetic)
    names = schema.names
    pairs = [(view.attribute, pair.child) for pair in model.network.pairs for view in pair.parents]
    strengths, notes = dict[Edge, float](), dict[Edge, str]()
    for (a, b), counts in zip(pairs, count(synthetic, pairs), strict=True):
        edge = (names[a], names[b])
        strengths[edge] = mutual_information(counts.astype(np.float64))
        chance = "" if significant(counts, among=len(pairs)) else _BY_CHANCE
        notes[edge] = f"{strengths[edge]:.3f} bits{chance}"
    order = [names[pair.child] for pair in model.network.pairs]
    return NetworkDrawing(order, strengths, notes, _DRAWN)


def _strongest_tree(names: Sequence[str], synthetic: Codes) -> NetworkDrawing:
    """Draw a maximum spanning tree of significant dependences, from the first attribute on."""
    pairs = list(combinations(range(synthetic.width), 2))
    strength = {
        pair: mutual_information(counts.astype(np.float64))
        if significant(counts, among=len(pairs))
        else 0.0
        for pair, counts in zip(pairs, count(synthetic, pairs), strict=True)
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


def _criteria(privacy: Mapping[str, Any]) -> list[Section]:
    """Show which criteria the model meets, if the study named any."""
    if not privacy["criteria"]:
        return []
    words = (
        "The owners agreed on these criteria beforehand. Each was measured in their rows, with "
        "noise, after the model was fitted. All verdicts together are right with a probability of "
        "95 %. A distance is the mean over the owners. It includes differences by chance: compare "
        "it with the distance of rows drawn from the model."
    )
    lines = [list(release.verdict_words(each)) for each in privacy["criteria"]]
    shown = table(["criterion", "", "measured"], lines)
    return [Section("Criteria", joined([paragraph(words), shown]))]


def _traffic(transcript: Mapping[str, Any]) -> Section:
    lines = [
        [
            phase,
            traffic.rounds,
            sum(traffic.sent.values()),
            sum(traffic.received.values()),
        ]
        for phase, traffic in phases_of(transcript).items()
    ]
    headings = ["phase", "rounds", "bytes from the parties", "bytes to the parties"]
    return Section("Communication", table(headings, lines))
