"""A study of several owners on one machine, by the Python interface."""

import pandas as pd
import pytest

import parley
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from parley.simulation.partition import at_random
from parley.simulation.population import demo_schema_toml

SCHEMA = Schema.from_toml(demo_schema_toml())


@pytest.mark.parametrize("method", ["dp-subn", "floor", "independent"])
def test_a_simulation_gives_a_table_like_the_owners(people, method):
    parts = list(at_random(people, 3, SeededRandomSource(2)).values())
    fitted = parley.simulate(parts, SCHEMA, epsilon=1, method=method, aggregation="masked")
    table = fitted.sample(200)
    assert list(table.columns) == list(people.columns)
    assert (table.dtypes == people.dtypes).all()
    assert len(table) == 200
    assert fitted.privacy["epsilon_delivered"] == 1
    assert fitted.privacy["private"] is True
    assert set(fitted.privacy["parties"]) == {"party 1", "party 2", "party 3"}
    assert fitted.network_svg().startswith("<svg")


def test_the_paper_profile_prints_its_true_cost(people):
    parts = list(at_random(people, 3, SeededRandomSource(2)).values())
    fitted = parley.simulate(
        parts, SCHEMA, epsilon=30, method="dp-subn", aggregation="clear", profile="paper"
    )
    assert fitted.privacy["epsilon_requested"] == 30
    assert fitted.privacy["epsilon_delivered"] > 30
    assert fitted.privacy["epsilon_claimed_by_paper"] <= 30


def test_clear_sums_and_seeds_are_called_not_private(people):
    parts = list(at_random(people, 2, SeededRandomSource(2)).values())
    clear = parley.simulate(parts, SCHEMA, epsilon=1, method="floor", aggregation="clear")
    seeded = parley.simulate(parts, SCHEMA, epsilon=1, method="floor", aggregation="masked", seed=3)
    again = parley.simulate(parts, SCHEMA, epsilon=1, method="floor", aggregation="masked", seed=3)
    assert clear.privacy["private"] is False
    assert seeded.privacy["private"] is False
    pd.testing.assert_frame_equal(seeded.sample(50), again.sample(50))


def test_a_single_owner_is_a_study_too(people):
    fitted = parley.simulate([people], SCHEMA, epsilon=1, method="dp-subn", aggregation="masked")
    assert fitted.privacy["parties"] == {"party 1": 1.0}
