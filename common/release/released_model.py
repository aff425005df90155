"""The model of a study's release, read back: rows can be drawn from it without the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from common.errors import InputError
from common.methods.conditional import ConditionalModel
from common.methods.reading import read_model
from common.privacy.randomness import RandomSource
from common.release.columns import Columns
from common.release.fitted import Draw, FittedModel
from common.schema import Codes, Schema
from common.schema.cell_weights import CellWeights
from common.study.steps import Model


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedModel(FittedModel):
    """A model of model.json; see `FittedModel` for what is not here.

    Attributes:
        model: what the curator learnt.
        document: model.json as it was read.
    """

    model: Model
    document: Mapping[str, Any]

    @classmethod
    def read(cls, document: Mapping[str, Any], *, where: str) -> ReleasedModel:
        """Return the model in model.json; `where` names the file in errors."""
        try:
            schema = Schema.from_toml(document["schema"])
            columns = Columns({str(k): str(v) for k, v in document["columns"].items()})
            privacy, rows = dict(document["privacy"]), document["rows"]
            model = read_model(document["model"], schema.sizes)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{where}: the model is damaged: {error!r}") from None
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if type(rows) is not int or rows < 1:
            raise InputError(f"{where}: the model is damaged: it does not say how many rows")
        return cls(model=model, schema=schema, privacy=privacy, columns=columns, document=document)

    @property
    def rows(self) -> int:
        """The public number of rows of all owners together."""
        return int(self.document["rows"])

    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Synthetic rows from a source of one's own."""
        return self._possible.sample(rows, source)

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """What draws the rows that satisfy a condition."""
        return self._possible.given(condition)

    @cached_property
    def _possible(self) -> ConditionalModel:
        return ConditionalModel(self.model, self.schema.possible)

    def to_json(self) -> dict[str, object]:
        """The content of model.json."""
        return dict(self.document)
