"""Cells that are hard to read, and attributes of every kind to read them as.

A cell's code must follow from that cell and the schema alone. So every group of cells here is read
alone, cell by cell, and then next to every other cell: the codes have to be the same.
"""

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd

from common.schema import Schema
from common.schema.encoder import encode_column

WORDS = (
    'kind = "categorical"\nvalues = ["a", "1", "2", "12345678901", "0.5", "True", "2024-01-31"]\n'
)
SPELLED = (
    'kind = "categorical"\nvalues = ["1.0", "01067", "1e3", "31", "0", "nan", "9007199254740993"]\n'
)
FAR = (
    'kind = "categorical"\n'
    'values = ["1e+19", "10000000000000000000", "1.0e305", "1e+305", "inf", "1"]\n'
)
LISTED = 'kind = "ordinal"\nvalues = [7, 31, 0, -2, 40]\n'
SPARSE = 'kind = "ordinal"\nvalues = [7, 900000, 1, -900000]\n'
WHOLE = 'kind = "integer"\nmin = -2\nmax = 40\nbins = 5\n'
WIDE = 'kind = "integer"\nmin = -300000\nmax = 9000000000000\nbins = 99\n'
REAL = 'kind = "real"\nmin = -1\nmax = 40\nbins = 7\n'
EDGED = 'kind = "real"\nedges = [0, 0.5, 1.5, 1e17]\n'
DATE = 'kind = "date"\nmin = 1969-01-01\nmax = 2026-03-01\nbins = 600\n'
TIME = 'kind = "datetime"\nmin = 2024-01-01T00:00:00\nmax = 2024-02-01T00:00:00\nbins = 900\n'
TRUTH = 'kind = "boolean"\n'
BINNED = (WHOLE, WIDE, REAL, EDGED, DATE, TIME)
CODED = [
    kind + 'missing = ["n/a", "7.50", 40, "-0", "1E3", "true"]\n'
    for kind in (SPELLED, WHOLE, REAL, DATE, TRUTH, FAR)
]
PLAIN = (WORDS, SPELLED, FAR, LISTED, SPARSE, *BINNED, TRUTH)
ANYTHING = [text + "other = true\nmissing = true\n" for text in PLAIN]
ATTRIBUTES = [*PLAIN, *CODED, *ANYTHING, *(text + "clip = true\n" for text in BINNED)]

TEXTS = [
    ["1", "7", "31", "0", "40", "2"],
    ["1.0", "7.0", "31.00", "0.0", "2."],
    ["-0", "-0.0", "+7", "007", " 7", "7 ", "\t7", "01067", "1067"],
    ["0x1F", "0x7", "1_000", "1_0", "٣", "1,5", "1e3", "1E3", "7e0", "1e-400", "1e400", "-1e400"],
    ["4611686018427387904", "9223372036854775807", "9223372036854775808", "-9223372036854775809"],
    ["12345678901", "12345678901.0", "1.2345678901e+10", "9007199254740993", "9007199254740992.0"],
    ["0.5", ".5", "5e-1", "1.5", "7.5", "0.30000000000000004", "1.7976931348623157e308"],
    ["nan", "NaN", "-nan", "nan(1)", "inf", "Infinity", "-inf", "9" * 400, "0" * 400 + "7"],
    ["n/a", "NA", "unknown", "seven", "?", "a", "A", " a", "\N{NO-BREAK SPACE}7", "7\x00"],
    ["true", "True", "FALSE", "t", "no", "Y", " yes", "yes!"],
    ["2024-01-31", "2024-01-31 12:30:15", "2024-01-31T12", "2024-01-31T12:30",
     "1969-12-31T23:59:59.9"],
    ["20240131", "20240131.0", "2024-02-31", "2024-1-31", "0000-01-01", "9999-12-31", "2024-W05-3"],
    ["2024-01-31T12:30:15.1234567", "2024-01-31T12:30:15Z", "2024-01-31T12:30:15+01:00",
     "2024-01-31T24:00", "2024-01-31t12:30", "2024-01-31T1230", "31.01.2024", "12:30:15"],
    [" ", "  ", "\n", '"', "''", "a;b", "x" * 5000],
]  # fmt: skip
"""Groups of texts that look alike: none of them is empty."""

BEYOND_DOUBLES = 9007199254740993  # pandas rounds it where it is next to a float
ZONE = dt.timezone(dt.timedelta(hours=1))
OBJECTS: list[list[Any]] = [
    [1, 7, 31, 0, 40, -2, 20240131],
    [1.0, 7.0, 31.0, 0.0, 20240131.0],
    [12345678901.0, 9007199254740992.0, 1e16, -0.0],
    [0.5, 1.5, 7.5, 0.1 + 0.2, 1e-300],
    [float("inf"), float("-inf"), 1e19, -1e19, 2.0**62, 1e305],
    [2**62, 2**63 - 1, -(2**63)],
    [2**63, 2**64 - 1],
    [2**70, -(2**70), 10**400],
    [True, False],
    [np.float32(0.1), np.float32(7.0), np.float32(0.5)],
    [np.int8(7), np.uint64(2**64 - 1), np.bool_(True), np.float16(0.5)],  # noqa: FBT003
    [decimal.Decimal("1.0"), decimal.Decimal("1.50"), decimal.Decimal("7"), decimal.Decimal("NaN")],
    [dt.date(2024, 1, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    [dt.datetime(2024, 1, 31), dt.datetime(2024, 1, 31, 12, 30, 15), dt.datetime(1969, 12, 31, 23)],
    [pd.Timestamp("2024-01-31T12:30:15.123456789"), np.datetime64("2024-01-31T12:30:15", "ns")],
    [dt.datetime(2024, 1, 31, tzinfo=dt.UTC), pd.Timestamp("2024-01-31T00:00:00+01:00")],
    [dt.datetime(2024, 1, 31, tzinfo=ZONE), dt.datetime(2024, 1, 30, 23, tzinfo=dt.UTC)],
    [dt.time(12, 30), dt.timedelta(days=1), np.timedelta64(1, "ns"), pd.Period("2024-01")],
    [b"1", b"a", b"\xff", b"7.0", memoryview(b"1")],
    [1 + 0j, 7 + 0j, 2j],
    [(1, 2), object],
    *TEXTS,
]
"""The same of what pandas may hold."""
EMPTY: list[Any] = [None, float("nan"), pd.NA, pd.NaT, ""]


def every_kind():
    """Attributes of every kind, x0, x1, ..., that refuse nothing."""
    texts = [WORDS, SPELLED, LISTED, WHOLE, EDGED, DATE, TIME, TRUTH]
    texts += [text + "other = true\nmissing = true\n" for text in texts]
    attributes = [schema_of(text, [f"x{at}"]).attributes[0] for at, text in enumerate(texts)]
    return Schema(tuple(attributes)).forgiven()


def schema_of(attribute, names):
    """Return a schema in which every column is the same attribute."""
    text = "".join(f'[[attribute]]\nname = "{name}"\n{attribute}' for name in names)
    return Schema.from_toml(text)


def codes_of(attribute, column):
    codes, _ = encode_column(attribute, column, where="", row_numbers=lambda rows: rows)
    return codes.tolist()
