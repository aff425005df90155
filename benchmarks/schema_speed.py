"""Encoding against a plain pandas map and cut, on one core: `python -m benchmarks.schema_speed`.

We aim at 20 million values a second on one core. Columns are the ones tables have: text (as pandas
and Arrow hold it, as objects, as a categorical), integers, reals, dates, with and without gaps. The
peer is what one would write by hand: `Series.map` of a dictionary, and `pandas.cut`.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.measuring import category, fastest, keep, schema_of, show, verdict
from common.schema import Attribute, Schema
from common.schema.binning import Binning

TARGET = 20.0  # million values a second
WORDS = [f"value number {number}" for number in range(16)]
SCHEMA = schema_of(
    *(category(name, WORDS) for name in ("text", "objects", "category")),
    f"{category('gaps', WORDS)}, missing = true",
    'name = "integer", kind = "integer", min = 17, max = 90',
    'name = "wide", kind = "integer", min = 0, max = 1_000_000_000',
    'name = "real", kind = "real", min = 0, max = 1',
    'name = "holes", kind = "real", min = 0, max = 1, missing = true',
    'name = "date", kind = "date", min = 2000-01-01, max = 2020-01-01',
    'name = "boolean", kind = "boolean"',
)


def make_table(rows: int) -> pd.DataFrame:
    """Make a table with every type of column; rows are random, so nothing is cached by luck."""
    generator = np.random.default_rng(1)
    words = np.array(WORDS, dtype=object)[generator.integers(0, len(WORDS), rows)]
    gaps = words.copy()
    gaps[generator.random(rows) < 0.1] = None
    reals = generator.random(rows)
    days = np.datetime64("2000-01-01", "s") + generator.integers(0, 7_000, rows) * 86_400
    return pd.DataFrame(
        {
            "text": pd.array(words, dtype="str"),
            "objects": pd.Series(words, dtype=object),
            "category": pd.Categorical(words, WORDS),
            "gaps": pd.array(gaps, dtype="str"),
            "integer": generator.integers(17, 91, rows),
            "wide": generator.integers(0, 1_000_000_001, rows),
            "real": reals,
            "holes": np.where(generator.random(rows) < 0.1, np.nan, reals),
            "date": days,
            "boolean": generator.integers(0, 2, rows).astype(bool),
        }
    )


def by_hand(attribute: Attribute, column: pd.Series[Any]) -> NDArray[Any]:
    """Encode a column as one would write it with pandas."""
    if attribute.kind == "boolean":
        return column.to_numpy().astype(np.uint8)
    if attribute.kind == "categorical":
        codes = {word: code for code, word in enumerate(WORDS)}
        return column.map(codes).astype(float).fillna(len(WORDS)).to_numpy().astype(np.uint8)
    if not isinstance(attribute.domain, Binning):
        raise TypeError(f"{attribute.name} has no bins")
    edges = list(attribute.domain.edges)
    if attribute.kind == "real":
        cut = pd.cut(column, edges, include_lowest=True, labels=False)
        return cut.fillna(attribute.value_count).to_numpy().astype(np.uint8)
    numbers = column.to_numpy()
    if attribute.kind == "date":
        numbers = numbers.astype("datetime64[D]").astype(np.int64)
    cut = pd.cut(pd.Series(numbers), [*edges[:-1], edges[-1] + 1], right=False, labels=False)
    return cut.to_numpy().astype(np.uint8)


def time_column(attribute: Attribute, frame: pd.DataFrame, arrow: pa.Table) -> dict[str, float]:
    """Return values a second of one column, by us and by hand; both must give the same codes."""
    alone, name = Schema((attribute,)), attribute.name
    column = frame.loc[:, name]
    if not np.array_equal(alone.encode(frame[[name]]).columns[0], by_hand(attribute, column)):
        raise SystemExit(f"{name}: the two ways of encoding disagree")
    return {
        "ours": len(frame) / fastest(lambda: alone.encode(frame[[name]])),
        "arrow": len(frame) / fastest(lambda: alone.encode(arrow.select([name]))),
        "by hand": len(frame) / fastest(lambda: by_hand(attribute, column)),
    }


def main() -> None:
    """Time every column and the whole table, print the table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    rows = parser.parse_args().rows
    pa.set_cpu_count(1)
    frame = make_table(rows)
    arrow = pa.Table.from_pandas(frame)
    figures = {a.name: time_column(a, frame, arrow) for a in SCHEMA.attributes}
    whole = fastest(lambda: SCHEMA.encode(frame)) / len(SCHEMA.names)
    direct = fastest(lambda: SCHEMA.encode(arrow)) / len(SCHEMA.names)
    by_pandas = sum(rows / figure["by hand"] for figure in figures.values()) / len(SCHEMA.names)
    figures["whole table"] = {
        "ours": rows / whole,
        "arrow": rows / direct,
        "by hand": rows / by_pandas,
    }
    show(
        [
            {"column": name}
            | {f"{way}, million/s": speed / 1e6 for way, speed in figure.items()}
            | {"times by hand": figure["ours"] / figure["by hand"]}
            for name, figure in figures.items()
        ]
    )
    reached = figures["whole table"]["ours"] / 1e6
    print(f"million values/s: {verdict(reached, target=TARGET)}")
    keep("schema_speed", {"rows": rows, "values_per_second": figures})


if __name__ == "__main__":
    main()
