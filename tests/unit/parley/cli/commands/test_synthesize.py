"""`parley synthesize` and `parley query`: the folder, its contents, and when it is not written."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from common.release import folder as release
from common.schema import Schema

ROOT = Path(__file__).resolve().parents[5]
WORDS = ["synthesize", "data.csv", "--schema", "schema.toml", "--epsilon", "1"]


@pytest.fixture(scope="session")
def privbayes_release(tmp_path_factory, study):
    from parley.cli.main import main

    out = tmp_path_factory.mktemp("releases") / "privbayes"
    assert main(["synthesize", str(study / "data.csv"), "--schema", str(study / "schema.toml"),
                 "--epsilon", "1", "--method", "privbayes", "--out", str(out)]) == 0  # fmt: skip
    return out


def test_the_default_method_is_that_of_studies_and_its_release_verifies(parley, small):
    small()
    done = parley(*WORDS, "--out", "release")
    assert done.code == 0, done.err
    assert json.loads(Path("release/model.json").read_text())["method"] == "subn+"
    assert json.loads(Path("release/privacy.json").read_text())["parties"] == {"owner": 1.0}
    assert parley("verify", "release", "--unsigned").code == 0
    assert parley(*WORDS, "--score", "R", "--out", "other").code == 0
    assert json.loads(Path("other/model.json").read_text())["method"] == "privbayes"


def test_a_privbayes_release_has_every_file(privbayes_release):
    assert sorted(p.name for p in privbayes_release.iterdir()) == [
        "manifest.json", "model.json", "network.svg", "pages.json", "privacy.json", "report.html",
        "schema.toml", "synthetic.csv", "usage.json",
    ]  # fmt: skip


def test_the_synthetic_table_fits_the_schema_and_looks_like_the_input(privbayes_release, people):
    table = pd.read_csv(privbayes_release / "synthetic.csv")
    assert list(table.columns) == list(people.columns)
    assert len(table) == len(people)
    assert table["age"].dtype == "int64"
    assert table["last_visit"].str.fullmatch(r"\d{4}-\d{2}-\d{2}").all()
    schema = Schema.load(privbayes_release / "schema.toml")
    assert schema.encode(table).rows == len(people)


def test_the_statement_has_the_fixed_keys(privbayes_release):
    found = json.loads((privbayes_release / "privacy.json").read_text())
    assert found["epsilon_requested"] == found["epsilon_delivered"] == 1.0
    assert found["parties"] == {"owner": 1.0}
    assert found["private"] is True
    assert sum(step["epsilon"] for step in found["steps"]) == pytest.approx(1.0)


def test_the_report_asks_nothing_of_the_network_and_has_alternatives_for_pictures(
    privbayes_release,
):
    page = (privbayes_release / "report.html").read_text()
    assert "src=" not in page
    assert "<script" not in page
    pictures = page.count("<svg") - page.count('<svg class="mark" aria-hidden="true"')
    assert pictures == page.count('role="img" aria-label="')
    assert pictures == 13 + 3  # a chart per attribute, means, network, heat map
    assert "epsilon = 1 " in page
    assert "prefers-color-scheme:dark" in page


def test_a_seed_repeats_the_release_and_says_not_private(parley, small):
    folder = small()
    for name in ("a", "b"):
        done = parley(*WORDS, "--out", name, "--seed", 7, "--json")
        assert done.code == 0
        assert done.json["private"] is False
        assert "NOT PRIVATE" in done.err
    texts = [(folder / name / "synthetic.csv").read_text() for name in ("a", "b")]
    assert texts[0] == texts[1]
    assert "NOT PRIVATE" in (folder / "a" / "report.html").read_text()
    assert json.loads((folder / "a" / "privacy.json").read_text())["private"] is False


def test_rows_and_format_are_as_asked(parley, small):
    folder = small()
    done = parley(*WORDS, "--out", "r", "--rows", 5, "--format", "parquet", "--json")
    assert done.code == 0
    assert done.json["rows"] == 5
    assert "synthetic.parquet" in done.json["files"]
    assert len(pd.read_parquet(folder / "r" / "synthetic.parquet")) == 5


@pytest.mark.parametrize("encoding", ["binary", "gray", "vanilla", "hierarchical"])
def test_every_encoding_makes_a_release(parley, small, encoding):
    folder = small()
    assert parley(*WORDS, "--out", "r", "--encoding", encoding).code == 0
    assert json.loads((folder / "r/model.json").read_text())["model"]["encoding"] == encoding


def test_required_and_forbidden_edges_are_obeyed(parley, small):
    folder = small()
    for word, there in (("--require", True), ("--forbid", False)):
        done = parley(*WORDS, "--out", "r", "--overwrite", "--encoding", "vanilla",
                      word, "age->sex")  # fmt: skip
        assert done.code == 0
        drawn = "age → sex" in (folder / "r/network.svg").read_text()
        assert drawn is there


@pytest.mark.parametrize("variant", ["basic", "privelet", "privelet+", "privelet*"])
def test_a_privelet_release_can_be_asked(parley, small, variant):
    folder = small()
    done = parley(*WORDS, "--method", "privelet", "--variant", variant, "--out", "r")
    assert done.code == 0
    assert sorted(p.name for p in (folder / "r").iterdir()) == [
        "manifest.json", "model.json", "pages.json", "privacy.json", "ranges.zip", "report.html",
        "schema.toml", "synthetic.csv", "usage.json",
    ]  # fmt: skip
    assert json.loads((folder / "r/privacy.json").read_text())["epsilon_delivered"] == 1.0
    found = parley("query", "r", "age in 20..39 and sex = Female", "--json").json
    known = variant != "privelet*"
    assert (found["standard_deviation"] is not None) is known
    if known:
        assert found["low"] < found["count"] < found["high"]
    assert "(" in parley("query", "r", "age >= 50").out


def test_a_privbayes_release_answers_by_its_model(parley, privbayes_release):
    found = parley("query", privbayes_release, "sex = Female", "--json").json
    table = pd.read_csv(privbayes_release / "synthetic.csv")
    share = (table["sex"] == "Female").mean()
    assert found["count"] / found["rows"] == pytest.approx(share, abs=0.11)  # 600 rows, 5 sd
    assert "model" in found["source"]
    said = parley("query", privbayes_release, "sex = Female").out
    assert "by the model" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sex = Robot"], "'Robot'"),
        (["sex is Male"], "For a value write ="),
        (["height = 3"], "no attribute 'height'"),
        (["age in 21..39"], "cuts through a bin"),
        (["sex = Male", "--confidence", "1.5"], "--confidence"),
    ],
)
def test_a_question_that_cannot_be_answered_is_explained(parley, privbayes_release, words, said):
    done = parley("query", privbayes_release, *words)
    assert done.code == 3
    assert said in done.err
    assert done.out == ""


def test_a_folder_that_is_no_release_cannot_be_asked(parley, tmp_path):
    done = parley("query", tmp_path, "sex = Male")
    assert done.code == 3
    assert "not a release" in done.err


DAMAGED = ("{", "[]", '{"format": "other"}', '{"format": "parley model 1", "method": "privbayes"}')


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_model_is_named(parley, tmp_path, content):
    (tmp_path / "model.json").write_text(content)
    done = parley("query", tmp_path, "sex = Male")
    assert done.code == 3
    assert "model.json" in done.err


def test_the_target_is_checked_before_the_table_is_read(parley, small):
    folder = small(data="nonsense")
    (folder / "r").mkdir()
    (folder / "r" / "thesis.txt").write_text("years of work")
    done = parley(*WORDS, "--out", "r", "--overwrite")
    assert done.code == 3
    assert "not a release" in done.err


def test_a_place_that_cannot_be_written_costs_no_budget(parley, small, monkeypatch):
    folder = small()
    (folder / "file").write_text("")
    spent = []
    monkeypatch.setattr("common.privacy.accountant.Accountant.charge", lambda *a: spent.append(a))
    done = parley(*WORDS, "--out", "file/below")
    assert done.code == 3
    assert "cannot write" in done.err
    assert spent == []


def test_the_budget_is_charged_before_anything_is_drawn(small, monkeypatch):
    from common.errors import PolicyError
    from common.privacy.randomness import OsRandomSource
    from parley.models.single_owner import PrivBayes, Privelet

    def refuse(*_):
        raise PolicyError("refused")

    folder = small()
    drawn = []
    monkeypatch.setattr("common.privacy.accountant.Accountant.charge", refuse)
    monkeypatch.setattr(OsRandomSource, "random_bytes", lambda *a: drawn.append(a))
    table = pd.read_csv(folder / "data.csv")
    edge = {"network": {"age": [], "sex": ["age"]}}  # without one, the root's place is drawn freely
    for maker in (PrivBayes(**edge), Privelet()):
        with pytest.raises(PolicyError):
            maker.fit(table, folder / "schema.toml")
    assert drawn == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError, MemoryError])
def test_a_failure_while_writing_leaves_the_earlier_release(parley, small, monkeypatch, kind):
    folder = small()
    assert parley(*WORDS, "--out", "r").code == 0
    before = {p.name: p.read_bytes() for p in (folder / "r").iterdir()}

    def fail(*_, **__):
        raise kind

    monkeypatch.setattr("common.report.writing.release_page", fail)
    code = parley(*WORDS, "--out", "r", "--overwrite").code
    assert code == (130 if kind is KeyboardInterrupt else 3)
    assert {p.name: p.read_bytes() for p in (folder / "r").iterdir()} == before
    assert sorted(p.name for p in folder.iterdir()) == ["data.csv", "r", "schema.toml"]


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupt_in_a_real_shell_leaves_nothing(small, number):
    folder = small()
    program = (
        "import os, signal\n"
        # As in a terminal: a background job inherits a SIGINT that is ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import common.report.writing\n"
        f"common.report.writing.release_page = lambda facts: os.kill(os.getpid(), {int(number)})\n"
        "from parley.__main__ import run\n"
        "run()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *WORDS, "--out", "r"], cwd=folder,
                          env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
                          text=True)  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "the command was interrupted, and nothing was left half-written" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["data.csv", "schema.toml"]


def test_the_release_is_not_in_the_way_of_a_relative_path(parley, small):
    folder = small()
    assert parley(*WORDS, "--out", "deep/er/r").code == 0
    assert (folder / "deep/er/r" / release.REPORT).is_file()


def test_a_schema_that_nobody_reviewed_is_warned_of(parley, small):
    folder = small()
    assert parley("schema", "infer", "data.csv", "--out", "draft.toml").code == 0
    words = ["synthesize", "data.csv", "--schema", "draft.toml", "--epsilon", 1, "--out"]
    assert "draft.toml still says NOT PRIVATE YET" in parley(*words, "one").err
    text = (folder / "draft.toml").read_text()
    (folder / "draft.toml").write_text(text.replace("# NOT PRIVATE YET", "# reviewed; it said"))
    assert "NOT PRIVATE" not in parley(*words, "two").err


def test_a_release_of_too_few_rows_says_that_it_is_noise(parley, small):
    folder = small()
    words = ["synthesize", "data.csv", "--schema", "schema.toml", "--out"]
    done = parley(*words, "few", "--epsilon", "0.1")
    assert done.code == 0
    assert "Mostly noise: in 2 of 2 columns (age; sex)" in done.err
    assert "Mostly noise" in (folder / "few" / "report.html").read_text()
    clear = parley(*words, "clear", "--epsilon", "1000")
    assert "Mostly noise" not in clear.err
    assert "Mostly noise" not in (folder / "clear" / "report.html").read_text()


@pytest.mark.parametrize(("epsilon", "warned"), [("8", False), ("9", True), ("1000", True)])
def test_an_epsilon_that_promises_little_is_warned_about_where_it_is_typed(
    parley, small, epsilon, warned
):
    small()
    done = parley(
        "synthesize", "data.csv", "--schema", "schema.toml", "--epsilon", epsilon, "--out", "r"
    )
    assert done.code == 0
    assert ("promises next to nothing" in done.err) is warned


def test_what_users_must_know_first_is_in_a_file_and_on_the_terminal(parley, small):
    folder = small()
    done = parley(
        "synthesize", "data.csv", "--schema", "schema.toml", "--epsilon", "0.001", "--out", "r"
    )
    usage = json.loads((folder / "r" / "usage.json").read_text())
    assert usage["cautions"]
    assert all(words in done.err for words in usage["cautions"])
    assert parley("verify", "r", "--unsigned").code == 0
    usage["cautions"] = []
    (folder / "r" / "usage.json").write_text(json.dumps(usage))
    assert parley("verify", "r", "--unsigned").code != 0
