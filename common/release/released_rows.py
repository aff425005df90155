"""The synthetic rows of a release, read back."""

from __future__ import annotations

from dataclasses import dataclass

from common.release.model_count import ModelCount, Noise, model_count
from common.schema import Codes, Schema


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """A release seen through its synthetic rows.

    Attributes:
        schema: the public domains.
        codes: the synthetic rows.
        rows: how many real rows there were; public.
        privacy: the privacy statement.
        noise: in the count of one value of an attribute, where it is known.
    """

    schema: Schema
    codes: Codes
    rows: int
    privacy: dict[str, object]
    noise: Noise

    def count(self, query: str) -> ModelCount:
        """How many real rows satisfy a query, by the share of synthetic rows that do."""
        return model_count(query, self.schema, [self.codes], rows=self.rows, noise=self.noise)
