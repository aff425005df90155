"""Privelet for a table of one owner: range counts, and synthetic rows for small domains.

    >>> fitted = parley.Privelet(epsilon=1.0).fit(table, "schema.toml")
    >>> fitted.count("age in 20..39 and sex = Female")  # with its deviation and interval
    >>> fitted.save("ranges.zip")

Every cell of the domain gets noise, so the domain must be small enough to hold in memory; for many
attributes use PrivBayes.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.bayes.consistency import project
from common.errors import InputError
from common.privacy.budget import parse_epsilon
from common.privacy.randomness import RandomSource, uniforms
from common.release import folder as release
from common.release import range_file as storage
from common.release.columns import Columns
from common.release.fitted import FittedModel
from common.release.single_owner import (
    OWNER,
    Table,
    TellingAccountant,
    as_schema,
    encode,
    source_of,
    statement_of,
)
from common.schema import Codes, Schema
from common.wavelet import RangeCount, RangeCounts, RangeRelease, plan_privelet, privelet
from common.wavelet.decisions import METHODS
from common.wording import many
from parley.cli.console import Reporter, silent

METHOD = "privelet"
_ABOUT = "parley.json"


@dataclass(frozen=True, kw_only=True)
class Privelet:
    """How to make a range release; `fit` makes it.

    Args:
        epsilon: the budget, spent exactly. Text and fractions are taken as written.
        method: "basic", "privelet", "privelet+" or "privelet*"; see `common.wavelet.privelet`.
        untransformed: for the last two, the attributes that are left alone, by name; a rule
            ("exact" or "bound") chooses them.
        seed: makes the run repeatable and NOT PRIVATE: for experiments only.
    """

    epsilon: str | Fraction | int | float = 1.0
    method: str = "privelet+"
    untransformed: str | Sequence[str] = "exact"
    seed: int | None = None

    def fit(
        self, table: Table, schema: Schema | Path | str, *, tell: Reporter = silent
    ) -> FittedPrivelet:
        """Noisy counts of every cell at a cost of exactly `epsilon`.

        Raises:
            InputError: a table that does not fit the schema, a domain too large, an option that
                cannot be had.
        """
        if self.method not in METHODS:
            raise InputError(f"there is no method {self.method!r}; there are {', '.join(METHODS)}")
        domains = as_schema(schema)
        epsilon = parse_epsilon(self.epsilon)
        choices: dict[str, Any] = {"method": self.method, "untransformed": self.untransformed}
        plan_privelet(domains, epsilon, **choices)  # refuse a domain too large before encoding
        codes, columns = encode(table, domains)
        source = source_of(self.seed, "noise")
        accountant = TellingAccountant(epsilon, tell)
        ranges = privelet(
            codes,
            domains,
            epsilon=epsilon,
            source=source,
            accountant=accountant,
            party=OWNER,
            **choices,
        )
        privacy = statement_of(epsilon, accountant, source)
        return FittedPrivelet(
            ranges=ranges, schema=domains, privacy=privacy, columns=columns, seed=self.seed
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedPrivelet(FittedModel):
    """A range release; see `FittedModel` for what is not here.

    Attributes:
        ranges: the noisy counts, and answers from them.
    """

    ranges: RangeRelease

    @property
    def rows(self) -> int:
        """The public number of rows that were counted."""
        return self.ranges.rows

    def count(self, query: str, *, confidence: float = 0.95) -> RangeCount:
        """How many rows satisfy a query, with the exact deviation of the noise."""
        return self.ranges.count(query, confidence=confidence)

    def counts(self, queries: Sequence[str], *, confidence: float = 0.95) -> RangeCounts:
        """How many rows satisfy each of many queries."""
        return self.ranges.counts(queries, confidence=confidence)

    @cached_property
    def _ladder(self) -> NDArray[np.float64]:
        """Running sums of the nearest table that has no negative cell and the right total."""
        return np.cumsum(project(self.ranges.matrix(), total=self.rows))

    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Independent draws from the noisy counts, made non-negative."""
        if rows < 0:
            raise InputError(f"cannot sample {rows} rows: give 0 or more")
        heights = uniforms(rows, source) * self._ladder[-1]
        cells = np.searchsorted(self._ladder, heights, side="right")
        columns = np.unravel_index(np.minimum(cells, len(self._ladder) - 1), self.schema.sizes)
        return Codes.from_columns(columns, self.schema.sizes)

    def to_json(self) -> dict[str, object]:
        """What was done, as plain JSON values: the content of model.json, without the counts."""
        plan = self.ranges.plan
        return {
            "format": "parley model 1",
            "method": METHOD,
            "variant": plan.method,
            "schema": self.schema.to_toml(),
            "columns": dict(self.columns.kinds),
            "rows": self.rows,
            "cells": plan.cells,
            "noise_scale": str(plan.scale),
            "transforms": {
                name: axis.kind for name, axis in zip(self.schema.names, plan.axes, strict=True)
            },
            "privacy": self.privacy,
        }

    def _repr_html_(self) -> str:
        note = "" if self.privacy["private"] else " <strong>NOT PRIVATE</strong>"
        return (
            f"<p>Privelet ({self.ranges.plan.method}), epsilon "
            f"{self.privacy['epsilon_delivered']}, {many(self.rows, 'row')} in "
            f"{self.ranges.plan.cells:,} cells{note}</p>"
        )

    def save(self, path: Path | str) -> None:
        """Write the release to one file that `parley.load` reads; it needs no data.

        It is a range release (`common.release.range_file`) with one more member, which has the
        privacy statement.
        """
        with release.new_file(Path(path)) as scratch:
            storage.save(self.ranges, scratch)
            with zipfile.ZipFile(scratch, "a") as archive:
                archive.writestr(zipfile.ZipInfo(_ABOUT), json.dumps(self.to_json(), indent=2))

    @classmethod
    def load(cls, path: Path | str) -> FittedPrivelet:
        """Read what `save` wrote."""
        ranges = storage.load(path)
        try:
            with zipfile.ZipFile(path) as archive:
                about = json.loads(archive.read(_ABOUT))
            columns = Columns({str(k): str(v) for k, v in about["columns"].items()})
            return cls(
                ranges=ranges,
                schema=ranges.schema,
                privacy=dict(about["privacy"]),
                columns=columns,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{path}: {_ABOUT} is missing or damaged: {error!r}") from None
