"""`parley estimate` and `parley query`."""

import pytest

import parley as api
from common.report.page import readable

KEYS = ["statistic", "group", "estimate", "standard_error", "low", "high", "flagged"]


def test_a_zip_is_taken_wherever_a_folder_is(parley, releases):
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


def test_replicates_are_kept_beside_the_release_and_never_in_it(parley, releases):
    before = sorted((releases / "study").rglob("*"))
    first = parley("estimate", "study", "--median", "age", "--tables", "5", "--json")
    assert sorted((releases / "study").rglob("*")) == before
    (kept,) = (releases / "study.replicates").iterdir()
    assert sorted(each.name for each in kept.iterdir()) == [f"{n:04}.npz" for n in range(6)]
    times = {each: each.stat().st_mtime_ns for each in kept.iterdir()}
    assert (
        parley("estimate", "study", "--median", "age", "--tables", "5", "--json").out == first.out
    )
    assert {each: each.stat().st_mtime_ns for each in kept.iterdir()} == times
    (kept / "0003.npz").write_bytes(b"")
    done = parley("estimate", "study", "--median", "age", "--tables", "5")
    assert done.code == 3
    assert "0003.npz: not a replicate of this release" in done.err
    assert parley("verify", "study", "--unsigned").code == 0


@pytest.mark.parametrize("name", ["study", "privbayes", "privelet"])
def test_estimates_for_scripts_have_the_same_keys_for_every_method(parley, releases, name):
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


def test_the_python_api_estimates_any_function(releases):
    release = api.load(releases / "study.zip")
    tables = release.replicates(5)
    assert [list(table.columns) for table in tables] == [["sex", "smoker", "age"]] * 5
    (mean,) = release.estimate(lambda table: table["age"].mean(), tables=5)
    assert mean.low < mean.estimate < mean.high
    assert mean.flagged is False
    by = release.estimate(lambda table: table.groupby("sex")["age"].mean(), tables=5)
    assert [each.statistic for each in by] == ["Female", "Male"]
    pooled = api.pool([table["age"].mean() for table in tables])
    assert pooled.low < pooled.estimate < pooled.high
    model, independent = release.references()
    assert len(model) == len(independent) > len(tables[0])
    assert sorted(model["smoker"]) == sorted(independent["smoker"])
    assert abs(model["age"].mean() - mean.estimate) < 5 * mean.standard_error


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
def test_estimates_that_cannot_be_are_explained(parley, releases, words, said):
    done = parley("estimate", "study", *words)
    assert done.code == 3
    assert said in done.err


def test_queries_know_means_quantiles_groups_and_suggest_names(parley, releases):
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


def test_a_release_whose_results_are_damaged_is_bad_input_and_no_broken_protocol(
    parley, releases, tmp_path
):
    """Read as a file what a party would send: the model of method `independent` is a message."""
    table = [str(releases / "data.csv"), "--schema", str(releases / "schema.toml")]
    terms = [
        "--epsilon",
        "2",
        "--parties",
        "2",
        "--method",
        "independent",
        "--aggregation",
        "masked",
    ]
    release = tmp_path / "chosen"
    assert parley("simulate", *table, *terms, "--out", str(release)).code == 0
    results = release / "results.bin"
    data = bytearray(results.read_bytes())
    data[len(data) // 2] ^= 0xFF
    results.write_bytes(data)
    done = parley("query", str(release), "sex = Female")
    assert done.code == 3, done.err
    assert "the results are not those of study" in done.err


def test_report_and_estimate_give_one_mean_with_one_interval(parley, releases):
    (found,) = parley("estimate", "study", "--mean", "age", "--json").json
    page = (releases / "study" / "report.html").read_text()
    assert f"{readable(found['low'])} .. {readable(found['high'])}" in page
    assert readable(found["estimate"]) in page


def test_models_have_a_family_and_a_correlation_stays_in_its_range(parley, releases):
    for words in (
        ["--correlation", "age, smoker"],
        ["--model", "age ~ sex", "--family", "poisson"],
        ["--model", "smoker ~ age", "--family", "logistic"],
    ):
        for each in parley("estimate", "study", *words, "--tables", "5", "--json").json:
            assert each["low"] <= each["estimate"] <= each["high"]
            assert "correlation" not in each["statistic"] or -1 <= each["low"] <= each["high"] <= 1
    for words, problem in (
        (["--mean", "age", "--family", "poisson"], "it belongs to --model"),
        (["--model", "age ~ sex", "--family", "logistic"], "is not yes or no"),
        (["--model", "age ~ sex", "--family", "gamma"], "choose one of linear, logistic, poisson"),
        (["--correlation", "age"], "write it like"),
    ):
        done = parley("estimate", "study", *words)
        assert done.code == 3
        assert problem in done.err
