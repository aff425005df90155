"""What a release can be asked: estimates with intervals, replicates, diagnostics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from common.privacy.randomness import SeededRandomSource
from common.release.diagnostics import Diagnostics
from common.release.estimates import CONFIDENCE, Estimate, estimate, related
from common.release.progress import Reporter, silent
from common.release.replicates import TABLES, Replicates, Replicator
from common.release.statistics import CodedTable, Statistic, of_table
from common.schema import Codes, Schema

if TYPE_CHECKING:
    from common.release.fitted import FittedModel

SEED = 1
_KEY_DIGITS = 16
SUFFIX = ".replicates"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a release was read from."""

    path: Path
    digest: str  # of its manifest, in hexadecimal
    released: Codes

    def cache(self, seed: int) -> Path:
        """Where replicates are kept: beside the release, under what they depend on."""
        version = metadata.version("parley")
        key = f"{self.digest[:_KEY_DIGITS]}-{version}-seed-{seed}"
        return self.path.with_name(f"{self.path.name}{SUFFIX}") / key


class Askable(ABC):
    """A release, or what will be one."""

    schema: Schema
    origin: Origin | None

    @property
    @abstractmethod
    def learnt(self) -> FittedModel:
        """The released model."""

    @property
    @abstractmethod
    def released(self) -> Codes:
        """The synthetic rows of the release."""

    @property
    def diagnostics(self) -> Diagnostics:
        """What the release measured, and how well its rows follow."""
        return self.learnt.diagnose(self.released)

    def replicated(
        self, tables: int = TABLES, *, seed: int = SEED, tell: Reporter = silent
    ) -> Replicates:
        """The release and its replicates, as codes."""
        cache = None if self.origin is None else self.origin.cache(seed)
        return Replicator(self.learnt, self.released, seed, cache).run(tables, tell=tell)

    def replicates(
        self, tables: int = TABLES, *, seed: int = SEED, tell: Reporter = silent
    ) -> list[pd.DataFrame]:
        """Tables like the released one, each from its own refit; the same for the same seed."""
        made = self.replicated(tables, seed=seed, tell=tell)
        return [self._decoded(codes, number) for number, codes in enumerate(made.tables, start=1)]

    def _decoded(self, codes: Codes, number: int) -> pd.DataFrame:
        table = self.schema.decode(codes, SeededRandomSource(f"numbers/{number}"))
        return self.learnt.columns.shape(table, self.schema)

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
        made = self.replicated(tables, seed=seed, tell=tell)
        flagged = bool(self.concerns(statistic))
        return estimate(statistic, made, flagged=flagged, confidence=confidence)

    def concerns(self, statistic: Statistic) -> list[str]:
        """Why a statistic is flagged; nothing if it is not."""
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
