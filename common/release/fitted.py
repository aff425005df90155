"""What every fitted model can do at no further cost: make synthetic rows, and answer."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import metadata
from pathlib import Path

import pandas as pd

from common.bayes.privbayes.model import PrivBayesModel
from common.errors import InputError
from common.methods.conditional import ConditionalModel, Draw
from common.privacy.randomness import RandomSource, SeededRandomSource, source_of
from common.release import folder
from common.release.diagnostics import Diagnostics, Measured, expected_errors
from common.release.estimates import (
    CONFIDENCE,
    Estimate,
    ModelCount,
    estimate,
    model_count,
    related,
)
from common.release.measured import Shares
from common.release.replicates import TABLES, Replicates, Replicator
from common.release.report.means import means
from common.release.report.network_picture import NetworkDrawing
from common.release.report.release_page import MethodFacts
from common.release.statistics import CodedTable, Statistic, of_table
from common.release.synthetic_table import Columns
from common.release.writing import write_release
from common.schema import Codes, Schema
from common.schema.conditions import CellWeights, parse, weights_of
from common.study.steps import Model
from common.wording import Reporter, many, silent

SEED = 1
SUFFIX = ".replicates"
_KEY_DIGITS = 16
_SHOWN = 8  # names of columns
_BLOCK_ROWS, _BLOCKS = 1 << 16, 16  # about a million rows for an answer
FORMAT = "parley model 1"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a release was read from."""

    path: Path
    digest: str  # of its manifest, in hexadecimal
    released: Codes

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
    columns: Columns  # the columns of the real table, or of the owners'
    seed: int | None = None  # of a run that is not private
    origin: Origin | None = None  # the release that it was read from, if it was

    def __repr__(self) -> str:
        names = self.schema.names
        shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        private = "" if self.privacy["private"] else ", NOT PRIVATE"
        return (
            f"{type(self).__name__}: {many(self.rows, 'row')}, {many(len(names), 'column')}, "
            f"epsilon {self.privacy['epsilon_delivered']:g}{private}\n  columns: {shown}\n"
            "  sample() draws rows; count(...) and estimate(...) answer"
        )

    def report(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the report of a release of this model: one page, for a browser."""
        folder.check_file(Path(path), overwrite=overwrite)
        with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
            write_release(Path(scratch), self)
            text = (Path(scratch) / folder.REPORT).read_text(encoding="utf-8")
        folder.write_file(Path(path), text)

    @cached_property
    def released(self) -> Codes:
        """The rows of the release that it was read from, else rows drawn once."""
        return self.sample_codes() if self.origin is None else self.origin.released

    @abstractmethod
    def diagnose(self, synthetic: Codes) -> Diagnostics:
        """Return what was measured, and how well these rows follow."""

    @abstractmethod
    def method_facts(self, synthetic: Codes) -> MethodFacts:
        """Return what the report tells of a release of these rows that depends on the method."""

    @abstractmethod
    def write_own_files(self, folder: Path) -> None:
        """Write the files that only a release of this kind has."""

    @property
    def study_digest(self) -> bytes | None:
        """The digest of the study; None for a release of a single owner."""
        return None

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
        shared = {"schema": self.schema.to_toml(), "columns": dict(self.columns.kinds)}
        return {"format": FORMAT, **self._content(), **shared, "privacy": self.privacy}

    @property
    def output_rows(self) -> int:
        """The number of synthetic rows that are made by default."""
        return self.rows

    def sample_codes(self, rows: int | None = None, *, where: str = "") -> Codes:
        """Draw synthetic rows as codes of the schema; see `sample`."""
        wanted = self.output_rows if rows is None else rows
        try:
            number = int(wanted)  # 10.0 is ten: numbers of pandas often are floats
        except (TypeError, ValueError, OverflowError):
            number = -1
        if number < 0 or number != wanted:
            raise InputError(f"cannot sample {wanted!r} rows: give a whole number, 0 or more")
        return self.draw_where(where)(number, source_of(self.seed, "rows"))

    def draw_where(self, where: str) -> Draw:
        """Return what draws rows that satisfy a condition; all rows satisfy an empty one."""
        condition = weights_of(parse(where, self.schema), self.schema.sizes)
        return self.given(condition) if condition else self.draw

    def decode(self, codes: Codes, source: RandomSource | None = None) -> pd.DataFrame:
        """Return codes as a table like the real table; `source` places numbers in their bins."""
        table = self.schema.decode(codes, source or source_of(self.seed, "numbers"))
        return self.columns.shape(table, self.schema)

    def sample(self, rows: int | None = None, *, where: str = "") -> pd.DataFrame:
        """Draw any number of synthetic rows, by default `output_rows`; they cost nothing.

        Args:
            rows: how many.
            where: a condition that every row satisfies, like "age >= 65 and sex = Female"; see
                `common.schema.query`. Rows have the model's distribution given the condition.

        Raises:
            InputError: the condition is not understood, or no row of the model satisfies it.
        """
        return self.decode(self.sample_codes(rows, where=where))

    @property
    def diagnostics(self) -> Diagnostics:
        """What the release measured, and how well its rows follow."""
        return self.diagnose(self.released)

    def replicated(
        self, tables: int = TABLES, *, seed: int = SEED, tell: Reporter = silent
    ) -> Replicates:
        """Return the release and its replicates, as codes; they are made once."""
        cache = None if self.origin is None else self.origin.cache(seed)
        if (tables, seed) not in self._replicates:
            made = Replicator(self, self.released, seed, cache).run(tables, tell=tell)
            self._replicates[tables, seed] = made
        return self._replicates[tables, seed]

    @cached_property
    def _replicates(self) -> dict[tuple[int, int], Replicates]:
        return {}

    def replicates(
        self, tables: int = TABLES, *, seed: int = SEED, tell: Reporter = silent
    ) -> list[pd.DataFrame]:
        """Make tables like the released table, each from its own refit; a seed repeats them."""
        made = self.replicated(tables, seed=seed, tell=tell)
        return [
            self.decode(codes, SeededRandomSource(f"numbers/{number}"))
            for number, codes in enumerate(made.tables, start=1)
        ]

    def estimate(
        self,
        statistic: Statistic | Callable[[pd.DataFrame], object],
        *,
        uses: Iterable[str] | None = None,
        tables: int = TABLES,
        seed: int = SEED,
        confidence: float = CONFIDENCE,
        tell: Reporter = silent,
    ) -> list[Estimate]:
        """Estimate a statistic of the population, with an interval.

        Args:
            statistic: a function of a table that returns a number, or a Series or dict of numbers.
            uses: the columns whose relations it rests on; found out by shuffling each if None.
            tables: how many replicates to look at.
            seed: of the replicates.
            confidence: of the intervals.
            tell: told how far the work is.
        """
        if callable(statistic):
            statistic = self._of_table(statistic, uses)
        if not isinstance(statistic, Statistic):
            raise InputError(
                f"estimate: expected a function of a table, not {statistic!r:.100}. Write it like "
                'lambda table: table["income"].mean()'
            )
        made = self.replicated(tables, seed=seed, tell=tell)
        flagged = bool(self.concerns(statistic))
        return estimate(statistic, made, flagged=flagged, confidence=confidence)

    def concerns(self, statistic: Statistic) -> list[str]:
        """Return the reasons why a statistic is flagged, if any."""
        return self.diagnostics.concerns(statistic.attributes, pairwise=statistic.pairwise)

    def _of_table(
        self, compute: Callable[[pd.DataFrame], object], uses: Iterable[str] | None
    ) -> Statistic:
        if uses is not None:
            names = frozenset(uses)
            for name in names:
                self.schema.position(name)
            return of_table(compute, names)
        table = CodedTable(self.schema, self.released)
        return of_table(compute, related(compute, table.frame))


class DrawnModel(FittedModel):
    """A fitted model that answers by rows drawn from it."""

    @property
    @abstractmethod
    def noise(self) -> Mapping[str, float]:
        """The deviation of the count of one value of each attribute of which it is known."""

    @property
    @abstractmethod
    def _drawn_from(self) -> Model | PrivBayesModel:
        """What rows are drawn from, rules aside."""

    @abstractmethod
    def drawing(self) -> NetworkDrawing:
        """Draw the network, or the strongest dependences."""

    def _table_facts(
        self,
        tables: Sequence[Measured],
        shares: Sequence[Shares | None],
        made: Sequence[tuple[str, object]],
    ) -> MethodFacts:
        """Return what noisy tables and the shares of their values tell."""
        columns = expected_errors(tables, 1)
        return MethodFacts(
            made=made,
            shares=shares,
            columns=columns,
            pairs=expected_errors(tables, 2),
            means=means(self.schema, shares, columns, self.rows),
        )

    @cached_property
    def _possible(self) -> ConditionalModel:
        return ConditionalModel(self._drawn_from, self.schema.possible)

    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Draw synthetic rows from a source of the caller's."""
        return self._possible.sample(rows, source)

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """Return what draws the rows that satisfy a condition."""
        return self._possible.given(condition)

    def count(self, query: str) -> ModelCount:
        """Count the rows that satisfy a query, by about a million rows drawn from the model.

        Args:
            query: like "age in 20..39 and sex = Female"; see `common.schema.query`.
        """
        source = source_of(self.seed, "count")
        blocks = (self.draw(_BLOCK_ROWS, source) for _ in range(_BLOCKS))
        return model_count(query, self.schema, blocks, rows=self.rows, noise=self.noise)

    def network_svg(self) -> str:
        """Return the drawing as a picture, strong edges thick."""
        return self.drawing().svg()

    def _repr_html_(self) -> str:
        words = escape(repr(self)).replace("\n", "<br>")
        return f"<div><p>{words}</p>{self.network_svg()}</div>"
