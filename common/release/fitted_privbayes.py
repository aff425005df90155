"""What PrivBayes releases: a network and noisy tables, and rows drawn from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.bayes.privbayes.mechanism import fit_planned
from common.bayes.privbayes.model import PrivBayesModel
from common.errors import InputError
from common.privacy.accountant import Accountant
from common.privacy.randomness import RandomSource
from common.release import folder as release
from common.release.columns import Columns
from common.release.diagnostics import Diagnostics
from common.release.fitted import DrawnModel
from common.release.measured import model_tables, privbayes_diagnostics
from common.release.report.expected_error import noise_by_name
from common.release.report.network_picture import NetworkDrawing
from common.release.report.released import network_drawing
from common.release.single_owner import OWNER
from common.schema import Codes, Schema

METHOD = "privbayes"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedPrivBayes(DrawnModel):
    """A model of a table; see `DrawnModel` for what is not here."""

    model: PrivBayesModel

    @property
    def rows(self) -> int:
        """The public number of rows that the model was fitted to."""
        return self.model.plan.rows

    @property
    def _drawn_from(self) -> PrivBayesModel:
        return self.model

    def refit(self, rows: Codes, source: RandomSource) -> FittedPrivBayes:
        """Learn a network and its tables again, from these rows."""
        model = fit_planned(
            rows,
            self.model.plan,
            consistency=self.model.consistency,
            source=source,
            accountant=Accountant({OWNER: None}),
        )
        return replace(self, model=model.within(self.schema.possible))

    def diagnose(self, synthetic: Codes) -> Diagnostics:
        """Every released table, compared with these rows."""
        return privbayes_diagnostics(self.model, self.schema, synthetic)

    @property
    def noise(self) -> Mapping[str, float]:
        """Of the released tables; none where attributes were only coded in bits."""
        return noise_by_name(model_tables(self.model), self.schema.names)

    def drawing(self) -> NetworkDrawing:
        """The network."""
        return network_drawing(self.model, self.schema)

    def _content(self) -> dict[str, object]:
        return {"method": METHOD, "model": self.model.to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], *, where: str) -> FittedPrivBayes:
        """The inverse of `to_json`; `where` names the file in errors."""
        try:
            schema = Schema.from_toml(document["schema"], where=where)
            model = PrivBayesModel.from_json(document["model"])
            columns = Columns.of_json(document)
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
