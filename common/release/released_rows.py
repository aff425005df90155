"""The synthetic rows of a study's release, read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from common.errors import InputError
from common.release.asking import Askable, Origin
from common.release.fitted import in_short
from common.release.fitted_study import FittedStudy
from common.release.model_count import ModelCount, Noise, model_count
from common.schema import Codes, Schema


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedRows(Askable):
    """A release seen through its synthetic rows; its model is derived when it is first needed."""

    schema: Schema
    codes: Codes
    rows: int  # real ones; public
    privacy: dict[str, object]
    noise: Noise  # in the count of one value of an attribute
    derive: Callable[[], FittedStudy] | None = None
    origin: Origin | None = None

    def __repr__(self) -> str:
        return in_short(self, self.rows, self.privacy)

    @cached_property
    def learnt(self) -> FittedStudy:
        """The model that follows from the study and what was published during it."""
        if self.derive is None:
            raise InputError("release: it is not known where its study is. Load the release")
        return self.derive()

    @property
    def released(self) -> Codes:
        """The synthetic rows."""
        return self.codes

    def count(self, query: str) -> ModelCount:
        """How many real rows satisfy a query, by the share of synthetic rows that do."""
        return model_count(query, self.schema, [self.codes], rows=self.rows, noise=self.noise)

    def sample(self, rows: int | None = None, *, where: str = "") -> pd.DataFrame:
        """Draw further rows from the model; see `FittedModel.sample`."""
        return self.learnt.sample(rows, where=where)
