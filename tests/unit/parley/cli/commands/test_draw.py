"""`parley draw` and `parley replicate`."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import parley as api
from common.analysis import replicates
from common.analysis.replicates import Replicator
from common.methods.registry import methods
from common.release import synthetic_table
from parley.cli.commands import draw
from parley.cli.exit_codes import ExitCode
from parley.cli.main import main
from tests.harness.command_line import write_small

WHERE = "age >= 60 and sex = Female"
WITH_ROWS = [name for name, method in methods().items() if method.publishes_rows]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make the release of a method, once."""
    folder = write_small(tmp_path_factory.mktemp("drawn"))
    table = [str(folder / "data.csv"), "--schema", str(folder / "schema.toml"), "--epsilon", "3"]

    @cache
    def make(method):
        if method in ("privbayes", "privelet"):
            words = ["synthesize", *table, "--method", method]
        else:
            more = ["--parties", "2", "--set", "target=sex"] if method == "distdiffgen" else []
            words = ["simulate", *table, "--method", method, "--aggregation", "masked", *more]
        assert main([*words, "--out", str(folder / method)]) == 0
        return folder / method

    return make


@pytest.fixture
def release(parley, made, small, tmp_path):
    """Copy the release of a method beside the rows."""
    small()
    return lambda method: str(shutil.copytree(made(method), tmp_path / "r").name)


@pytest.mark.parametrize("method", ["privbayes", "privelet", *WITH_ROWS])
def test_rows_of_a_release_satisfy_the_condition(parley, release, method):
    folder = release(method)
    done = parley("draw", folder, "--where", WHERE, "--rows", 300, "--out", "rows.csv", "--seed", 7)
    assert done.code == 0, done.err
    rows = pd.read_csv("rows.csv")
    assert len(rows) == 300
    assert (rows["age"] >= 60).all()
    assert (rows["sex"] == "Female").all()
    again = parley("draw", folder, "--where", WHERE, "--rows", 300, "--seed", 7)
    assert again.out == (rows.to_csv(index=False))
    loaded = api.load(folder).sample(50, where="sex = Male")
    assert (loaded["sex"] == "Male").all()


def test_rows_are_drawn_without_a_condition_too(parley, release):
    done = parley("draw", release("floor"), "--out", "rows.parquet", "--json")
    assert done.json == {"out": "rows.parquet", "rows": len(pd.read_csv("data.csv")), "where": ""}
    assert set(pd.read_parquet("rows.parquet").columns) == {"age", "sex"}


@pytest.mark.parametrize("where", ["", WHERE])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_many_rows_are_drawn_in_blocks(parley, release, monkeypatch, where, suffix):
    monkeypatch.setattr(draw, "KEPT_ROWS", 1000)
    monkeypatch.setattr(synthetic_table, "BLOCK_ROWS", 300)
    words = ["draw", release("subn+"), "--where", where, "--rows", 1100, "--seed", 7]
    done = parley(*words, "--out", f"rows.{suffix}", "--json")
    assert done.json == {"out": f"rows.{suffix}", "rows": 1100, "where": where}
    rows = pd.read_csv("rows.csv") if suffix == "csv" else pd.read_parquet("rows.parquet")
    assert (len(rows), set(rows.columns)) == (1100, {"age", "sex"})
    if where:
        assert (rows["age"] >= 60).all()
        assert (rows["sex"] == "Female").all()


def test_many_rows_go_to_the_output_as_to_a_file(parley, release, monkeypatch):
    monkeypatch.setattr(draw, "KEPT_ROWS", 1000)
    words = ["draw", release("subn+"), "--rows", "1100", "--seed", "7"]
    assert parley(*words, "--out", "rows.csv").code == 0
    assert parley(*words).out == Path("rows.csv").read_text()


def test_drawing_takes_the_same_memory_for_any_number_of_rows(release):
    """Kept in memory, 1,500,000 more rows would take 50 MB or more."""
    program = "import sys; from parley.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "draw", release("floor"), "--seed", "7"]

    def peak_mb(rows):
        more = ["--rows", str(rows), "--out", f"{rows}.csv"]
        with subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return used.ru_maxrss / 1024

    assert peak_mb(2_600_000) < peak_mb(1_100_000) + 25


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--where", "height = 3"], "no attribute 'height'"),
        (["--where", "age >= 60 and age < 60"], "no row of this model satisfies it"),
        (["--rows", "0"], "at least one row"),
        (["--out", "rows.txt"], ".csv or .parquet"),
        (["--out", "data.csv"], "exists already"),
        (["--json"], "--out"),
    ],
)
def test_mistakes_are_refused(parley, release, words, told):
    done = parley("draw", release("floor"), *words)
    assert done.code == ExitCode.INPUT
    assert told in done.err


def test_conditions_may_join_attributes_by_or(parley, release):
    where = "not sex = Male or age >= 90"
    assert parley("draw", release("subn+"), "--where", where, "--out", "r.csv").code == 0
    rows = pd.read_csv("r.csv")
    assert ((rows["sex"] != "Male") | (rows["age"] >= 90)).all()


@pytest.mark.slow
def test_another_process_makes_the_same_tables(made_releases, monkeypatch):
    fitted = api.load(made_releases / "privbayes")
    alone = Replicator(fitted, fitted.released, processes=1).run(5)
    monkeypatch.setattr(replicates, "_WORTH_S", 1e-9)
    shared = Replicator(fitted, fitted.released, processes=2).run(5)
    for one, other in zip(alone.tables, shared.tables, strict=True):
        assert all(map(np.array_equal, one.columns, other.columns))


def test_replicate_writes_tables_that_a_seed_repeats(parley, releases):
    words = ["replicate", "study", "--tables", "5", "--seed", "7"]
    assert parley(*words, "--out", "one").code == 0
    shutil.rmtree("study.replicates")
    assert parley(*words, "--out", "two").code == 0
    assert parley(*words, "--out", "three", "--format", "parquet").code == 0
    names = [f"table-0{number}.csv" for number in range(1, 6)]
    references = ["independent.csv", "model.csv"]
    assert sorted(each.name for each in Path("one").iterdir()) == [*references, *names]
    for name in (*names, *references):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    assert Path("one", names[0]).read_bytes() != Path("one", names[1]).read_bytes()
    assert len(pd.read_parquet("three/table-05.parquet")) == 1_500
    assert parley(*words, "--out", "one").code == 3
    assert parley(*words, "--out", "study/tables").code == 3
    assert parley("replicate", "study", "--tables", "1", "--out", "four").code == 3
    assert not Path("four").exists()
