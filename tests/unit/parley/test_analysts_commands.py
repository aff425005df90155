"""What analysts do with a release: describe, query, estimate, replicate; a folder or a .zip."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import parley as api
from common.release import replicates
from common.release.replicates import Replicator
from parley.cli.main import main

SCHEMA = """
[[attribute]]
name = "sex"
kind = "categorical"
values = ["Female", "Male"]

[[attribute]]
name = "smoker"
kind = "boolean"

[[attribute]]
name = "age"
kind = "integer"
min = 0
max = 79
bins = 8
missing = true
"""
KEYS = ["statistic", "group", "estimate", "standard_error", "low", "high", "flagged"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study's release, one of PrivBayes and one of Privelet, and the study's as a .zip."""
    folder = tmp_path_factory.mktemp("releases")
    rng = np.random.default_rng(1)
    smoker = rng.random(1_500) < 0.3
    age = pd.Series(rng.integers(0, 60, 1_500) + 15 * smoker, dtype="Int64")
    people = pd.DataFrame(
        {"sex": rng.choice(["Female", "Male"], 1_500), "smoker": smoker, "age": age}
    )
    people.loc[:40, "age"] = pd.NA
    people.to_csv(folder / "data.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA)
    table = [str(folder / "data.csv"), "--schema", str(folder / "schema.toml"), "--epsilon", "2"]
    study = ["simulate", *table, "--parties", "2", "--method", "dp-subn", "--aggregation", "masked"]
    assert main([*study, "--out", str(folder / "study")]) == 0
    for method in ("privbayes", "privelet"):
        words = ["synthesize", *table, "--method", method, "--out", str(folder / method)]
        assert main(words) == 0
    assert main(["bundle", str(folder / "study"), "--out", str(folder / "study.zip")]) == 0
    return folder


@pytest.fixture
def place(made, tmp_path):
    """A copy, so that replicates are kept there."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_zip_is_taken_wherever_a_folder_is(parley, place):
    for words in (
        ["query", "sex = Female and smoker = true", "--tables", "5", "--json"],
        ["describe", "--json"],
        ["estimate", "--mean", "age", "--by", "sex", "--tables", "5", "--json"],
    ):
        command, *rest = words
        found = [parley(command, name, *rest) for name in ("study", "study.zip")]
        assert [each.code for each in found] == [0, 0], found
        assert found[0].json == found[1].json
    data = ["--schema", "schema.toml", "--json"]
    assert parley("evaluate", "data.csv", "study.zip", *data).code == 0


def test_replicates_are_kept_beside_the_release_and_never_in_it(parley, place):
    before = sorted((place / "study").rglob("*"))
    first = parley("estimate", "study", "--mean", "age", "--tables", "5", "--json")
    assert sorted((place / "study").rglob("*")) == before
    (kept,) = (place / "study.replicates").iterdir()
    assert sorted(each.name for each in kept.iterdir()) == [f"{n:04}.npz" for n in range(6)]
    times = {each: each.stat().st_mtime_ns for each in kept.iterdir()}
    assert parley("estimate", "study", "--mean", "age", "--tables", "5", "--json").out == first.out
    assert {each: each.stat().st_mtime_ns for each in kept.iterdir()} == times
    (kept / "0003.npz").write_bytes(b"")
    done = parley("estimate", "study", "--mean", "age", "--tables", "5")
    assert done.code == 3
    assert "0003.npz: not a replicate of this release" in done.err
    assert parley("verify", "study", "--unsigned").code == 0


@pytest.mark.parametrize("name", ["study", "privbayes", "privelet"])
def test_estimates_for_scripts_have_the_same_keys_for_every_method(parley, place, name):
    for words in (
        ["--share", "age >= 40 or age is missing", "--by", "sex"],
        ["--median", "age"],
        ["--quantile", "0.9:age", "--where", "sex != Male"],
        ["--regress", "smoker ~ age + sex"],
    ):
        done = parley("estimate", name, *words, "--tables", "5", "--json")
        assert done.code == 0, done.err
        for each in done.json:
            assert list(each) == KEYS
            assert each["low"] <= each["estimate"] <= each["high"]
    assert [each["statistic"] for each in done.json] == [
        f"smoker ~ age + sex: {term}" for term in ("(intercept)", "age", "sex[Male]")
    ]


def test_queries_know_means_quantiles_groups_and_suggest_names(parley, place):
    groups = parley(
        "query", "study", "age is not missing", "--by", "sex", "--tables", "5", "--json"
    )
    assert [each["group"] for each in groups.json] == ["Female", "Male"]
    total = sum(each["estimate"] for each in groups.json)
    assert total == pytest.approx(1_460, abs=150)
    done = parley("query", "study", "sex = Female", "--mean", "age", "--tables", "5")
    assert done.out.startswith("mean of age: ")
    assert "did you mean 'smoker'" in parley("query", "study", "smokr = true").err
    assert "did you mean 'Female'" in parley("query", "study", "sex = female").err
    assert "interval" in parley("query", "privelet", "sex = Male or smoker = true").out


@pytest.mark.slow
def test_another_process_makes_the_same_tables(made, monkeypatch):
    fitted = api.load(made / "privbayes")
    alone = Replicator(fitted, fitted.released, processes=1).run(5)
    monkeypatch.setattr(replicates, "_WORTH_S", 0.0)
    shared = Replicator(fitted, fitted.released, processes=2).run(5)
    for one, other in zip(alone.tables, shared.tables, strict=True):
        assert all(map(np.array_equal, one.columns, other.columns))


def test_replicate_writes_tables_that_a_seed_repeats(parley, place):
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


def test_the_python_api_estimates_any_function(place):
    release = api.load(place / "study.zip")
    tables = release.replicates(5)
    assert [list(table.columns) for table in tables] == [["sex", "smoker", "age"]] * 5
    (mean,) = release.estimate(lambda table: table["age"].mean(), tables=5)
    assert mean.low < mean.estimate < mean.high
    assert mean.flagged is False
    by = release.estimate(lambda table: table.groupby("sex")["age"].mean(), tables=5)
    assert [each.statistic for each in by] == ["Female", "Male"]
    pooled = api.pool([table["age"].mean() for table in tables])
    assert pooled.low < pooled.estimate < pooled.high


def test_describe_names_every_pair_and_the_report_has_the_list(parley, place):
    found = parley("describe", "study", "--json").json
    assert len(found["pairs"]) == 3
    assert {each["verdict"] for each in found["pairs"]} <= {
        "safe to use", "use with care", "not in this release",
    }  # fmt: skip
    assert all(
        each["residual_spread"] is None or each["follows"] in (True, False)
        for each in found["sums"]
    )
    page = (place / "study" / "report.html").read_text()
    assert "What may be used together" in page
    assert "Not in this release" in page
    said = parley("describe", "study").out
    assert "triples counted together" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "exactly one of"),
        (["--mean", "age", "--share", "sex = Male"], "exactly one of"),
        (["--mean", "sex"], "no numbers"),
        (["--quantile", "age"], "write it like 0.9:age".replace("age", "income")),
        (["--mean", "age", "--tables", "2"], "not in 5"),
        (["--regress", "smoker"], "write it like"),
    ],
)
def test_estimates_that_cannot_be_are_explained(parley, place, words, said):
    done = parley("estimate", "study", *words)
    assert done.code == 3
    assert said in done.err
