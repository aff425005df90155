"""`import parley`: fit, sample, count, save, load, draw."""

import datetime as dt
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

import parley
from common.errors import InputError
from common.release.synthetic_table import TableColumns
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


@pytest.mark.parametrize("wrong", [[[1, 2]], table_of(3).to_numpy(), None])
def test_something_that_is_no_table_is_refused(wrong):
    with pytest.raises(InputError, match=r"pandas, Polars, Arrow.* not (list|ndarray|NoneType)"):
        parley.PrivBayes().fit(wrong, SCHEMA)


class OfAnotherLibrary:
    """A table that only hands over Arrow's columns, as one of Polars does."""

    def __init__(self, table):
        self._table = pa.Table.from_pandas(table, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self):
        return len(self._table)


def test_a_path_and_tables_of_other_libraries_are_taken(tmp_path):
    table_of(60).to_csv(tmp_path / "t.csv", index=False)
    expected = parley.PrivBayes(seed=1).fit(table_of(60), SCHEMA).sample(5)
    for table in (tmp_path / "t.csv", str(tmp_path / "t.csv"), OfAnotherLibrary(table_of(60))):
        sample = parley.PrivBayes(seed=1).fit(table, SCHEMA).sample(5)
        assert sample.astype(str).equals(expected.astype(str))
    drafted = parley.Schema.infer(OfAnotherLibrary(table_of(60)))
    assert drafted.schema.names == ("sex", "age", "smokes")


def test_a_path_is_read_before_a_schema_is_proposed(tmp_path):
    table_of(60).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=r"parley.read_table\(path\).data"):
        parley.Schema.infer(tmp_path / "t.csv")
    assert parley.Schema.infer(parley.read_table(tmp_path / "t.csv").data).schema.names


def test_a_draft_is_taken_with_a_warning():
    table = table_of(60)
    with pytest.warns(parley.PrivacyWarning, match="read off the data"):
        made = parley.PrivBayes(epsilon=1).fit(table, parley.Schema.infer(table))
    assert made.schema.names == ("sex", "age", "smokes")
    assert repr(parley.Schema.infer(table)).startswith("Draft, NOT PRIVATE YET: Schema of 3")


def test_a_schema_is_written_in_python():
    columns = {
        "sex": ["F", "M"], "smokes": bool, "age": range(80),
        "income": {"kind": "real", "min": 0, "max": 90_000, "bins": 9},
    }  # fmt: skip
    schema = parley.Schema.of(columns)
    assert [each.kind for each in schema.attributes] == [
        "categorical", "boolean", "integer", "real",
    ]  # fmt: skip
    assert parley.Schema.from_toml(schema.to_toml()) == schema
    del columns["income"]
    assert parley.PrivBayes(epsilon=1).fit(table_of(60), columns).schema == parley.Schema.of(
        columns
    )
    for wrong in ("F", range(0, 9, 2), 3):
        with pytest.raises(InputError, match="sex: expected a list of values"):
            parley.Schema.of({"sex": wrong})
    with pytest.raises(InputError, match=r"schema: expected a parley.Schema.*not int"):
        parley.PrivBayes().fit(table_of(60), 3)


def test_owners_are_several_tables():
    for one in (table_of(20), pa.table({"a": [1]}), "people.csv"):
        with pytest.raises(InputError, match=r"one table is the table of one owner"):
            parley.simulate(one, SCHEMA, epsilon=1)
    with pytest.raises(InputError, match="at least one owner"):
        parley.simulate([], SCHEMA, epsilon=1)


def test_a_term_that_is_unknown_or_missing_is_named():
    with pytest.raises(InputError, match=r"'eps' \(did you mean 'epsilon'\?\)"):
        parley.simulate([table_of(20)], SCHEMA, eps=1)
    with pytest.raises(InputError, match="epsilon is missing"):
        parley.simulate([table_of(20)], SCHEMA)
    with pytest.raises(InputError, match="does not say whose row a row is"):
        parley.simulate([table_of(20)], SCHEMA, epsilon=1, rows_per_person=2)


@pytest.mark.parametrize("maker", [parley.Subn, parley.PrivBayes, parley.Privelet])
def test_an_epsilon_that_promises_nothing_is_warned_of(maker):
    with pytest.warns(parley.PrivacyWarning, match="promises next to nothing"):
        maker(epsilon=9, seed=1).fit(table_of(30), SCHEMA)


@pytest.mark.parametrize("maker", [parley.Subn, parley.PrivBayes, parley.Privelet])
def test_makers_have_the_manners_of_scikit_learn(maker):
    made = maker(epsilon="1/3", seed=5)
    again = clone(made)
    assert again == made
    assert again is not made
    assert made.get_params()["epsilon"] == "1/3"
    assert made.set_params(epsilon=2).epsilon == 2
    with pytest.raises(InputError, match="'eps'"):
        made.set_params(eps=1)


def test_an_estimate_of_a_text_says_what_to_write(fitted):
    with pytest.raises(InputError, match=r'lambda table: table\["income"\].mean\(\)'):
        fitted.estimate("mean of age")


def test_a_whole_number_of_rows_may_be_a_float(fitted):
    assert len(fitted.sample(10.0)) == 10
    for wrong in (1.5, -1, "ten", float("nan")):
        with pytest.raises(InputError, match="give a whole number, 0 or more"):
            fitted.sample(wrong)


def test_replicates_of_a_model_in_memory_are_made_once(fitted):
    assert fitted.replicated(5) is fitted.replicated(5)
    assert fitted.replicated(5) is not fitted.replicated(5, seed=7)


def test_what_is_no_model_is_said_without_the_words_of_a_parser(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"neither a release nor a model\. Name a release"):
        parley.load(tmp_path / "t.csv")


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
    types = TableColumns.of(table, SCHEMA)
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
    with pytest.raises(InputError, match=r"already holds a release\. Add overwrite=True"):
        by_subn.save(tmp_path / "release")
    by_subn.save(tmp_path / "release", overwrite=True)


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
    assert shown.startswith("60 synthetic rows against 60 real rows\n1-way distance 0.0000")
    assert len(shown) < 600


@pytest.mark.parametrize("epsilon", [0, "abc", float("nan"), True])
def test_a_wrong_epsilon_is_named_once(epsilon):
    for maker in (parley.Subn, parley.PrivBayes):
        with pytest.raises(InputError, match=r"^epsilon: (?!epsilon)"):
            maker(epsilon=epsilon).fit(table_of(10), SCHEMA)


def test_two_numbers_in_a_tuple_are_asked_about():
    with pytest.raises(InputError, match=r"may be two values or a range. Write \[0, 120\]"):
        parley.Schema.of({"age": (0, 120)})
