"""What PrivBayes releases: its file, its counts and its network."""

import json
from xml.etree import ElementTree

import pytest

import parley
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from tests.harness.people import SMOKERS as SCHEMA
from tests.harness.people import smokers as table_of


@pytest.fixture(scope="module")
def fitted():
    return parley.PrivBayes(epsilon=50.0).fit(table_of(4_000), SCHEMA)


def test_a_model_survives_a_file(fitted, tmp_path):
    fitted.save(tmp_path / "model.json")
    again = parley.load(tmp_path / "model.json")
    assert again.privacy == fitted.privacy
    assert again.model.as_json() == fitted.model.as_json()
    assert list(again.sample(5).dtypes) == list(fitted.sample(5).dtypes)
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_a_model_count_is_near_the_truth(fitted):
    found = fitted.count("age in 50..79")
    truth = (table_of(4_000)["age"] >= 50).sum()
    assert found.value == pytest.approx(truth, rel=0.15)
    assert found.sampling_deviation < 10
    assert fitted.count("").share == 1.0


def test_a_model_draws_itself(fitted):
    picture = ElementTree.fromstring(fitted.network_svg())  # noqa: S314  our own output
    assert picture.get("role") == "img"
    assert "epsilon 50" in fitted._repr_html_()
    assert "NOT PRIVATE" in parley.PrivBayes(seed=1).fit(table_of(50), SCHEMA)._repr_html_()


@pytest.mark.parametrize("key", ["schema", "model", "columns", "privacy"])
def test_a_damaged_file_is_refused_by_name(fitted, tmp_path, key):
    path = tmp_path / "model.json"
    for damaged in (None, 5, "x"):
        path.write_text(json.dumps(fitted.to_json() | {key: damaged}))
        with pytest.raises(InputError, match=r"model\.json"):
            parley.load(path)


def test_a_model_of_another_schema_is_refused(fitted, tmp_path):
    other = parley.Schema(SCHEMA.attributes[:2])
    (tmp_path / "model.json").write_text(json.dumps(fitted.to_json() | {"schema": other.to_toml()}))
    with pytest.raises(InputError, match="do not belong together"):
        parley.load(tmp_path / "model.json")


def test_a_refit_learns_from_the_rows_that_it_is_given(fitted):
    """Everyone smokes: the refitted model says so, the one that was fitted does not change."""
    codes = SCHEMA.encode(table_of(4_000).assign(smokes=True))
    again = fitted.refit(codes, SeededRandomSource(1))
    assert again.sample(500)["smokes"].mean() > 0.95
    assert fitted.sample(500)["smokes"].mean() < 0.7
    assert again.privacy == fitted.privacy
