"""The simulated people fit their schema, can be made again, and have the structure promised."""

import numpy as np
import pandas as pd
import pytest

from common.analysis.diagnostics import dependence
from common.schema import Schema
from parley.simulation.population import demo_schema_toml, make_population


@pytest.fixture(scope="module")
def schema():
    return Schema.from_toml(demo_schema_toml())


def test_the_population_fits_its_schema(schema):
    people = make_population(5_000, seed=7)
    assert list(people.columns) == list(schema.names)
    assert schema.encode(people).rows == 5_000


def test_the_same_seed_makes_the_same_people():
    pd.testing.assert_frame_equal(make_population(200, seed=3), make_population(200, seed=3))
    assert not make_population(200, seed=3).equals(make_population(200, seed=4))


def test_the_promised_dependences_are_there(schema):
    strength = dependence(schema.encode(make_population(20_000, seed=11)))

    def between(a, b):
        return strength[schema.position(a), schema.position(b)]

    promised = [
        ("age", "marital_status"), ("age", "education"), ("education", "occupation"),
        ("occupation", "income"), ("income", "housing"), ("age", "blood_pressure"),
    ]  # fmt: skip
    assert min(between(a, b) for a, b in promised) > 0.15
    assert between("sex", "region") < 0.03


def test_some_cells_are_empty():
    share = make_population(10_000, seed=2)["housing"].isna().mean()
    assert share == pytest.approx(0.03, abs=0.01)


def test_children_have_no_doctorate_and_no_spouse():
    people = make_population(20_000, seed=5)
    children = people[people["age"] < 16]
    assert len(children) > 100
    assert set(children["marital_status"]) == {"Single"}
    assert np.isin(children["education"], ["No school", "Primary", "Secondary"]).all()


def test_simulated_tables_of_three_owners_fit_their_schema(parley, tmp_path):
    done = parley("demo", "--tables", "play", "--rows", 100, "--json")
    assert done.json["rows"] == {"people": 100, "north": 34, "east": 33, "south": 33}
    for name in ("people", "north", "east", "south"):
        assert parley("schema", "check", "play/schema.toml", f"play/{name}.csv").code == 0
    again = parley("demo", "--tables", "play", "--rows", 100)
    assert again.code == 3
    assert "not empty" in again.err
