"""`parley draw` and `parley replicate`."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import parley as api
from common.methods.registry import methods
from common.release import replicates
from common.release.replicates import Replicator
from parley.cli.exit_codes import ExitCode

WHERE = "age >= 60 and sex = Female"


@pytest.fixture
def release(parley, small):
    small()

    def make(method):
        table = ["data.csv", "--schema", "schema.toml", "--epsilon", "3", "--out", "r"]
        if method in ("privbayes", "privelet"):
            done = parley("synthesize", *table, "--method", method)
        else:
            more = ["--parties", 2, "--set", "target=sex"] if method == "distdiffgen" else []
            done = parley("simulate", *table, "--method", method, "--aggregation", "masked", *more)
        assert done.code == 0, done.err
        return "r"

    return make


@pytest.mark.parametrize("method", ["privbayes", "privelet", *methods()])
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
    monkeypatch.setattr(replicates, "_WORTH_S", 0.0)
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
    assert sorted(each.name for each in Path("one").iterdir()) == names
    for name in names:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    assert Path("one", names[0]).read_bytes() != Path("one", names[1]).read_bytes()
    assert len(pd.read_parquet("three/table-05.parquet")) == 1_500
    assert parley(*words, "--out", "one").code == 3
    assert parley(*words, "--out", "study/tables").code == 3
    assert parley("replicate", "study", "--tables", "1", "--out", "four").code == 3
    assert not Path("four").exists()
