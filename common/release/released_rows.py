"""The synthetic rows of a release, read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from common.errors import InputError
from common.release.model_count import ModelCount, Noise, model_count
from common.release.released_model import ReleasedModel
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
        model: reads the model that the rows were drawn from.
    """

    schema: Schema
    codes: Codes
    rows: int
    privacy: dict[str, object]
    noise: Noise
    model: Callable[[], ReleasedModel] | None = None

    def count(self, query: str) -> ModelCount:
        """How many real rows satisfy a query, by the share of synthetic rows that do."""
        return model_count(query, self.schema, [self.codes], rows=self.rows, noise=self.noise)

    def sample(self, rows: int | None = None, *, where: str = "") -> pd.DataFrame:
        """Draw further rows from the model; see `FittedModel.sample`."""
        return self.fitted().sample(rows, where=where)

    def fitted(self) -> ReleasedModel:
        """Read the model of the release.

        Raises:
            InputError: it is damaged, or there is none.
        """
        if self.model is None:
            raise InputError("these rows were read without their model: load the release folder")
        return self.model()
