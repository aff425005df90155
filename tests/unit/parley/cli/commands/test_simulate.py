"""A study of several owners on one machine: the API and the command."""

import json

import pandas as pd
import pytest

from parley.cli.main import main
from parley.simulation.partition import by_column
from parley.simulation.population import demo_schema_toml, make_population


@pytest.fixture(scope="module")
def people():
    return make_population(1_500, seed=5)


@pytest.fixture
def files(tmp_path, people):
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.toml").write_text(demo_schema_toml())
    return tmp_path


def run(files, *arguments):
    return main(
        [
            "simulate", str(files / "people.csv"), "--schema", str(files / "schema.toml"),
            "--epsilon", "2", "--out", str(files / "out"), *arguments,
        ]
    )  # fmt: skip


def test_who_deals_out_by_a_column_is_told_that_its_counts_are_published(files, capsys):
    assert run(files, "--partition-by", "region", "--method", "floor", "--seed", "1") == 0
    assert "the owners of this release are the values of 'region'" in capsys.readouterr().err
    assert "rows = " in (files / "out" / "study.toml").read_text()


def test_the_command_writes_a_release_with_a_transcript(files, capsys):
    method = ("--method", "dp-subn", "--set", "views=optimal")  # whether columns depend or not
    assert run(files, *method, "--aggregation", "paillier", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["epsilon_delivered"] == 2
    assert told["private"] is True
    assert set(told["files"]) == {
        "manifest.json", "model.json", "network.svg", "pages.json", "privacy.json", "report.html",
        "results.bin", "schema.toml", "study.toml", "synthetic.csv", "transcript.json",
        "usage.json",
    }  # fmt: skip
    transcript = json.loads((files / "out" / "transcript.json").read_text())
    phases = transcript["phases"]
    assert {"correlations", "initial structure", "structure update", "parameters"} <= set(phases)
    assert all(bytes_ > 0 for bytes_ in phases["parameters"]["bytes_sent"].values())
    report = (files / "out" / "report.html").read_text()
    assert "Communication" in report
    assert "seconds" not in json.dumps(transcript), "how long it took depends on the rows"
    assert ">seconds<" not in report
    assert "another party" in report
    beside = json.loads((files / "out-times.json").read_text())
    assert beside["phases"] == told["phases"]
    stages = beside["command"]
    assert list(stages) == ["starting", "reading", "study", "fitting", "writing", "whole"]
    assert stages["whole"] == pytest.approx(sum(stages.values()) - stages["whole"], abs=0.3)
    assert stages["study"] >= beside["seconds"] - 0.1
    assert all(phase["seconds"] >= 0 for phase in told["phases"].values())


def test_a_study_release_answers_queries_from_its_rows(files, capsys):
    assert run(files, "--method", "floor", "--aggregation", "masked", "--format", "parquet") == 0
    capsys.readouterr()
    assert main(["query", str(files / "out"), "sex = Female", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    table = pd.read_parquet(files / "out" / "synthetic.parquet")
    assert answer["count"] == pytest.approx((table["sex"] == "Female").mean() * 1_500)
    assert answer["low"] < answer["count"] < answer["high"]
    assert answer["flagged"] is False
    assert main(["query", str(files / "out"), "sex = Female"]) == 0
    assert "95 % interval" in capsys.readouterr().out
    words = ["query", str(files / "out"), "sex = Female and smoker = true", "--tables", "5"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "95 % interval" in said.out
    assert "[flagged]" in said.out
    assert "sex and smoker: not in this release" in said.err


def test_several_files_are_several_owners(files, people, capsys):
    for name, part in by_column(people, "sex").items():
        part.to_csv(files / f"{name}.csv", index=False)
    code = main(
        [
            "simulate", str(files / "Female.csv"), str(files / "Male.csv"),
            "--schema", str(files / "schema.toml"), "--epsilon", "1", "--method", "floor",
            "--aggregation", "masked", "--out", str(files / "out"), "--json",
        ]
    )  # fmt: skip
    assert code == 0
    assert set(json.loads(capsys.readouterr().out)["parties"]) == {"Female", "Male"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--method", "magic"], "'magic' is not one of"),
        (["--noise", "pink"], "'pink' is not one of"),
        (["--aggregation", "trust"], "'trust' is not one of"),
        (["--noise", "one-share"], "does not protect from the other parties"),
        (["--parties", "2000"], "cannot be dealt out"),
        (["--parties", "0"], "at least one owner"),
        (["--parties", "-1", "--person", "id", "--rows-per-person", "1"], "at least one owner"),
        (["--parties", "2", "--partition-by", "sex"], "not both"),
        (["--partition-by", "shoe size"], "no column 'shoe size'"),
        (["--key-bits", "512"], "512 is not one of"),
        (["--rows", "0"], "at least one row"),
        (["--cohorts", "9"], "cohorts"),
    ],
)
def test_mistakes_are_named_and_leave_nothing(files, capsys, arguments, named):
    assert run(files, *arguments) == 3
    assert named in capsys.readouterr().err
    assert not (files / "out").exists()


def test_a_bad_cell_is_named_with_its_line(files, capsys):
    lines = (files / "people.csv").read_text().splitlines()
    lines[7] = lines[7].replace("Female", "Mermaid").replace("Male", "Mermaid")
    (files / "people.csv").write_text("\n".join(lines))
    assert run(files) == 3
    error = capsys.readouterr().err
    assert "people.csv" in error
    assert "Mermaid" in error
    assert "8" in error


MISSING = ("--parties", "4", "--aggregation", "masked", "--may-miss", "1", "--method", "dp-ccbn")


def test_a_study_finishes_without_an_owner_and_its_release_verifies(files, capsys):
    assert run(files, *MISSING, "--drop", "party 2@1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["missing"] == {"party 2": 1}
    privacy = json.loads((files / "out" / "privacy.json").read_text())
    assert (privacy["may_miss"], privacy["missing"]) == (1, {"party 2": 1})
    first = privacy["steps"][0]["parties"]["party 2"]
    assert privacy["parties"]["party 2"] == pytest.approx(first)
    assert privacy["parties"]["party 1"] == 2
    there = [set(step["parties"]) for step in privacy["steps"]]
    everybody = {f"party {number}" for number in range(1, 5)}
    assert there == [everybody, *[everybody - {"party 2"}] * (len(there) - 1)]
    assert json.loads((files / "out" / "transcript.json").read_text())["missing"] == {"party 2": 1}
    assert "parties that went missing" in (files / "out" / "report.html").read_text()
    assert main(["verify", str(files / "out"), "--unsigned"]) == 0
    privacy["missing"] = {"party 3": 1}
    (files / "out" / "privacy.json").write_text(json.dumps(privacy, indent=2))
    assert main(["verify", str(files / "out"), "--unsigned"]) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*MISSING, "--drop", "party 2@1", "--drop", "party 3@2"), "party 2 went missing before"),
        ((*MISSING, "--drop", "nobody@1"), "nobody is not a party"),
        ((*MISSING, "--drop", "party 2"), "write OWNER@STEP"),
        ((*MISSING, "--aggregation", "paillier"), 'use aggregation = "masked"'),
        ((*MISSING, "--method", "dp-subn"), "dp-subn asks single parties"),
        ((*MISSING, "--parties", "3"), "at least 4 parties are needed"),
    ],
)
def test_what_cannot_do_without_an_owner_ends_with_a_reason_and_no_file(
    files, capsys, arguments, words
):
    assert run(files, *arguments) in (3, 5)
    assert words in capsys.readouterr().err
    assert not (files / "out").exists()
    assert not (files / "out-times.json").exists()
