"""What every fitted model can do at no further cost: make synthetic rows, and answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd

from common.bayes.form import Model
from common.errors import InputError
from common.fitted.dependences import Dependences
from common.methods.conditional import ConditionalModel, Draw
from common.privacy.laws.discrete_laplace import KURTOSIS
from common.privacy.randomness import RandomSource, SeededRandomSource, source_of
from common.release.folder import TABLE
from common.release.manifest import MethodVersion
from common.release.measured import ExpectedError, MeasuredTable, Shares, expected_errors
from common.release.model_file import model_document
from common.release.synthetic_table import TableColumns
from common.release.totals import BinTotal
from common.schema import Codes, Schema
from common.schema.conditions import CellWeights, Condition, cells_of, parse, weights_of
from common.schema.decoder import Insides
from common.study.analyses import Analysis
from common.study.transcript import Phases
from common.wavelet.noisy_matrix import half_widths
from common.wording import many

SUFFIX = ".replicates"
NO_ROWS = (
    "this release has no synthetic rows: its study asked for answers only. See them with `parley "
    "answers`, or run a study with method subn+"
)
_KEY_DIGITS = 16
_SHOWN = 8  # names of columns
_BLOCK_ROWS, _BLOCKS = 1 << 16, 16  # about a million rows for an answer
_HARDLY_ANY = 1e-6  # a variance to divide by where there is none

Noise = Mapping[str, float]  # by attribute: the deviation of the count of one value, in rows


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a release was read from."""

    path: Path
    digest: str  # of its manifest, in hexadecimal
    released: Codes | None  # its synthetic rows; None if it has none

    def cache(self, seed: int) -> Path:
        """Return the folder of replicates: beside the release, under what they depend on."""
        version = metadata.version("parley")
        key = f"{self.digest[:_KEY_DIGITS]}-{version}-seed-{seed}"
        return self.path.with_name(f"{self.path.name}{SUFFIX}") / key


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedModel(ABC):
    """What was released of real rows under differential privacy: all of it may be published."""

    schema: Schema  # the public domains
    privacy: dict[str, object]  # the privacy statement, as in privacy.json
    columns: TableColumns  # the columns of the real table, or of the owners'
    seed: int | None = None  # of a run that is not private
    origin: Origin | None = None  # the release that it was read from, if it was

    def __repr__(self) -> str:
        names = self.schema.names
        shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        private = "" if self.privacy["private"] else ", NOT PRIVATE"
        return (
            f"{type(self).__name__}: {many(self.rows, 'row')}, {many(len(names), 'column')}, "
            f"epsilon {self.privacy['epsilon_delivered']:g}{private}\n  columns: {shown}\n"
            f"  {self._use}"
        )

    @property
    def _use(self) -> str:
        rows = "sample() draws rows; count(...) and estimate(...) answer"
        return rows if self.has_rows else "answers() has the declared analyses; there are no rows"

    @cached_property
    def released(self) -> Codes:
        """The rows of the release that it was read from, else rows drawn once.

        A release without synthetic rows has rows that stand for its sums, the same each time.
        """
        if not self.has_rows:
            return self.draw(self.rows, SeededRandomSource("rows that stand for sums"))
        known = None if self.origin is None else self.origin.released
        return self.sample_codes() if known is None else known

    @property
    def has_rows(self) -> bool:
        return True

    @property
    @abstractmethod
    def tables(self) -> Sequence[MeasuredTable]:
        """The tables that the release tells, with the noise in their cells."""

    @abstractmethod
    def compared(self, synthetic: Codes) -> Sequence[MeasuredTable]:
        """Return what was measured, with how far these rows are from it."""

    @property
    def every_cell(self) -> bool:
        """Whether every cell was counted, under noise that depends from cell to cell."""
        return False

    @property
    @abstractmethod
    def shares(self) -> Sequence[Shares | None]:
        """The noisy distribution of every attribute, None where there is none."""

    @property
    def totals(self) -> Mapping[int, BinTotal]:
        """What is known of the numbers inside the bins of columns, by attribute."""
        return {}

    @cached_property
    def inside(self) -> Insides:
        """Where in their bins numbers are drawn, as far as it is known."""
        return {a: total.inside for a, total in self.totals.items()}

    @property
    def column_errors(self) -> Sequence[ExpectedError]:
        """What noise does to each column, as far as it is known."""
        return expected_errors(self.tables, 1)

    @property
    def pair_errors(self) -> Sequence[ExpectedError]:
        """What noise does to each pair that was counted."""
        return expected_errors(self.tables, 2)

    @property
    @abstractmethod
    def how_made(self) -> Sequence[tuple[str, object]]:
        """How the release was made, as pairs of a word and its value."""

    @property
    def cautions(self) -> Sequence[str]:
        """What the method itself says must be known first."""
        return ()

    def dependences(self, synthetic: Codes) -> Dependences | None:
        """Return the network, or the strongest dependences in these rows, if there are any."""
        return None

    def below_floor(self, synthetic: Codes) -> str | None:
        """Say so where independent columns are expected to be closer to the truth."""
        return None

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """What its study declared to be for; empty for a release of a single owner's method."""
        return ()

    @property
    def title(self) -> str | None:
        """The name of the study; None for a release of a single owner."""
        return None

    @property
    def traffic(self) -> Phases:
        """What was sent in each phase of a study; empty for a release of a single owner."""
        return {}

    @abstractmethod
    def write_own_files(self, folder: Path) -> None:
        """Write the files that only a release of this kind has."""

    @property
    def study_digest(self) -> bytes | None:
        """The digest of the study; None for a release of a single owner."""
        return None

    @property
    @abstractmethod
    def made_with(self) -> MethodVersion:
        """Which version of which method made it."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The public number of real rows, of all owners together."""

    @abstractmethod
    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Draw synthetic rows from a source of the caller's; called from several threads."""

    @abstractmethod
    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """Return what draws the rows that satisfy a condition, exactly and at no cost."""

    @abstractmethod
    def refit(self, rows: Codes, source: RandomSource) -> FittedModel:
        """Release these rows by this method, with fresh noise."""

    @abstractmethod
    def _content(self) -> dict[str, object]:
        """Return what model.json holds of this kind of model, its method first."""

    def to_json(self) -> dict[str, object]:
        """Return the content of model.json, as plain JSON values."""
        return model_document(
            self._content(), schema=self.schema, columns=self.columns, privacy=self.privacy
        )

    @property
    def output_rows(self) -> int:
        return self.rows

    def sample_codes(self, rows: int | None = None, *, where: str = "") -> Codes:
        """Draw synthetic rows as codes of the schema; see `sample`."""
        if not self.has_rows:
            raise InputError(NO_ROWS)
        size = self.output_rows if rows is None else rows
        try:
            number = int(size)  # 10.0 is ten: numbers of pandas often are floats
        except (TypeError, ValueError, OverflowError):
            number = -1
        if number < 0 or number != size:
            raise InputError(f"cannot sample {size!r} rows: give a whole number, 0 or more")
        return self.draw_where(where)(number, source_of(self.seed, "rows"))

    def draw_where(self, where: str) -> Draw:
        """Return what draws rows that satisfy a condition; all rows satisfy an empty one."""
        condition = weights_of(parse(where, self.schema), self.schema.sizes)
        return self.given(condition) if condition else self.draw

    def decode(self, codes: Codes, source: RandomSource | None = None) -> pd.DataFrame:
        """Return codes as a table like the real table; `source` places numbers in their bins."""
        source = source or source_of(self.seed, "numbers")
        table = self.schema.decode(codes, source, self.inside)
        return self.columns.shape(table, self.schema)

    def frames(self, codes: Codes, source: RandomSource | None = None) -> dict[str, pd.DataFrame]:
        """Return codes as the tables of a release, by the names of their files."""
        return {TABLE: self.decode(codes, source)}

    def sample(self, rows: int | None = None, *, where: str = "") -> pd.DataFrame:
        """Draw any number of synthetic rows, by default `output_rows`; they cost nothing.

        The schema decides the types: whole numbers that may be missing are pandas' Int64, whatever
        they were in the real table, whose types would tell of its cells.

        Args:
            rows: how many.
            where: a condition that every row satisfies, like "age >= 65 and sex = Female"; see
                `common.schema.query`. Rows have the model's distribution given the condition.

        Raises:
            InputError: the condition is not understood, or no row of the model satisfies it.
        """
        return self.decode(self.sample_codes(rows, where=where))


