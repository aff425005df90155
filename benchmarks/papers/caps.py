"""What the searches cost at their caps and beyond: processor time and memory of one owner.

Each case runs in a process of its own, on Adult's 52 bits or on ACS, with the degree set and the
cap lifted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from math import comb

import numpy as np

from benchmarks.measuring import Row, in_own_process, spending
from benchmarks.papers.figure import Figure, Options
from benchmarks.papers.privbayes_figures import fitted, table
from common.bayes.privbayes.decisions import Encoding
from common.bayes.privbayes.parent_sets import Constraints
from common.methods.dp_subn.decisions import FamilyLimit, candidate_families
from common.methods.dp_subn.information import mutual_informations
from common.methods.dp_subn.initialisation import PairChoice
from common.methods.network_model import Variables
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes, binarise
from common.study.requests import TableRequest
from parley.simulation.in_process import RowsInMemory

_NO_CAP = 1 << 40


def privbayes(name: str, degree: int) -> int:
    """Learn a network of so many parents on bits; return the cells of all candidates."""
    data = table(name)
    model = fitted(
        data, data.codes, Fraction(10**4), "caps", encoding=Encoding.BINARY,
        constraints=Constraints(max_parents=degree), most_candidate_cells=_NO_CAP,
    )  # fmt: skip
    width = model.plan.domain.width
    return comb(width, degree + 1) << (degree + 1)


def initial_structure(degree: int) -> int:
    """Place half of Adult's bits as one of two owners would; return the cells of all candidates."""
    bits = binarise(table("Adult").codes)
    choice = PairChoice(
        variables=Variables(bits.sizes), placed=tuple(range(26)), take=25,
        limit=FamilyLimit(degree, 2 << degree), rows=bits.rows, epsilon=Fraction(1),
    )  # fmt: skip
    choice.run(RowsInMemory(bits), SeededRandomSource("caps"))
    return comb(bits.width, degree + 1) << (degree + 1)


def iteration(degree: int) -> int:
    """Answer and score the largest iteration of DP-CCBN; return its cells."""
    bits: Codes = binarise(table("Adult").codes)
    limit = FamilyLimit(degree, 2 << degree)
    placed = max(range(1, bits.width), key=lambda p: (bits.width - p) * comb(p, degree))
    families = candidate_families(bits.sizes, range(placed), limit)
    request = TableRequest(tuple(families), bits.sizes)
    counts = request.answer(RowsInMemory(bits))
    law = DiscreteLaplace(Fraction(1000))
    noisy = counts + law.draw_share(counts.size, makers=2, source=SeededRandomSource("caps"))
    mutual_informations(noisy.reshape(len(families), 2, -1).astype(np.float64), bits.rows)
    return counts.size


CASES: Iterable[tuple[str, Callable[[], int]]] = (
    *((f"PrivBayes, Adult, k = {k}", partial(privbayes, "Adult", k)) for k in (3, 4)),
    *((f"PrivBayes, ACS, k = {k}", partial(privbayes, "ACS", k)) for k in (5, 6, 7)),
    *((f"dp-subn, k = {k}", partial(initial_structure, k)) for k in (3, 4)),
    *((f"dp-ccbn, k = {k}, one iteration", partial(iteration, k)) for k in (2, 3)),
)


def _measured(case: Callable[[], int]) -> Row:
    with spending() as spent:
        cells = case()
    return {"cells": cells, "s": spent.processor_seconds, "peak MiB": spent.peak_mib}


def caps(options: Options) -> list[Row]:
    """Measure every case."""
    return [{"search": label, **in_own_process(_measured, case)} for label, case in CASES]


FIGURES = (
    Figure(
        name="caps", paper="not in a paper", run=caps,
        shows="processor time and memory of the searches, at their caps and beyond",
    ),
)  # fmt: skip
