"""The synthetic rows of a release, read back."""

from __future__ import annotations

from dataclasses import dataclass

from common.schema import Codes, Schema
from parley.conditions import Condition
from parley.privbayes import ModelCount


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """A release seen through its synthetic rows.

    Attributes:
        schema: the public domains.
        codes: the synthetic rows.
        rows: how many real rows there were; public.
        privacy: the privacy statement.
    """

    schema: Schema
    codes: Codes
    rows: int
    privacy: dict[str, object]

    def count(self, query: str) -> ModelCount:
        """How many real rows satisfy a query, by the share of synthetic rows that do."""
        share = Condition.parse(query, self.schema).matching(self.codes) / self.codes.rows
        deviation = (share * (1 - share) / self.codes.rows) ** 0.5
        return ModelCount(share * self.rows, share, deviation * self.rows)
