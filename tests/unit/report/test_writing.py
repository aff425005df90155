"""What parley writes verifies: of every kind of column, format, size and method, byte for byte."""

import numpy as np
import pytest

from common.fitted import drawing
from common.methods.registry import methods
from common.privacy.randomness import SeededRandomSource
from common.release import synthetic_table
from common.release.contents import FolderContents
from common.release.synthetic_table import read_codes
from common.release.verify import verify
from common.report import writing as synthesis
from common.schema import Codes, Schema
from parley import PrivBayes, Privelet
from parley.simulation.study import simulate
from tests.harness.schemas import WRITTEN as SCHEMA


def rows(schema=SCHEMA, count=400, seed=1):
    """Real rows with every code of every attribute."""
    drawn = np.random.default_rng(seed)
    codes = Codes.from_columns(
        [drawn.integers(0, size, count) for size in schema.sizes], schema.sizes
    )
    return schema.decode(codes, SeededRandomSource(seed))


def problems(folder):
    found = verify(folder, unsigned=True)
    return [str(problem) for problem in found.problems] or list(found.not_checked)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_every_kind_of_column_comes_back_as_it_was_written(tmp_path, file_format):
    table = rows()
    table["word"] = table["word"].astype("category")
    fitted = PrivBayes(epsilon=5).fit(table, SCHEMA)
    written = synthesis.write_release(tmp_path, fitted, rows=3000, file_format=file_format)
    assert problems(tmp_path) == []
    contents = FolderContents(tmp_path)
    read = read_codes(contents, f"synthetic.{file_format}", SCHEMA)
    assert read.rows == 3000
    as_written = synthetic_table.as_in_the_table(SCHEMA, written.synthetic)
    for before, after in zip(as_written.columns, read.columns, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_release_that_is_written_in_blocks_verifies(tmp_path, monkeypatch, file_format):
    for module in (synthesis, drawing):
        monkeypatch.setattr(module, "KEPT_ROWS", 1024)
    monkeypatch.setattr(drawing, "BLOCK_ROWS", 512)
    fitted = PrivBayes(epsilon=5).fit(rows(), SCHEMA)
    synthesis.write_release(tmp_path, fitted, rows=5000, file_format=file_format)
    assert "the first 1,024 rows" in (tmp_path / "report.html").read_text()
    assert problems(tmp_path) == []


@pytest.mark.parametrize("method", methods())
def test_every_method_of_a_study_makes_releases_that_verify(tmp_path, method):
    narrow = Schema(SCHEMA.attributes[1:4])
    names = ("ö", "b", "a")[: methods()[method].parties]
    tables = {name: rows(narrow, 60, seed) for seed, name in enumerate(names)}
    settings = {"target": narrow.names[0]} if method == "distdiffgen" else {}
    asked = [{"relation": narrow.names[:2]}] if method == "answers" else []
    fitted = simulate(
        tables, narrow, epsilon="1/3", method=method, aggregation="clear", settings=settings,
        analyses=asked,
    )  # fmt: skip
    synthesis.write_release(tmp_path, fitted)
    assert problems(tmp_path) == []


@pytest.mark.parametrize("profile", ["sound", "paper"])
@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn"])
def test_profiles_bits_and_cohorts_verify_too(tmp_path, method, profile):
    narrow = Schema(SCHEMA.attributes[1:4])
    tables = [rows(narrow, 500, seed) for seed in range(3)]
    fitted = simulate(
        tables, narrow, epsilon=8, method=method, profile=profile, encoding="binary",
        cohorts=2 if profile == "sound" else 1, aggregation="clear",
    )  # fmt: skip
    synthesis.write_release(tmp_path, fitted)
    assert problems(tmp_path) == []


def test_an_owner_without_a_turn_pays_less_and_the_release_verifies(tmp_path):
    narrow = Schema(SCHEMA.attributes[1:4])
    tables = [rows(narrow, 500, seed) for seed in range(5)]
    settings = {"budget": "1:1:1:1", "views": "optimal"}
    fitted = simulate(
        tables, narrow, epsilon=8, method="dp-subn", aggregation="clear", settings=settings
    )
    assert set(fitted.privacy["exact"]["parties"].values()) == {"8", "6"}
    synthesis.write_release(tmp_path, fitted)
    assert problems(tmp_path) == []


def test_one_column_and_range_counts_verify(tmp_path):
    narrow = Schema(SCHEMA.attributes[3:4])
    for name, maker in (("bayes", PrivBayes(epsilon=1)), ("ranges", Privelet(epsilon=1))):
        (tmp_path / name).mkdir()
        synthesis.write_release(tmp_path / name, maker.fit(rows(narrow, 50), narrow))
        assert problems(tmp_path / name) == []
