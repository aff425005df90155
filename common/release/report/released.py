"""What a report shows of a release, computed from what was released: no row is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.bayes.conditionals import Family, contains, sum_out
from common.bayes.consistency import consistent_tables
from common.bayes.domain import Domain, View
from common.bayes.privbayes.model import PrivBayesModel
from common.bayes.simplex import mutual_information
from common.release.diagnostics import noise_distance
from common.release.report.expected_error import ExpectedError
from common.release.report.network_picture import Edge, NetworkDrawing
from common.schema import Schema
from common.schema.codes import bit_positions
from common.wavelet.noisy_matrix import RangeRelease

Shares = NDArray[np.float64]


def variable_names(model: PrivBayesModel, schema: Schema) -> list[str]:
    """The variables of the network: the attributes, or their bits."""
    if not model.plan.encoding.in_bits:
        return list(schema.names)
    names: list[str] = []
    for name, span in zip(schema.names, bit_positions(schema.sizes), strict=True):
        bits = len(span)
        names += [name] if bits == 1 else [f"{name} bit {bit + 1}" for bit in range(bits)]
    return names


def network_drawing(model: PrivBayesModel, schema: Schema) -> NetworkDrawing:
    """The network with the mutual information of each edge, from the noisy tables."""
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
    """The wanted table, summed out of the smallest one that holds it."""
    homes = [family for family in tables if contains(family, wanted)]
    home = min(homes, key=lambda family: prod(domain.shape(family)))
    return sum_out(tables[home], home, wanted, domain)


def model_shares(model: PrivBayesModel) -> list[Shares | None]:
    """The noisy distribution of every attribute, as released; None if it was only coded in bits."""
    if model.plan.encoding.in_bits and max(model.plan.sizes) > 2:
        return [None] * len(model.plan.sizes)
    tables = {family: table.astype(np.float64) for family, table in model.tables.items()}
    return [
        _table(tables, (View(attribute),), model.plan.domain) / model.plan.rows
        for attribute in range(model.plan.domain.width)
    ]


def range_shares(release: RangeRelease) -> list[Shares | None]:
    """The noisy distribution of every attribute of a range release."""
    matrix = release.matrix()
    axes = range(matrix.ndim)
    return [matrix.sum(axis=tuple(a for a in axes if a != axis)) / release.rows for axis in axes]


def range_errors(release: RangeRelease) -> list[ExpectedError]:
    """The noise in every column of a range release; none is known for Privelet*."""
    full = np.array([[0, size] for size in release.schema.sizes], dtype=np.intp)
    errors = []
    for position, size in enumerate(release.schema.sizes):
        boxes = np.repeat(full[None], size, axis=0)
        boxes[:, position, 0] = np.arange(size)
        boxes[:, position, 1] = np.arange(size) + 1
        deviations = release.box_counts(boxes).standard_deviations
        if deviations is None:
            return []
        distance = noise_distance(float(deviations.sum()), release.rows)
        deviation = float(np.sqrt((deviations**2).mean()))
        errors.append(ExpectedError((position,), size, deviation, distance))
    return errors
