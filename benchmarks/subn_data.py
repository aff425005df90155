"""The tables of the study benchmarks: what is split among parties, and how a result is judged.

`adult-52` is the paper's setting: Adult in bits, distances over the marginals of the 52 bits. The
others keep their own domains. Distances to the real rows are for research only: in a release they
would have to be paid for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.privbayes import tables_of
from benchmarks.research_tables import Dataset, Target, available
from common.schema import Schema
from common.schema.attribute import Attribute, Listed
from common.schema.codes import Codes
from common.schema.encodings import binarise

IN_BITS = "adult-52"
NAMES = (IN_BITS, "adult", "nltcs", "acs", "br2000")
ORDERS = (2, 3)
RANDOM = "random"
ONE_SMALL = "one of 50 rows"
_SMALL = 50


@dataclass(frozen=True)
class Setting:
    """A table, the encoding it is studied in, and the real marginals it is compared with."""

    name: str
    dataset: Dataset

    @property
    def encoding(self) -> str:
        """The study's encoding for methods that work on bits when told to."""
        return "binary" if self.name == IN_BITS else "own"

    @cached_property
    def schema(self) -> Schema:
        """The public domains and hierarchies, values named by their codes."""
        return Schema(
            tuple(
                Attribute(
                    f"c{place}",
                    "categorical",
                    Listed(tuple(str(code) for code in range(size))),
                    tree=hierarchy.root,
                )
                for place, (size, hierarchy) in enumerate(
                    zip(self.dataset.codes.sizes, self.dataset.hierarchies, strict=True)
                )
            )
        )

    @property
    def targets(self) -> tuple[Target, ...]:
        """The paper's two classification tasks on Adult; elsewhere the first two."""
        papers = [task for task in self.dataset.targets if task[0] in ("salary", "degree")]
        return tuple(papers or self.dataset.targets[:2])

    @cached_property
    def halves(self) -> tuple[Codes, Codes]:
        """80 % of the rows to learn from, 20 % to test on."""
        codes = self.dataset.codes
        order = np.random.default_rng(80).permutation(codes.rows)
        cut = codes.rows * 4 // 5
        return codes.take(order[:cut]), codes.take(order[cut:])

    @cached_property
    def _real(self) -> dict[int, list[NDArray[np.float64]]]:
        codes = self._judged(self.dataset.codes)
        return {order: list(tables_of(codes, order)) for order in ORDERS}

    def _judged(self, codes: Codes) -> Codes:
        return binarise(codes) if self.name == IN_BITS else codes

    def distances(self, synthetic: Codes) -> dict[str, float]:
        """The average total variation distance over all marginals of each order."""
        judged = self._judged(synthetic)
        return {
            f"tvd{order}": float(
                np.mean(
                    [
                        np.abs(real - made).sum() / 2
                        for real, made in zip(
                            self._real[order], tables_of(judged, order), strict=True
                        )
                    ]
                )
            )
            for order in ORDERS
        }


def settings() -> tuple[dict[str, Setting], list[str]]:
    """The settings whose tables are on this machine, by name, and the names of absent tables."""
    found, absent = available()
    by_name = {dataset.name.lower(): dataset for dataset in found}
    if "adult" in by_name:
        by_name[IN_BITS] = by_name["adult"]
    return {name: Setting(name, by_name[name]) for name in NAMES if name in by_name}, absent


def shuffled(codes: Codes) -> Codes:
    """The same margins, and columns that are independent of each other."""
    rng = np.random.default_rng(1)
    return Codes.from_columns([rng.permutation(column) for column in codes.columns], codes.sizes)


def split_rows(codes: Codes, parties: int, split: str, seed: int) -> dict[str, Codes]:
    """The rows as the tables of several owners.

    Args:
        codes: all rows.
        parties: how many owners; a split by a column ignores it.
        split: `random`, `one of 50 rows`, or `by 5`: one owner per value of column 5.
        seed: of the random split.
    """
    order = np.random.default_rng(seed).permutation(codes.rows)
    if split == RANDOM:
        parts = [order[place::parties] for place in range(parties)]
    elif split == ONE_SMALL:
        rest = order[_SMALL:]
        parts = [order[:_SMALL], *(rest[place :: parties - 1] for place in range(parties - 1))]
    else:
        column = codes.columns[int(split.removeprefix("by "))]
        parts = [np.flatnonzero(column == value) for value in np.unique(column)]
    return {
        f"party {number}": codes.take(np.sort(part)) for number, part in enumerate(parts, start=1)
    }
