"""What a study of several owners releases; and what of it follows without any row.

How far would a release scatter? The study's script is run again on rows drawn from its model
(`refit_study`): they are dealt out to the parties, every sum is counted and gets fresh noise of its
law, and the script goes on to its model. Only the cryptography, which changes no sum, is left out.

Would independent columns be closer to the truth? A network pays for its dependences with noise: its
tables are larger and more of them share the budget. Where the noise that it adds to the single
attributes exceeds the dependence it shows, the noisy one-way marginals alone, the method `floor`,
are expected to be closer to the truth (`floor_forecast`), and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np

from common.bayes.form import Model
from common.errors import InputError, LocalError
from common.fitted.compared import compared_sums
from common.fitted.dependences import Dependences, study_dependences
from common.fitted.model import NO_ROWS, DrawnModel, ModelCount, model_count
from common.marginals import count
from common.methods.criteria import PHASE
from common.methods.prior import Prior
from common.methods.registry import cautions_of, method_of, run_of
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.privacy.promise import Promise
from common.privacy.randomness import RandomSource
from common.release import folder as release
from common.release.folder import commitments_text
from common.release.manifest import MethodVersion
from common.release.measured import (
    MeasuredTable,
    Shares,
    noise_distance,
    study_noise,
    study_shares,
    study_tables,
)
from common.release.model_file import study_content
from common.release.prior import PriorRelease, replay
from common.release.totals import BinTotal, study_totals
from common.schema import Codes
from common.schema.codes import binarise
from common.study.accounting import missing_in
from common.study.analyses import Analysis
from common.study.commitments import Commitments
from common.study.document import Study
from common.study.script import ScriptRun, drive
from common.study.steps import OnePlace, Result, Step
from common.study.transcript import Phases, phases_of, without_times
from common.wording import many


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class StudyFit(DrawnModel):
    """The outcome of a study; see `DrawnModel` for what is not here."""

    study: Study
    results: tuple[bytes, ...]  # what was published in each step
    transcript: Mapping[str, object]  # by phase and party; a release leaves the seconds out
    prior: PriorRelease | None = None  # the release that the study builds on
    # If None they are derived when something asks for them.
    steps_and_model: tuple[tuple[Step, ...], Model] | None = None
    commitments: Commitments | None = None  # what the owners committed to, if they did

    @cached_property
    def _script(self) -> ScriptRun:
        return replay(self.study, self.results, self.missing, self.prior)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return self._script.steps if self.steps_and_model is None else self.steps_and_model[0]

    @cached_property
    def model(self) -> Model:
        """What the curator learnt; slow where it is derived."""
        return self._script.model() if self.steps_and_model is None else self.steps_and_model[1]

    def __getstate__(self) -> dict[str, object]:
        """Hand the model to another process, and not the script that leads to it."""
        state = {name: value for name, value in vars(self).items() if name != "_script"}
        return state | {"steps_and_model": (self.steps, self.model)}

    @property
    def rows(self) -> int:
        return self.study.rows

    @property
    def output_rows(self) -> int:
        return (self.study.output_rows or self.rows) if self.has_rows else 0

    @property
    def has_rows(self) -> bool:
        return method_of(self.study).publishes_rows

    @property
    def missing(self) -> Mapping[str, int]:
        """For each party that went missing, the first step without it."""
        by_party = self.privacy.get("missing")
        return by_party if isinstance(by_party, dict) else {}

    @property
    def _drawn_from(self) -> Model:
        return self.model

    def refit(self, rows: Codes, source: RandomSource) -> StudyFit:
        """Run the study's own script again, on rows of the model in place of the owners'.

        Its fit starts from the model: replicates scatter as they do from a fresh start, in a third
        of the time (docs/benchmarks.md).
        """
        prior = None if self.prior is None else self.prior.rows
        model = refit_study(self.study, rows, source, self.missing, prior, near=self.model)
        return replace(self, steps_and_model=(self.steps, model))

    @property
    def tables(self) -> list[MeasuredTable]:
        return study_tables(self.study, self.steps)

    def compared(self, synthetic: Codes) -> list[MeasuredTable]:
        return compared_sums(self.study, self.steps, self.results, synthetic)

    @property
    def shares(self) -> list[Shares | None]:
        """Those of the published tables that tell most."""
        return study_shares(self.study, self.steps, self.results)

    @cached_property
    def totals(self) -> Mapping[int, BinTotal]:
        """Those that were published, divided among the classes of bins."""
        return study_totals(self.study, self.steps, self.results)

    @property
    def noise(self) -> Mapping[str, float]:
        """That of the published tables of all parties."""
        return study_noise(self.study, self.steps)

    def count(self, query: str) -> ModelCount:
        """Count the rows that satisfy a query; by the rows of a release, if it was read from it."""
        if not self.has_rows:
            raise InputError(NO_ROWS)
        if self.origin is None:
            return super().count(query)
        return model_count(query, self.schema, [self.released], rows=self.rows, noise=self.noise)

    def dependences(self, synthetic: Codes) -> Dependences | None:
        if not self.has_rows:
            return None
        return study_dependences(self.model, self.schema, synthetic, in_bits=self._in_bits)

    @property
    def _in_bits(self) -> bool:
        return self.study.encoding == "binary"

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        return self.study.analyses

    @property
    def title(self) -> str:
        return self.study.name

    @property
    def cautions(self) -> list[str]:
        return cautions_of(self.study)

    @property
    def traffic(self) -> Phases:
        return phases_of(self.transcript)

    def below_floor(self, synthetic: Codes) -> str | None:
        if not self.has_rows:
            return None
        forecast = floor_forecast(
            self.model,
            [step for step in self.steps if step.phase != PHASE],
            synthetic,
            rows=self.rows,
            promise=self.study.method_promise,
            in_bits=self._in_bits,
        )
        return forecast.words() if forecast and forecast.below_floor else None

    @property
    def how_made(self) -> list[tuple[str, object]]:
        study, row = self.study, self.schema.row
        return [
            ("study", study.name),
            ("method", study.method),
            ("parties", ", ".join(f"{m.name} ({many(m.rows, row)})" for m in study.members)),
            *self._missing_lines(),
            ("profile", study.profile),
            ("noise", study.noise.value),
            ("aggregation", study.aggregation.value),
            ("colluding parties tolerated", study.effective_colluders),
            ("attributes as", "bits" if self._in_bits else "their own domains"),
            *((decision.name, decision.value) for decision in method_of(study).decisions(study)),
            *self._frequencies(),
            ("study digest", study.digest.hex()),
        ]

    def _frequencies(self) -> list[tuple[str, object]]:
        """Name the attributes whose rare values were drawn by the schema's public frequencies."""
        names = [self.schema.names[a] for a in self.model.by_public_frequencies]
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

    @property
    def made_with(self) -> MethodVersion:
        return MethodVersion(self.study.method, method_of(self.study).version)

    @property
    def study_digest(self) -> bytes:
        return self.study.digest

    def write_own_files(self, folder: Path) -> None:
        release.write_json(folder / release.TRANSCRIPT, without_times(self.transcript))
        (folder / release.STUDY).write_text(self.study.to_toml(), encoding="utf-8")
        release.write_results(folder / release.RESULTS, self.results)
        if self.commitments is not None:
            text = commitments_text(self.commitments)
            (folder / release.COMMITMENTS).write_text(text, encoding="utf-8")
        if self.prior is not None:
            (folder / release.PRIOR).write_bytes(self.prior.data)

    def _content(self) -> dict[str, object]:
        return study_content(self.study, self.steps, self.model, self.results)


