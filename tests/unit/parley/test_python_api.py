"""`import parley`: fit, sample, count, save, load, draw."""

import datetime as dt
from fractions import Fraction

import pandas as pd
import pytest

import parley
from common.errors import InputError
from common.release.synthetic_table import Columns
from common.tables import read_table
from parley.simulation.population import demo_schema_toml
from tests.harness.people import SMOKERS as SCHEMA
from tests.harness.people import smokers as table_of


@pytest.fixture(scope="module")
def fitted():
    return parley.PrivBayes(epsilon=50.0).fit(table_of(4_000), SCHEMA)


def test_every_public_name_is_there():
    assert all(getattr(parley, name) is not None for name in parley.__all__)
    assert set(parley.__all__) <= set(dir(parley))
    with pytest.raises(AttributeError):
        parley.nothing  # noqa: B018


def test_synthetic_rows_have_the_order_of_the_input_and_the_types_of_the_schema(fitted):
    sample = fitted.sample(1_000)
    assert list(sample.columns) == ["sex", "age", "smokes"]
    assert [str(dtype) for dtype in sample.dtypes] == ["str", "int64", "boolean"]
    assert len(sample) == 1_000
    assert sample["age"].between(0, 79).all()


def test_with_a_large_budget_the_dependence_is_learnt(fitted):
    sample = fitted.sample(4_000)
    assert (sample["smokes"] == (sample["age"] > 40)).mean() > 0.9


def test_the_whole_population_of_the_demonstration_comes_back_alike(people):
    schema = parley.Schema.from_toml(demo_schema_toml())
    sample = parley.PrivBayes(epsilon=1).fit(people, schema).sample(50)
    assert list(sample.dtypes) == list(people.dtypes)
    assert schema.encode(sample).rows == 50


def test_the_statement_is_exact(fitted):
    assert fitted.privacy["exact"]["epsilon_delivered"] == "50"
    tenth = parley.PrivBayes(epsilon=0.1).fit(table_of(100), SCHEMA)
    assert tenth.privacy["exact"]["epsilon_delivered"] == "1/10"
    third = parley.Privelet(epsilon=Fraction(1, 3)).fit(table_of(100), SCHEMA)
    assert third.privacy["exact"]["epsilon_delivered"] == "1/3"


def test_a_seeded_fit_repeats_and_is_not_private():
    runs = [parley.PrivBayes(seed=5).fit(table_of(300), SCHEMA).sample(20) for _ in range(2)]
    pd.testing.assert_frame_equal(*runs)
    assert parley.PrivBayes(seed=5).fit(table_of(300), SCHEMA).privacy["private"] is False


def test_a_network_of_ones_own_is_used_and_costs_nothing():
    network = {"age": [], "sex": [], "smokes": ["age"]}
    fitted = parley.PrivBayes(network=network, epsilon=1).fit(table_of(200), SCHEMA)
    assert fitted.model.network.edges == [(0, 2)]
    assert len(fitted.privacy["steps"]) == 1
    with pytest.raises(InputError, match="'sex'"):
        parley.PrivBayes(network={"age": [], "smokes": []}).fit(table_of(200), SCHEMA)


def test_arrow_tables_and_files_are_taken_as_well(tmp_path):
    table_of(60).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml())
    file = read_table(tmp_path / "t.csv", SCHEMA)
    for table in (file, file.data):
        sample = parley.PrivBayes().fit(table, tmp_path / "s.toml").sample(3)
        assert list(sample.columns) == ["sex", "age", "smokes"]


def test_something_that_is_no_table_is_refused():
    with pytest.raises(InputError, match="list"):
        parley.PrivBayes().fit([[1, 2]], SCHEMA)


def test_tables_are_compared_by_the_schema(fitted):
    found = parley.evaluate(table_of(4_000), fitted.sample(), SCHEMA, ["smokes"])
    assert found.as_json()["tvd_1"] < 0.1


