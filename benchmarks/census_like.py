"""Census-like rows made by the project, and random range counts over them.

The shape follows the Brazilian census of [Xiao11, Table 3]: Age (ordered), Gender, Occupation (a
hierarchy of three levels), Income (ordered). The rows are drawn from a model of our own in which
occupation depends on age and income on all three, skewed as real ones are; every number is made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import category, number, schema_of
from common.schema import Codes, Schema
from common.wavelet.axis import Axis
from common.wavelet.nominal import NominalAxis

_CHUNK = 1 << 20
# Four attributes of the Adult census table, for those who have it.
ADULT = schema_of(
    number("age", low=17, high=90, bins=74),
    category("sex", ["Female", "Male"]),
    category(
        "occupation",
        [
            "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing",
            "Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv",
            "Prof-specialty", "Protective-serv", "Sales", "Tech-support", "Transport-moving",
        ],
    ),
    number("fnlwgt", high=1499999, bins=1000),
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """The domain: values per attribute, occupations in equal groups."""

    ages: int = 101
    occupation_groups: int = 16
    occupations_per_group: int = 32
    incomes: int = 1001

    @property
    def occupations(self) -> int:
        """The number of occupations."""
        return self.occupation_groups * self.occupations_per_group

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain sizes."""
        return (self.ages, 2, self.occupations, self.incomes)

    def schema(self) -> Schema:
        """Return the public schema."""
        groups = [
            [f"job {g}.{j}" for j in range(self.occupations_per_group)]
            for g in range(self.occupation_groups)
        ]
        values = [job for group in groups for job in group]
        hierarchy = ", ".join(f'"sector {g}" = {group}' for g, group in enumerate(groups))
        return schema_of(
            number("age", high=self.ages - 1, bins=self.ages),
            category("gender", ["Female", "Male"]),
            f"{category('occupation', values)}, hierarchy = {{ {hierarchy} }}",
            number("income", high=self.incomes - 1, bins=self.incomes),
        )

    def rows(self, count: int, seed: int) -> Codes:
        """Encoded rows of the model."""
        rng = np.random.default_rng(seed)
        columns = [np.empty(count, dtype=np.uint16) for _ in range(4)]
        popularity = 1 / np.arange(1, self.occupations + 1) ** 0.9
        ranks = rng.permutation(self.occupations)  # popular jobs are spread over the sectors
        cumulated = np.cumsum(popularity / popularity.sum())
        pay = rng.normal(0, 0.5, self.occupations)
        for start in range(0, count, _CHUNK):
            part = slice(start, min(start + _CHUNK, count))
            size = part.stop - part.start
            age = rng.beta(1.4, 2.6, size)
            gender = rng.integers(0, 2, size)
            # The young crowd into the popular jobs.
            spread = rng.random(size) ** (1.5 - age)
            job = ranks[np.minimum(np.searchsorted(cumulated, spread), self.occupations - 1)]
            log_income = 2.2 + pay[job] + 2 * age * (1 - age) + 0.15 * gender
            income = np.exp(log_income + rng.normal(0, 0.6, size)) / 120
            columns[0][part] = np.minimum(age * self.ages, self.ages - 1)
            columns[1][part] = gender
            columns[2][part] = job
            columns[3][part] = np.minimum(income * self.incomes, self.incomes - 1)
        return Codes.from_columns(columns, self.sizes)


def random_boxes(axes: Sequence[Axis], count: int, seed: int) -> NDArray[np.intp]:
    """Draw the workload of [Xiao11, Sec. 8]: shape (count, attributes, 2).

    One to four predicates, equally likely, on distinct attributes; an interval between two uniform
    values, or a uniform node of the hierarchy below the root.

    Args:
        axes: with the transforms their kinds call for, so that hierarchies are known.
        count: how many.
        seed: of the workload.
    """
    rng = np.random.default_rng(seed)
    boxes = np.empty((count, len(axes), 2), dtype=np.intp)
    predicates = rng.integers(1, len(axes) + 1, count)
    chosen = np.argsort(rng.random((count, len(axes))), axis=1).argsort(axis=1)
    for place, axis in enumerate(axes):
        if isinstance(axis, NominalAxis):
            node = rng.integers(1, axis.tree.nodes, count)
            ranges = np.stack([axis.tree.low[node], axis.tree.high[node]], axis=1)
        else:
            ranges = np.sort(rng.integers(0, axis.size, (count, 2)), axis=1)
            ranges[:, 1] += 1
        asked = chosen[:, place] < predicates
        boxes[:, place] = np.where(asked[:, None], ranges, [0, axis.size])
    return boxes


def coverage(boxes: NDArray[np.intp], sizes: Sequence[int]) -> NDArray[np.float64]:
    """Return the share of all cells that each box holds."""
    result: NDArray[np.float64] = np.prod(
        (boxes[:, :, 1] - boxes[:, :, 0]) / np.array(sizes), axis=1
    )
    return result
