"""The method answers: sums of what analyses need, no synthetic rows, and refusals by name."""

from fractions import Fraction

import numpy as np
import pytest

import parley
from common.errors import InputError
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.release.verify import verify
from common.study.analyses import Analysis
from common.study.criteria import Criterion
from common.study.script import drive
from common.study.steps import OnePlace
from parley.simulation.population import demo_schema_toml, make_population
from tests.harness.run_script import random_tables, study_of

MIXED = (5, 3, 4, 2)
ASKED = ['mean = "income", by = "sex"', 'relation = ["age", "income"]', 'share = "smoker = true"']


def test_only_columns_that_an_analysis_names_are_counted_and_all_is_spent():
    tables = random_tables(MIXED, [200] * 3)
    analyses = (Analysis("relation", ("a0", "a2")), Analysis("share", ("a3 = 0",)))
    study = study_of(tables, method="answers", analyses=analyses)
    place = OnePlace(study, tables, SeededRandomSource("x"))
    run = drive(run_of(study), place.answer)
    counted = [table.variables for step in run.steps for table in step.tables]
    assert counted == [(0,), (2,), (3,), (0, 2)]
    assert sum(step.costs["p0"] for step in run.steps) == study.promise.budget
    model = run.model()
    assert model.sample(50, SeededRandomSource("rows")).sizes == MIXED
    assert [table["attributes"] for table in model.as_json()["tables"]] == [[0], [2], [3], [0, 2]]
    assert model.form() == ()


@pytest.mark.parametrize(("terms", "problem"), [
    ({"analyses": ()}, "analysis: method answers publishes what analyses need"),
    ({"output_rows": 10}, "rows: method answers publishes no synthetic rows"),
    ({"others": Fraction(0)}, "others: method answers"),
    ({"criteria": (Criterion("share", "a0 = 0", Fraction(1, 10)),),
      "criteria_epsilon": Fraction(1, 10)}, "criterion: method answers"),
    ({"encoding": "binary"}, "encoding: answers cannot take"),
    ({"settings": (("dependence", "expected"),)}, r"\[answers\]: the method has no settings"),
])  # fmt: skip
def test_what_it_has_no_use_for_is_refused_by_name(terms, problem):
    study = study_of(random_tables(MIXED, [200] * 3), method="answers", **terms)
    with pytest.raises(InputError, match=problem):
        drive(run_of(study), lambda step: np.zeros(step.cells, np.int64))


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    people = make_population(3000, seed=1)
    fitted = parley.simulate(
        [people.iloc[::2], people.iloc[1::2]], parley.Schema.from_toml(demo_schema_toml()),
        epsilon=1, method="answers", analyses=ASKED, aggregation="masked",
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("answers") / "release"
    fitted.save(folder)
    return fitted, folder


def test_a_release_of_answers_has_no_rows_and_verifies(release):
    _, folder = release
    assert not any("synthetic" in file.name for file in folder.iterdir())
    assert not list(verify(folder, unsigned=True).problems)
    report = (folder / "report.html").read_text()
    assert "mean of income by sex" in report
    assert "no synthetic rows" in report


def test_its_answers_are_the_same_before_and_after_it_is_read(release):
    fitted, folder = release
    loaded = parley.load(folder)
    before, after = fitted.answers(), loaded.answers()
    assert [each.as_json() for each in before] == [each.as_json() for each in after]
    (alone,) = loaded.estimate(lambda table: table["smoker"].mean(), uses=["smoker"])
    assert alone.low <= before[2].estimates[0].estimate <= alone.high


def test_whatever_needs_rows_says_that_there_are_none(release):
    _, folder = release
    loaded = parley.load(folder)
    for ask in (
        lambda: loaded.sample(10), lambda: loaded.replicates(5), loaded.references,
        lambda: loaded.count("age >= 65"),
    ):  # fmt: skip
        with pytest.raises(InputError, match="no synthetic rows"):
            ask()
    with pytest.raises(InputError, match="no declared analysis has region"):
        loaded.estimate(lambda table: (table["region"] == "North").mean(), uses=["region"])