def test_saving_into_a_folder_that_is_not_there_is_an_input_error(fitted, tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        fitted.save(tmp_path / "no" / "model.json")


# The types of columns


def test_categories_of_the_data_are_not_kept():
    """The categories of a categorical often are the values that occur: they would be a leak."""
    table = table_of(20).assign(sex=pd.Categorical(["M"] * 20))
    types = Columns.of(table, SCHEMA)
    decoded = pd.DataFrame({"sex": pd.Series(["F", "M"], dtype="str")})
    shaped = types.shape(decoded, SCHEMA)["sex"]
    assert list(shaped.dtype.categories) == ["F", "M"]
    assert not shaped.dtype.ordered


GAPS = parley.Schema.from_toml(
    """
attribute = [
  { name = "visits", kind = "integer", min = 0, max = 9, missing = true },
  { name = "dose", kind = "real", min = 0, max = 8, bins = 4 },
  { name = "day", kind = "date", min = 2024-01-01, max = 2024-12-31, bins = 4, missing = true },
]
"""
)


def rows_with(**last):
    """Twenty rows; one cell of the last is replaced."""
    columns = {"visits": [3] * 20, "dose": [1] * 20, "day": [dt.date(2024, 1, 5)] * 20}
    for name, value in last.items():
        columns[name][-1] = value
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    "changed",
    [{"visits": None}, {"visits": 4.0}, {"dose": 0.5}, {"day": None}, {"day": "2024-03-01"}],
    ids=str,
)
@pytest.mark.parametrize("maker", [parley.PrivBayes, parley.Privelet])
def test_neighbours_have_releases_of_the_same_types(changed, maker):
    """The type that pandas infers depends on every cell: published, it would tell of a row."""
    usual, other = rows_with(), rows_with(**changed)
    releases = [maker(epsilon=1).fit(table, GAPS) for table in (usual, other)]
    columns = [release.to_json()["columns"] for release in releases]
    assert columns[0] == columns[1]
    dtypes = [list(release.sample(200).dtypes) for release in releases]
    assert dtypes[0] == dtypes[1]


def test_neighbouring_files_have_releases_of_the_same_types(tmp_path):
    """A cell that does not fit its type makes Arrow read everything as text."""
    columns = []
    for name, cell in (("usual", "3"), ("other", "3.0")):
        path = tmp_path / f"{name}.csv"
        path.write_text("visits,dose,day\n" + "3,1,2024-01-05\n" * 19 + f"{cell},1,2024-01-05\n")
        fitted = parley.PrivBayes(epsilon=1).fit(read_table(path, GAPS), GAPS)
        columns.append((fitted.to_json()["columns"], list(fitted.sample(5).dtypes)))
    assert columns[0] == columns[1]


@pytest.fixture(scope="module")
def by_subn():
    table = table_of(3_000).assign(patient=[f"Patient {n}" for n in range(3_000)])
    return parley.Subn(epsilon=20).fit(table, SCHEMA)


def test_one_owner_gets_the_method_of_studies_by_the_same_interface(by_subn, fitted, tmp_path):
    for made in (by_subn, fitted):
        assert len(made.sample(100)) == 100
        assert 0.3 < made.count("sex = F").share < 0.7
        made.report(tmp_path / f"{type(made).__name__}.html")
        assert (tmp_path / f"{type(made).__name__}.html").read_text().startswith("<!doctype html>")
    by_subn.save(tmp_path / "release")
    read = parley.load(tmp_path / "release")
    assert read.schema.names == SCHEMA.names
    assert repr(read).startswith("FittedStudy: 3,000 rows, 3 columns, epsilon 20\n")
    assert repr(read).count("\n") == 2
    with pytest.raises(InputError, match="already holds a release"):
        by_subn.save(tmp_path / "release")


def test_a_column_that_the_schema_does_not_name_is_in_no_release(by_subn, tmp_path):
    by_subn.save(tmp_path / "release")
    for file in (tmp_path / "release").rglob("*"):
        if file.is_file():
            assert b"atient" not in file.read_bytes(), file.name


def test_a_model_in_a_notebook_is_a_few_lines_and_a_picture(by_subn, fitted):
    ranges = parley.Privelet(epsilon=1.0).fit(table_of(100), SCHEMA)
    for made in (by_subn, fitted, ranges):
        assert repr(made).count("\n") == 2
        assert len(repr(made)) < 400
        assert "epsilon" in made._repr_html_()
    assert "<svg" in by_subn._repr_html_()


def test_a_schema_is_proposed_from_a_table():
    proposal = parley.Schema.infer(table_of(500), missing=["M"])
    assert proposal.schema.names == ("sex", "age", "smokes")
    assert proposal.schema.attributes[0].missing_codes == ("M",)


def test_a_schema_and_an_evaluation_are_a_few_lines_in_a_notebook():
    assert repr(SCHEMA).count("\n") == 0
    assert len(repr(SCHEMA)) < 200
    table = table_of(60)
    shown = repr(parley.evaluate(table, table, SCHEMA))
    assert shown.startswith("60 synthetic rows against 60 real ones\n1-way distance 0.0000")
    assert len(shown) < 600
