"""What every fitted model can do: make synthetic rows, at no further cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from common.errors import InputError
from common.privacy.randomness import RandomSource, source_of
from common.release.columns import Columns
from common.release.conditions import Condition
from common.schema import Codes, Schema
from common.schema.cell_weights import CellWeights

FORMAT = "parley model 1"
Draw = Callable[[int, RandomSource], Codes]


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel(ABC):
    """What was released of real rows under differential privacy: all of it may be published.

    Attributes:
        schema: the public domains.
        privacy: the privacy statement, as in privacy.json.
        columns: the columns of the real table, or of the owners'.
        seed: of a run that is not private.
    """

    schema: Schema
    privacy: dict[str, object]
    columns: Columns
    seed: int | None = None

    @property
    @abstractmethod
    def rows(self) -> int:
        """The public number of real rows, of all owners together."""

    @abstractmethod
    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Synthetic rows from a source of one's own; called from several threads."""

    @abstractmethod
    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """What draws the rows that satisfy a condition, exactly and at no cost."""

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """The content of model.json, as plain JSON values."""

    @property
    def output_rows(self) -> int:
        """How many synthetic rows are made if nobody says."""
        return self.rows

    def sample_codes(self, rows: int | None = None, *, where: str = "") -> Codes:
        """Synthetic rows as codes of the schema; see `sample`."""
        wanted = self.output_rows if rows is None else rows
        if wanted < 0:
            raise InputError(f"cannot sample {wanted} rows: give 0 or more")
        condition = Condition.parse(where, self.schema).weights()
        draw = self.given(condition) if condition else self.draw
        return draw(wanted, source_of(self.seed, "rows"))

    def decode(self, codes: Codes) -> pd.DataFrame:
        """Codes as a table like the real one."""
        table = self.schema.decode(codes, source_of(self.seed, "numbers"))
        return self.columns.shape(table, self.schema)

    def sample(self, rows: int | None = None, *, where: str = "") -> pd.DataFrame:
        """Any number of synthetic rows, by default `output_rows`; they cost nothing.

        Args:
            rows: how many.
            where: a condition that every row satisfies, like "age >= 65 and sex = Female"; see
                `common.schema.query`. Rows have the model's distribution given the condition.

        Raises:
            InputError: the condition is not understood, or no row of the model satisfies it.
        """
        return self.decode(self.sample_codes(rows, where=where))