class DrawnModel(FittedModel):
    """A fitted model that answers by rows drawn from it."""

    @property
    @abstractmethod
    def noise(self) -> Mapping[str, float]:
        """The deviation of the count of one value of each attribute of which it is known."""

    @property
    @abstractmethod
    def _drawn_from(self) -> Model:
        """What rows are drawn from, rules aside."""

    @cached_property
    def _possible(self) -> ConditionalModel:
        return ConditionalModel(self._drawn_from, self.schema.possible)

    def draw(self, rows: int, source: RandomSource) -> Codes:
        return self._possible.sample(rows, source)

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        return self._possible.given(condition)

    def count(self, query: str) -> ModelCount:
        """Count the rows that satisfy a query, by about a million rows drawn from the model.

        A query is like "age in 20..39 and sex = Female"; see `common.schema.query`.
        """
        source = source_of(self.seed, "count")
        blocks = (self._possible.sample(_BLOCK_ROWS, source) for _ in range(_BLOCKS))
        return model_count(query, self.schema, blocks, rows=self.rows, noise=self.noise)


@dataclass(frozen=True, slots=True)
class ModelCount:
    """How many rows a model expects to satisfy a query."""

    value: float  # of as many rows as the model was fitted to
    share: float  # that number as a share of the rows
    attributes: tuple[str, ...]  # those that the query is about
    rows: int  # as many as the model was fitted to
    sampling_deviation: float  # from answering with a sample of the model
    # From the noise in the released tables, about; None if it is not known, and for conditions on
    # several attributes.
    noise_deviation: float | None

    @property
    def standard_deviation(self) -> float | None:
        """Of noise and drawing together; None if the noise is not known."""
        if self.noise_deviation is None:
            return None
        return math.hypot(self.sampling_deviation, self.noise_deviation)

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Return an interval for the true count; None without a standard deviation."""
        deviation = self.standard_deviation
        if deviation is None:
            return None
        variance = np.array([max(deviation**2, _HARDLY_ANY)])
        # The tails of a single draw of Laplace noise: longer than those of any sum of draws.
        half = float(half_widths(variance, KURTOSIS * variance**2, confidence)[0])
        return max(0.0, self.value - half), min(float(self.rows), self.value + half)


def model_count(
    query: str, schema: Schema, sample: Iterable[Codes], *, rows: int, noise: Noise
) -> ModelCount:
    """Answer a query with rows of a model.

    Two errors are known. The rows are a sample of the model: the share that satisfies the condition
    has the deviation of a sample. And the model was made of noisy counts: for each attribute, the
    released table that tells most about it says how noisy the count of one of its values is. For
    conditions on several attributes neither error says how well the model holds them together:
    those take the intervals of `estimate`.
    """
    condition = parse(query, schema)
    drawn, matches = 0, 0
    for block in sample:
        drawn += block.rows
        matches += condition.matching(block)
    share = matches / max(1, drawn)
    return ModelCount(
        value=share * rows,
        share=share,
        attributes=condition.attributes,
        rows=rows,
        sampling_deviation=math.sqrt(share * (1 - share) / max(1, drawn)) * rows,
        noise_deviation=_noise(condition, schema, noise),
    )


def _noise(condition: Condition, schema: Schema, noise: Noise) -> float | None:
    """Return the noise in the count of a set of values of one attribute; of all rows, 0.

    The counts of an attribute are made to add up to the public number of rows, so a set of m of its
    s values has the noise of m (s - m) / s of them.
    """
    if not condition.attributes:
        return 0.0
    per_value = noise.get(condition.attributes[0])
    if len(condition.attributes) > 1 or per_value is None:
        return None
    _, values = cells_of(condition.root, schema.sizes)
    inside, size = int(values.sum()), len(values)
    return per_value * math.sqrt(inside * (size - inside) / size)
