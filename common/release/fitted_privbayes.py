"""What PrivBayes releases: a network and noisy tables, and rows drawn from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from common.bayes.privbayes.mechanism import fit_planned
from common.bayes.privbayes.model import PrivBayesModel
from common.errors import InputError
from common.methods.conditional import ConditionalModel
from common.privacy.accountant import Accountant
from common.privacy.randomness import OsRandomSource, RandomSource
from common.release import folder as release
from common.release.columns import Columns
from common.release.diagnostics import Diagnostics
from common.release.fitted import FORMAT, Draw, FittedModel
from common.release.measured import privbayes_diagnostics
from common.release.model_count import ModelCount, model_count
from common.release.report.network_picture import draw_network
from common.release.report.released import model_noise, network_drawing
from common.release.single_owner import OWNER
from common.schema import Codes, Schema
from common.schema.cell_weights import CellWeights
from common.wording import many

METHOD = "privbayes"
_ROWS_FOR_AN_ANSWER = 1_000_000
_BLOCKS_FOR_AN_ANSWER = 40


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedPrivBayes(FittedModel):
    """A model of a table; see `FittedModel` for what is not here.

    Attributes:
        model: the network and the noisy tables.
    """

    model: PrivBayesModel

    @property
    def rows(self) -> int:
        """The public number of rows that the model was fitted to."""
        return self.model.plan.rows

    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Synthetic rows from a source of one's own."""
        return self._possible.sample(rows, source)

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """What draws the rows that satisfy a condition."""
        return self._possible.given(condition)

    @cached_property
    def _possible(self) -> ConditionalModel:
        return ConditionalModel(self.model, self.schema.possible)

    def refit(self, rows: Codes, source: RandomSource) -> FittedPrivBayes:
        """Learn a network and its tables again, from these rows."""
        model = fit_planned(
            rows,
            self.model.plan,
            consistency=self.model.consistency,
            source=source,
            accountant=Accountant({OWNER: None}),
            party=OWNER,
        )
        return replace(self, model=model.within(self.schema.possible))

    def diagnose(self, synthetic: Codes) -> Diagnostics:
        """Every released table, compared with these rows."""
        return privbayes_diagnostics(self.model, self.schema, synthetic)

    def count(self, query: str) -> ModelCount:
        """How many rows satisfy a query, by a million rows drawn from the model.

        Args:
            query: like "age in 20..39 and sex = Female"; see `common.schema.query`.
        """
        return model_count(
            query,
            self.schema,
            self._blocks(OsRandomSource()),
            rows=self.rows,
            noise=model_noise(self.model, self.schema),
        )

    def _blocks(self, source: RandomSource) -> Iterator[Codes]:
        """Rows for an answer, a block at a time."""
        for _ in range(_BLOCKS_FOR_AN_ANSWER):
            yield self.draw(_ROWS_FOR_AN_ANSWER // _BLOCKS_FOR_AN_ANSWER, source)

    def network_svg(self) -> str:
        """The network as a picture, strong edges thick."""
        drawing = network_drawing(self.model, self.schema)
        return draw_network(drawing.names, drawing.edges, drawing.strengths, drawing.notes)

    def _repr_html_(self) -> str:
        words = f"PrivBayes, epsilon {self.privacy['epsilon_delivered']}, {many(self.rows, 'row')}"
        note = "" if self.privacy["private"] else " <strong>NOT PRIVATE</strong>"
        return f"<div><p>{words}{note}</p>{self.network_svg()}</div>"

    def to_json(self) -> dict[str, object]:
        """Everything, as plain JSON values: the content of model.json."""
        return {
            "format": FORMAT,
            "method": METHOD,
            "schema": self.schema.to_toml(),
            "columns": dict(self.columns.kinds),
            "model": self.model.to_json(),
            "privacy": self.privacy,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], *, where: str) -> FittedPrivBayes:
        """The inverse of `to_json`; `where` names the file in errors."""
        try:
            schema = Schema.from_toml(document["schema"], where=where)
            model = PrivBayesModel.from_json(document["model"])
            columns = Columns({str(k): str(v) for k, v in document["columns"].items()})
            privacy = dict(document["privacy"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{where}: the model is damaged: {error!r}") from None
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if model.plan.sizes != schema.sizes:
            raise InputError(f"{where}: the model and its schema do not belong together")
        return cls(model=model, schema=schema, privacy=privacy, columns=columns)

    def save(self, path: Path | str) -> None:
        """Write the model to a file that `parley.load` reads; it needs no data."""
        release.write_file(Path(path), json.dumps(self.to_json(), ensure_ascii=False) + "\n")
