"""Letting a database count: GROUP BY where that is less work than fetching every row.

The database groups by raw values; the groups are then encoded like rows and weighted by their
sizes, so the counts are those of the rows to the last unit. That the table is still the same is
told by a fingerprint that the database computes itself, in the same transaction as the counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import LocalError
from common.marginals import count
from common.schema import Schema
from common.schema.attribute import Attribute, Listed

COUNT = "count of rows"  # no attribute's name: attributes with it are not pushed down
_FEWER = 8  # groups must be that much fewer than rows, or they might as well be fetched
# In cells fetched, measured on PostgreSQL through a local socket; over a network a cell costs more.
_SCAN = 1.1  # a row in one pass of GROUP BY
_FINGERPRINT = 0.75  # a cell in the fingerprint


class Grouping(Protocol):
    """A database that can group."""

    def fingerprint(self) -> str:
        """Something that changes whenever a row does."""

    def groups(self, sets: Sequence[Sequence[str]]) -> tuple[str, list[pa.Table]]:
        """The fingerprint, and for every set of columns the groups and their sizes (`COUNT`)."""


def is_cheaper(schema: Schema, sets: Sequence[Sequence[int]], rows: int) -> bool:
    """Whether grouping every set is less work than fetching every cell: a guess about speed."""
    wanted = {tuple(sorted(each)) for each in sets}
    if COUNT in schema.names or not all(wanted):
        return False
    groups = sum(math.prod(_values(schema.attributes[a]) for a in each) for each in wanted)
    width = len(schema.attributes)
    return groups * _FEWER <= rows and _FINGERPRINT * width + _SCAN * len(wanted) < width


def _values(attribute: Attribute) -> float:
    """At most how many values the database sees; infinite for real numbers and times."""
    if isinstance(attribute.domain, Listed):
        return math.inf if attribute.other else attribute.size
    if attribute.kind in ("real", "datetime") or attribute.clip or attribute.other:
        return math.inf
    return attribute.domain.high - attribute.domain.low + 1 + attribute.missing


def counted(
    groups: pa.Table, schema: Schema, attributes: Sequence[int], where: str
) -> NDArray[np.int64]:
    """The table of a set of attributes from its groups."""
    part = Schema(tuple(schema.attributes[a] for a in attributes))
    weights = groups.column(COUNT).to_numpy().astype(np.int64)
    codes = part.encode(groups.drop_columns([COUNT]), where=where)
    if codes.rows != len(weights):
        raise LocalError(f"{len(weights)} sizes for {codes.rows} groups")
    return count(codes, [range(len(attributes))], weights=weights)[0]


def group_statement(query: str, keys: Mapping[str, str]) -> str:
    """The groups of a query's rows by expressions, each under its name."""
    shown = ", ".join(f"{key} AS {quoted(name)}" for name, key in keys.items())
    return (
        f"SELECT {shown}, CAST(count(*) AS bigint) AS {quoted(COUNT)} "  # noqa: S608  # the owner's own query
        f"FROM ({query}) AS source GROUP BY {', '.join(str(n + 1) for n in range(len(keys)))}"
    )


def fingerprint_statement(kind: str, query: str, names: Sequence[str]) -> str:
    """The number of rows and two sums of hashes of them, as text, in whatever order they are."""
    row = ", ".join(quoted(name) for name in names)
    if kind == "postgresql":
        hashes = [f"hashtextextended(ROW({row})::text, {seed})::numeric" for seed in (1, 2)]
    else:
        hashes = [f"hash({row}, {seed})::hugeint" for seed in (1, 2)]
    sums = ", ".join(f"CAST(sum({each}) AS varchar)" for each in hashes)
    return f"SELECT CAST(count(*) AS varchar), {sums} FROM ({query}) AS source"  # noqa: S608  # the owner's own query


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
