"""Rows drawn into a file in blocks: all of them, whatever the threads, in the published types."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from common.fitted import drawing as drawn_blocks
from common.fitted.drawing import write_stream
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.release.synthetic_table import TableColumns, one_of_each
from common.report import writing as synthesis
from common.schema import Codes, Schema
from common.schema.decoder import decode_to_arrow
from common.tables import read_table
from parley import PrivBayes
from tests.harness.schemas import STREAMED as SCHEMA

NAMES = ["seen", *SCHEMA.names[:-1]]
PLAIN = TableColumns(dict.fromkeys([*NAMES, "id"], "by schema"))
CATEGORIES = TableColumns(
    {**PLAIN.kinds, "word": "category", "grade": "category, ordered", "age": "category"}
)


def uniform_model(columns=PLAIN, seed=1):
    """Independent, uniform codes."""

    def draw(rows, source):
        drawn = [source.words(rows) % np.uint64(size) for size in SCHEMA.sizes]
        return Codes.from_columns([c.astype(np.int64) for c in drawn], SCHEMA.sizes)

    def decode(codes):
        return columns.shape(SCHEMA.decode(codes, SeededRandomSource(seed)), SCHEMA)

    return SimpleNamespace(schema=SCHEMA, seed=seed, draw=draw, decode=decode, inside={})


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(drawn_blocks, "BLOCK_ROWS", 1000)
    monkeypatch.setattr(drawn_blocks, "KEPT_ROWS", 3000)


@pytest.fixture(params=["csv", "parquet"])
def path(request, tmp_path):
    return tmp_path / f"synthetic.{request.param}"


@pytest.mark.parametrize("columns", [PLAIN, CATEGORIES], ids=["plain", "categories"])
@pytest.mark.parametrize("rows", [1, 1000, 4500])
def test_what_is_written_is_what_was_drawn(path, rows, columns):
    kept = write_stream(path, uniform_model(columns), rows)
    again = read_table(path, SCHEMA).encode(SCHEMA)
    assert again.rows == rows
    assert kept.rows == min(rows, 3000)
    for written, drawn, attribute in zip(
        again.columns, kept.columns, SCHEMA.attributes, strict=True
    ):
        # Text in a column "(other)" is a value again; a number that is other is an empty cell.
        assert np.array_equal(written[: kept.rows], drawn), attribute.name


@pytest.mark.parametrize("columns", [PLAIN, CATEGORIES], ids=["plain", "categories"])
def test_a_streamed_file_has_the_columns_and_types_of_one_written_at_once(path, columns, tmp_path):
    model = uniform_model(columns)
    write_stream(path, model, 2500)
    frame = model.decode(one_of_each(SCHEMA))
    whole = tmp_path / f"whole{path.suffix}"
    if path.suffix == ".csv":
        frame.to_csv(whole, index=False)
        assert list(pd.read_csv(path).columns) == list(pd.read_csv(whole).columns)
        return
    frame.to_parquet(whole, index=False)
    streamed, expected = pd.read_parquet(path).dtypes, pd.read_parquet(whole).dtypes
    differing = [n for n in expected.index if streamed[n] != expected[n]]
    assert list(streamed.index) == list(expected.index)
    # Parquet has no dictionaries of numbers: pandas writes, and reads, those columns its own way.
    assert [name for name in differing if name not in ("grade", "age")] == []


def test_the_rows_of_a_seed_do_not_depend_on_the_threads(path):
    write_stream(path, uniform_model(), 4500, threads=1)
    first = path.read_bytes()
    write_stream(path, uniform_model(), 4500, threads=3)
    assert path.read_bytes() == first
    write_stream(path, uniform_model(seed=2), 4500, threads=3)
    assert path.read_bytes() != first


def test_blocks_never_share_a_random_source(path):
    sources = []
    model = uniform_model(seed=None)
    drawing = model.draw

    def draw(rows, source):
        sources.append(source)
        return drawing(rows, source)

    model.draw = draw
    kept = write_stream(path, model, 3000)
    assert len({id(source) for source in sources}) == len(sources)
    assert all(isinstance(source, OsRandomSource) for source in sources)
    parts = [
        kept.take(slice(start, start + 1000)).columns[4].tobytes() for start in (0, 1000, 2000)
    ]
    assert len(set(parts)) == 3


def test_numbers_are_spread_evenly_over_their_bin():
    rows = 100_000
    codes = Codes.from_columns([np.zeros(rows, dtype=int)] * len(SCHEMA.sizes), SCHEMA.sizes)
    table = decode_to_arrow(SCHEMA, codes, SeededRandomSource(3)).to_pandas()
    ages = np.bincount(table["age"].astype(int))
    assert len(ages) == 10
    assert abs(ages - rows / 10).max() < 8 * (rows * 0.09) ** 0.5
    assert abs(table["wide"].mean() / 3e12 - 0.5) < 0.01
    assert abs(table["height"].mean() - 0.25) < 0.01


def test_an_error_in_a_block_is_raised(path):
    model = uniform_model()
    drawing, calls = model.draw, []

    def draw(rows, source):
        calls.append(rows)
        if len(calls) == 3:
            raise InputError("no more")
        return drawing(rows, source)

    model.draw = draw
    with pytest.raises(InputError, match="no more"):
        write_stream(path, model, 5000)


def test_a_large_release_is_written_in_blocks_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(synthesis, "KEPT_ROWS", 3000)
    codes = uniform_model().draw(500, SeededRandomSource(1))
    table = SCHEMA.decode(codes, SeededRandomSource(1)).drop(columns=["wide"])
    schema = Schema(tuple(a for a in SCHEMA.attributes if a.name != "wide"))
    fitted = PrivBayes(epsilon=1, seed=1).fit(table, schema)
    told = []
    written = synthesis.write_release(
        tmp_path,
        fitted,
        rows=5500,
        file_format="parquet",
        tell=lambda *told_now: told.append(told_now),
    )
    assert (written.rows, written.synthetic.rows) == (5500, 3000)
    assert read_table(tmp_path / "synthetic.parquet", schema).encode(schema).rows == 5500
    report = (tmp_path / "report.html").read_text()
    assert "5,500 synthetic rows" in report
    assert "the first 3,000 rows" in report
    assert (0.6, "writing rows: 5,500 rows") in told
