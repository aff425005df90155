"""`parley draw` on releases of every method."""

import pandas as pd
import pytest

import parley as api
from common.methods.registry import methods
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