def refit_study(
    study: Study,
    rows: Codes,
    source: RandomSource,
    missing: Mapping[str, int] = MappingProxyType({}),
    prior: Prior | None = None,
    near: Model | None = None,
) -> Model:
    """Take the study's script to its model on these rows, dealt out to the parties in their order.

    Parties go `missing` as they did, each before a step. The fit may start `near` a model, if the
    rows were drawn from it.
    """
    if rows.rows != study.rows:
        raise LocalError(f"the study has {study.rows} rows, not {rows.rows}")
    place = dealt_out(study, rows, source)

    def answer(step: Step) -> Result:
        if step.phase == PHASE:
            return np.zeros(step.cells, np.int64)  # criteria: nothing of the model follows
        return place.answer(step)

    run = drive(run_of(study, prior), answer, missing)
    return run.model(near)


def dealt_out(study: Study, rows: Codes, source: RandomSource) -> OnePlace:
    ends = np.cumsum([0, *study.rows_of.values()]).tolist()
    parts = [rows.take(slice(start, end)) for start, end in pairwise(ends)]
    return OnePlace(study, dict(zip(study.parties, parts, strict=True)), source)


@dataclass(frozen=True, slots=True)
class FloorForecast:
    """Average distances of two-way marginals: what noise adds, and what dependence is worth."""

    noise: float  # that this method's tables add to a pair's two margins
    floor_noise: float  # that noisy one-way marginals would add to them
    dependence: float  # how far the released pairs are from independent pairs

    @property
    def below_floor(self) -> bool:
        """Whether independent columns are expected to be closer to the truth."""
        return self.noise - self.floor_noise > self.dependence

    def words(self) -> str:
        return (
            "Below the floor: at this budget, noisy one-way marginals alone (method floor) are "
            "expected to be closer to the truth than this release. On average the noise of this "
            f"release moves a pair by {self.noise:.2f}, that of the floor by "
            f"{self.floor_noise:.2f}, and the dependence in this release is worth "
            f"{self.dependence:.2f}. A larger epsilon, more rows or subn+ would help."
        )


def floor_forecast(
    model: Model,
    steps: Sequence[Step],
    synthetic: Codes,
    *,
    rows: int,
    promise: Promise,
    in_bits: bool,
) -> FloorForecast | None:
    """Forecast for a network learnt from noisy tables; return None for any other model."""
    last = steps[-1] if steps else None
    if model.arrows is None or last is None or last.law is None or synthetic.width < 2:
        return None
    law = last.law
    shown = binarise(synthetic) if in_bits else synthetic
    # The first variable of a family's table is the one that is drawn.
    noise = [_margin_noise(table.shape[0], table.cells, law, rows) for table in last.tables]
    moved = sensitivity.histograms(synthetic.width)
    alone = promise.law(promise.budget, moved)
    floor = [_margin_noise(size, size, alone, rows) for size in synthetic.sizes]
    return FloorForecast(
        noise=2 * float(np.mean(noise)),
        floor_noise=2 * float(np.mean(floor)),
        dependence=_distance_from_independence(shown),
    )


def _margin_noise(size: int, cells: int, law: NoiseLaw, rows: int) -> float:
    """Return the expected distance of an attribute's margin, summed out of a noisy table."""
    return noise_distance(size * math.sqrt(law.variance() * cells / size), rows)


def _distance_from_independence(codes: Codes) -> float:
    distances = []
    for counts in count(codes, list(combinations(range(codes.width), 2))):
        law = counts / max(1, codes.rows)
        product = law.sum(axis=1, keepdims=True) * law.sum(axis=0, keepdims=True)
        distances.append(float(np.abs(law - product).sum() / 2))
    return float(np.mean(distances))
