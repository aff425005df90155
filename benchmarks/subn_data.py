"""The tables of the study benchmarks: what is split among parties, and how a result is judged.

`adult-52` is the paper's setting: Adult in bits, distances over the marginals of the 52 bits. The
others keep their own domains; `adult-raw` has the finer ones of the file that Adult was coded from.
Distances to the real rows are for research only: in a release they would have to be paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pandas as pd

from benchmarks.measuring import demo_population, distance
from benchmarks.research_tables import DATA, Dataset, Target, available, read_codes
from common.bayes.privbayes.decisions import Encoding
from common.schema import Schema
from common.schema.attribute import Attribute, Listed
from common.schema.codes import Codes, binarise
from common.schema.hierarchy import Hierarchy

IN_BITS = "adult-52"
NAMES = (IN_BITS, "adult", "nltcs", "acs", "br2000")
POPULATION, RAW = "population", "adult-raw"
ORDERS = (2, 3)
RANDOM = "random"
ONE_SMALL = "one owner of 50 rows"
BY_STATUS = "by column 5"  # Adult's marital status: seven owners
_BY_COLUMN = "by column "
_SMALL = 50
_PEOPLE = 45_000
_MOST_BINS = 100


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

    def distances(self, synthetic: Codes) -> dict[str, float]:
        """Return the average total variation distance over all marginals of each order."""
        real, made = self.dataset.codes, synthetic
        if self.name == IN_BITS:
            real, made = binarise(real), binarise(made)
        return {f"tvd{order}": distance(real, made, order) for order in ORDERS}


def settings() -> tuple[dict[str, Setting], list[str]]:
    """Return the settings whose tables are on this machine, and the names of absent tables."""
    found, absent = available()
    by_name = {dataset.name.lower(): dataset for dataset in found}
    if "adult" in by_name:
        by_name[IN_BITS] = by_name["adult"]
    return {name: Setting(name, by_name[name]) for name in NAMES if name in by_name}, absent


def setting_of(name: str, codes: Codes, hierarchies: Sequence[Hierarchy] = ()) -> Setting:
    """Wrap a table as the methods take it; without hierarchies every attribute is flat."""
    flat = [Hierarchy.flat([str(code) for code in range(size)]) for size in codes.sizes]
    own = tuple(hierarchies or flat)
    return Setting(name, Dataset(name, codes, own, Encoding.VANILLA, ORDERS, (), None))


def is_here(table: str) -> bool:
    """Return whether the rows of a table are on this machine."""
    return table == POPULATION or (DATA / f"{table}.csv").is_file()


@cache
def whole(table: str) -> Codes:
    """Load all rows of a table."""
    if table == POPULATION:
        return demo_population(_PEOPLE)[1]
    if table == RAW:
        return factorised(pd.read_csv(DATA / f"{table}.csv"))
    return read_codes(table)[0]


def factorised(frame: pd.DataFrame) -> Codes:
    """Values by their order; numbers of many values in bins of as many values each."""
    columns, sizes = [], []
    for name in frame:
        column = frame[name]
        codes, values = pd.factorize(column, sort=True)
        size = len(values)
        if pd.api.types.is_numeric_dtype(column) and size > _MOST_BINS:
            codes, size = codes * _MOST_BINS // size, _MOST_BINS
        columns.append(codes)
        sizes.append(size)
    return Codes.from_columns(columns, sizes)


def shuffled(codes: Codes) -> Codes:
    """Shuffle every column: margins stay, and columns are independent of each other."""
    rng = np.random.default_rng(1)
    return Codes.from_columns([rng.permutation(column) for column in codes.columns], codes.sizes)


def split_rows(codes: Codes, parties: int, split: str, seed: int) -> dict[str, Codes]:
    """Deal rows out to several owners.

    Args:
        codes: all rows.
        parties: how many owners; a split by a column ignores it.
        split: `by column 5` (one owner per value), `one owner of 50 rows`, or else at random.
        seed: of the random split.
    """
    order = np.random.default_rng(seed).permutation(codes.rows)
    if split.startswith(_BY_COLUMN):
        column = codes.columns[int(split.removeprefix(_BY_COLUMN))]
        parts = [np.flatnonzero(column == value) for value in np.unique(column)]
    elif split == ONE_SMALL:
        rest = order[_SMALL:]
        parts = [order[:_SMALL], *(rest[place :: parties - 1] for place in range(parties - 1))]
    else:
        parts = [order[place::parties] for place in range(parties)]
    return {
        f"party {number}": codes.take(np.sort(part)) for number, part in enumerate(parts, start=1)
    }
