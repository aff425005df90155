"""What PrivBayes releases: a network and noisy tables, and rows drawn from them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Family, contains, sum_out
from common.bayes.postprocessing import consistent_tables, mutual_information
from common.bayes.privbayes.mechanism import fit_planned
from common.bayes.privbayes.model import PrivBayesModel
from common.errors import InputError, located
from common.privacy.accountant import Accountant
from common.privacy.randomness import RandomSource
from common.release import folder as release
from common.release.diagnostics import Diagnostics, Measured, noise_by_name
from common.release.fitted import DrawnModel
from common.release.measured import Shares, attributes_of_bits, compare_counts, related_pairs
from common.release.report.network_picture import Edge, NetworkDrawing
from common.release.report.release_page import MethodFacts
from common.release.single_owner import OWNER
from common.release.synthetic_table import Columns
from common.schema import Codes, Schema
from common.schema.codes import binarise, bit_positions
from common.study.requests import RowsInMemory

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
        """Compare every released table with these rows."""
        return privbayes_diagnostics(self.model, self.schema, synthetic)

    @property
    def noise(self) -> Mapping[str, float]:
        """That of the released tables; none where attributes were only coded in bits."""
        return noise_by_name(model_tables(self.model), self.schema.names)

    def drawing(self) -> NetworkDrawing:
        """Draw the network."""
        return network_drawing(self.model, self.schema)

    def method_facts(self, synthetic: Codes) -> MethodFacts:
        """Return what the released tables tell, and the network."""
        plan, tables = self.model.plan, model_tables(self.model)
        limit = (
            f"{plan.degree} parents"
            if plan.degree is not None
            else f"{plan.cells or 0:,} cells a table"
        )
        made = [
            ("method", "PrivBayes"),
            ("encoding", plan.encoding),
            ("score", plan.score),
            ("largest useful table", limit),
            ("epsilon for the network", f"{float(plan.network_epsilon):g}"),
            ("epsilon for the tables", f"{float(plan.table_epsilon):g}"),
            ("released tables", f"{len(self.model.tables)}"),
            ("noise scale", f"{float(self.model.noise_scale):,.4g} on every count"),
            ("tables made to agree", "yes" if self.model.consistency else "no"),
        ]
        return replace(
            self._table_facts(tables, model_shares(self.model), made),
            network=self.drawing(),
            method_cautions=() if plan.caution is None else (plan.caution,),
        )

    def write_own_files(self, folder: Path) -> None:
        """Write no more than every release has."""

    def _content(self) -> dict[str, object]:
        return {"method": METHOD, "model": self.model.to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], *, where: str) -> FittedPrivBayes:
        """Read what `to_json` returned; `where` names the file in errors."""
        try:
            with located(where):
                schema = Schema.from_toml(document["schema"])
                model = PrivBayesModel.from_json(document["model"])
                columns = Columns.of_json(document)
            privacy = dict(document["privacy"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{where}: the model is damaged: {error!r}") from None
        if model.plan.sizes != schema.sizes:
            raise InputError(f"{where}: the model and its schema do not belong together")
        return cls(model=model, schema=schema, privacy=privacy, columns=columns)

    def save(self, path: Path | str) -> None:
        """Write the model to a file that `parley.load` reads; it needs no data."""
        release.write_file(Path(path), json.dumps(self.to_json(), ensure_ascii=False) + "\n")


def model_tables(model: PrivBayesModel) -> list[Measured]:
    """Return every released table of PrivBayes, with the noise in its cells."""
    plan = model.plan
    own = attributes_of_bits(plan.sizes) if plan.encoding.in_bits else range(len(plan.sizes))
    in_bits = plan.encoding.in_bits and max(plan.sizes) > 2
    return [
        Measured(
            name="tables",
            attributes=tuple(own[view.attribute] for view in family),
            shape=table.shape,
            deviation=math.sqrt(model.law.variance()),
            rows=plan.rows,
            grouped=tuple(in_bits or bool(view.level) for view in family),
            in_bits=in_bits,
        )
        for family, table in model.tables.items()
    ]


def privbayes_diagnostics(model: PrivBayesModel, schema: Schema, synthetic: Codes) -> Diagnostics:
    """Compare every released table with the synthetic rows."""
    plan, tables = model.plan, model_tables(model)
    if synthetic.rows:
        in_bits, gray = plan.encoding.in_bits, plan.encoding == "gray"
        rows = RowsInMemory(
            plan.domain.expand(binarise(synthetic, gray=gray) if in_bits else synthetic)
        )
        for place, (family, counts) in enumerate(model.tables.items()):
            (expected,) = rows.count([tuple(plan.domain.views.index(view) for view in family)])
            residuals, deviations = compare_counts(
                counts.ravel(),
                expected.ravel(),
                rows=plan.rows,
                drawn=rows.rows,
                variance=model.law.variance(),
            )
            tables[place] = replace(tables[place], residuals=residuals, deviations=deviations)
    return Diagnostics(schema.names, tuple(tables), related_pairs(synthetic))


def variable_names(model: PrivBayesModel, schema: Schema) -> list[str]:
    """Return the names of the network's variables: the attributes, or their bits."""
    if not model.plan.encoding.in_bits:
        return list(schema.names)
    names: list[str] = []
    for name, span in zip(schema.names, bit_positions(schema.sizes), strict=True):
        bits = len(span)
        names += [name] if bits == 1 else [f"{name} bit {bit + 1}" for bit in range(bits)]
    return names


def network_drawing(model: PrivBayesModel, schema: Schema) -> NetworkDrawing:
    """Draw the network with the mutual information of each edge, from the noisy tables."""
    names = variable_names(model, schema)
    domain = model.plan.domain
    tables: Mapping[Family, NDArray[np.float64]] = consistent_tables(
        model.tables, domain, rows=model.plan.rows
    )
    strengths: dict[Edge, float] = {}
    notes: dict[Edge, str] = {}
    for pair in model.network.pairs:
        for view in pair.parents:
            edge = (names[view.attribute], names[pair.child])
            joint = _table(tables, (View(pair.child), view), domain)
            strengths[edge] = mutual_information(joint)
            groups = domain.size(view)
            merged = f", {groups} groups of {names[view.attribute]}" if view.level else ""
            notes[edge] = f"{strengths[edge]:.3f} bits{merged}"
    order = [names[pair.child] for pair in model.network.pairs]
    return NetworkDrawing(order, strengths, notes)


def _table(
    tables: Mapping[Family, NDArray[np.float64]], wanted: Family, domain: Domain
) -> NDArray[np.float64]:
    """Sum the wanted table out of the smallest table that holds it."""
    homes = [family for family in tables if contains(family, wanted)]
    home = min(homes, key=lambda family: prod(domain.shape(family)))
    return sum_out(tables[home], home, wanted, domain)


def model_shares(model: PrivBayesModel) -> list[Shares | None]:
    """Return every attribute's noisy distribution; None if it was only coded in bits."""
    if model.plan.encoding.in_bits and max(model.plan.sizes) > 2:
        return [None] * len(model.plan.sizes)
    tables = {family: table.astype(np.float64) for family, table in model.tables.items()}
    return [
        _table(tables, (View(attribute),), model.plan.domain) / model.plan.rows
        for attribute in range(model.plan.domain.width)
    ]
