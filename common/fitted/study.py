"""What a study of several owners releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from common.bayes.form import Model
from common.errors import InputError
from common.fitted.compared import compared_sums
from common.fitted.counts import ModelCount, model_count
from common.fitted.dependences import Dependences, study_dependences
from common.fitted.floor import floor_forecast
from common.fitted.model import NO_ROWS, DrawnModel
from common.fitted.refit import refit_study
from common.methods.criteria import PHASE
from common.methods.registry import cautions_of, method_of
from common.privacy.randomness import RandomSource
from common.release import folder as release
from common.release.folder import commitments_text
from common.release.manifest import MethodVersion
from common.release.measured import MeasuredTable, Shares, study_noise, study_shares, study_tables
from common.release.model_file import study_content
from common.release.prior import PriorRelease, replay
from common.release.totals import BinTotal, study_totals
from common.schema import Codes
from common.study.accounting import missing_in
from common.study.analyses import Analysis
from common.study.commitments import Commitments
from common.study.document import Study
from common.study.script import ScriptRun
from common.study.steps import Step
from common.study.transcript import Phases, phases_of, without_times
from common.wording import many


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class StudyFit(DrawnModel):
    """The outcome of a study; see `DrawnModel` for what is not here.

    Attributes:
        study: what was agreed.
        results: what was published in each step.
        transcript: bytes, rounds and seconds by phase and party; a release leaves the seconds out.
        prior: the release that the study builds on, if it does.
        steps_and_model: if None they are derived when something asks for them.
        commitments: what the owners committed to, if the study says that they do.
    """

    study: Study
    results: tuple[bytes, ...]
    transcript: Mapping[str, object]
    prior: PriorRelease | None = None
    steps_and_model: tuple[tuple[Step, ...], Model] | None = None
    commitments: Commitments | None = None

    @cached_property
    def _script(self) -> ScriptRun:
        return replay(self.study, self.results, self.missing, self.prior)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every step that was made."""
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
        """The public number of rows of all owners together."""
        return self.study.rows

    @property
    def output_rows(self) -> int:
        """The number of synthetic rows that are made by default."""
        return (self.study.output_rows or self.rows) if self.has_rows else 0

    @property
    def has_rows(self) -> bool:
        """Whether the method publishes synthetic rows."""
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
        """Every table that a published sum tells."""
        return study_tables(self.study, self.steps)

    def compared(self, synthetic: Codes) -> list[MeasuredTable]:
        """Compare every published sum with these rows."""
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
        """Return the network, or the strongest dependences in these rows."""
        if not self.has_rows:
            return None
        return study_dependences(self.model, self.schema, synthetic, in_bits=self._in_bits)

    @property
    def _in_bits(self) -> bool:
        return self.study.encoding == "binary"

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """What the study declared to be for."""
        return self.study.analyses

    @property
    def title(self) -> str:
        """The name of the study."""
        return self.study.name

    @property
    def cautions(self) -> list[str]:
        """What the method says must be known first."""
        return cautions_of(self.study)

    @property
    def traffic(self) -> Phases:
        """What was sent in each phase."""
        return phases_of(self.transcript)

    def below_floor(self, synthetic: Codes) -> str | None:
        """Say so where the method floor is expected to be closer to the truth."""
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
        """What the study agreed on, and what became of it."""
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
        """The digest of the study."""
        return self.study.digest

    def write_own_files(self, folder: Path) -> None:
        """Write the study, its results and its transcript, and the prior if there is one."""
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
