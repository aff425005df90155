"""Privelet for a table of one owner: range counts, and synthetic rows for small domains.

    >>> fitted = parley.Privelet(epsilon=1.0).fit(table, "schema.toml")
    >>> fitted.count("age in 20..39 and sex = Female")  # with its deviation and interval
    >>> fitted.save("ranges.zip")

Every cell of the domain gets noise, so the domain must be small enough to hold in memory; for many
attributes use PrivBayes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from common.errors import InputError
from common.privacy.budget import parse_epsilon
from common.privacy.randomness import source_of
from common.release.fitted_privelet import FittedPrivelet
from common.release.progress import Reporter, silent
from common.release.single_owner import (
    OWNER,
    Table,
    TellingAccountant,
    as_schema,
    encode,
    statement_of,
)
from common.schema import Schema
from common.wavelet import plan_privelet, privelet
from common.wavelet.decisions import METHODS


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
