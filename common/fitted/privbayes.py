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
from common.fitted.compared import compare_counts
from common.fitted.dependences import Dependences, Edge
from common.fitted.model import DrawnModel
from common.fitted.single_owner import OWNER
from common.privacy.accountant import Accountant
from common.privacy.randomness import RandomSource
from common.release import folder as release
from common.release.manifest import MethodVersion
from common.release.measured import MeasuredTable, Shares, attributes_of_bits, noise_by_name
from common.release.model_file import PRIVBAYES, privbayes_content, read_privbayes
from common.schema import Codes
from common.schema.codes import binarise, bit_positions
from common.study.requests import RowsInMemory


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivBayesFit(DrawnModel):
    """A model of a table; see `DrawnModel` for what is not here."""

    model: PrivBayesModel

    @property
    def rows(self) -> int:
        return self.model.plan.rows

    @property
    def _drawn_from(self) -> PrivBayesModel:
        return self.model

    def refit(self, rows: Codes, source: RandomSource) -> PrivBayesFit:
        model = fit_planned(
            rows,
            self.model.plan,
            consistency=self.model.consistency,
            source=source,
            accountant=Accountant({OWNER: None}),
        )
        return replace(self, model=model.within(self.schema.possible))

    @property
    def tables(self) -> list[MeasuredTable]:
        model = self.model
        plan = model.plan
        attribute_of = (
            attributes_of_bits(plan.sizes) if plan.encoding.in_bits else range(len(plan.sizes))
        )
        in_bits = plan.encoding.in_bits and max(plan.sizes) > 2
        return [
            MeasuredTable(
                name="tables",
                attributes=tuple(attribute_of[view.attribute] for view in family),
                shape=table.shape,
                deviation=math.sqrt(model.law.variance()),
                rows=plan.rows,
                grouped=tuple(in_bits or bool(view.level) for view in family),
                in_bits=in_bits,
            )
            for family, table in model.tables.items()
        ]

    def compared(self, synthetic: Codes) -> list[MeasuredTable]:
        model, tables = self.model, self.tables
        plan = model.plan
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
        return tables

    @property
    def shares(self) -> list[Shares | None]:
        """The noisy distributions; none where attributes were only coded in bits."""
        model = self.model
        if model.plan.encoding.in_bits and max(model.plan.sizes) > 2:
            return [None] * len(model.plan.sizes)
        tables = {family: table.astype(np.float64) for family, table in model.tables.items()}
        return [
            _table(tables, (View(attribute),), model.plan.domain) / model.plan.rows
            for attribute in range(model.plan.domain.width)
        ]

    @property
    def noise(self) -> Mapping[str, float]:
        """That of the released tables; none where attributes were only coded in bits."""
        return noise_by_name(self.tables, self.schema.names)

    def dependences(self, synthetic: Codes) -> Dependences:
        """Return the network with the mutual information of each edge, from the noisy tables."""
        model = self.model
        names = self.variable_names
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
        return Dependences(order, strengths, notes)

    @property
    def variable_names(self) -> list[str]:
        """The names of the network's variables: the attributes, or their bits."""
        if not self.model.plan.encoding.in_bits:
            return list(self.schema.names)
        names: list[str] = []
        for name, span in zip(self.schema.names, bit_positions(self.schema.sizes), strict=True):
            bits = len(span)
            names += [name] if bits == 1 else [f"{name} bit {bit + 1}" for bit in range(bits)]
        return names

    @property
    def cautions(self) -> tuple[str, ...]:
        """That a cap made the search smaller, if it did."""
        caution = self.model.plan.caution
        return () if caution is None else (caution,)

    @property
    def how_made(self) -> list[tuple[str, object]]:
        plan = self.model.plan
        limit = (
            f"{plan.degree} parents"
            if plan.degree is not None
            else f"{plan.cells or 0:,} cells a table"
        )
        return [
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

    @property
    def made_with(self) -> MethodVersion:
        return PRIVBAYES

    def write_own_files(self, folder: Path) -> None:
        """Write no more than every release has."""

    def _content(self) -> dict[str, object]:
        return privbayes_content(self.model)

    @classmethod
    def from_json(cls, document: Mapping[str, Any], *, where: str) -> PrivBayesFit:
        """Read what `to_json` returned; `where` names the file in errors."""
        model, stored = read_privbayes(document, where=where)
        return cls(model=model, **stored._asdict())

    def save(self, path: Path | str) -> None:
        """Write the model to a file that `parley.load` reads; it needs no data."""
        release.write_file(Path(path), json.dumps(self.to_json(), ensure_ascii=False) + "\n")


def _table(
    tables: Mapping[Family, NDArray[np.float64]], part: Family, domain: Domain
) -> NDArray[np.float64]:
    """Sum the table of a part out of the smallest table that holds it."""
    homes = [family for family in tables if contains(family, part)]
    home = min(homes, key=lambda family: prod(domain.shape(family)))
    return sum_out(tables[home], home, part, domain)
