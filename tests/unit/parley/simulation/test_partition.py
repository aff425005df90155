"""Rows and people dealt out to owners; `parley simulate --person`."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from parley.cli.exit_codes import ExitCode
from parley.simulation.partition import PeopleRows, at_random, by_column, round_down

SCHEMA = """
attribute = [
  { name = "age", kind = "integer", min = 0, max = 499, bins = 500 },
  { name = "sex", kind = "categorical", values = ["F", "M"] },
]
"""


def test_dealing_out_loses_and_repeats_no_row(people):
    parts = at_random(people, 4, SeededRandomSource(1))
    assert sorted(np.concatenate([part.index for part in parts.values()])) == list(people.index)
    assert {len(part) for part in parts.values()} == {150}


def test_dealing_out_by_column_makes_an_owner_of_every_value(people):
    parts = by_column(people, "region")
    assert {name: set(part["region"]) for name, part in parts.items()} == {
        region: {region} for region in set(people["region"])
    }


def test_more_owners_than_rows_is_refused(people):
    with pytest.raises(InputError, match="cannot be dealt out"):
        at_random(people.head(2), 3, SeededRandomSource(1))


@pytest.fixture
def visits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(120), rng.integers(1, 8, 120))
    table = pd.DataFrame({"patient": person, "age": np.arange(len(person)), "sex": "F"})
    table.sample(frac=1, random_state=1).to_csv("visits.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return table


WORDS = ["visits.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "r"]
WORDS += ["--method", "floor", "--aggregation", "masked"]


@pytest.mark.parametrize("owners", [1, 2])
def test_no_owner_has_more_rows_of_a_person_than_agreed(visits, tmp_path, owners):
    schema = Schema.from_toml(SCHEMA)
    read = PeopleRows.read(tmp_path / "visits.csv", schema, "patient", None)
    whose = dict(zip(visits["age"], visits["patient"], strict=True))
    key = SeededRandomSource(1).random_bytes(32)
    parts = read.dealt_out(3, owners=owners, key=key)
    assert sum(part.rows.rows for part in parts) == len(visits)
    holders = Counter(person for part in parts for person in set(part.people))
    assert max(holders.values()) == owners
    for part in parts:
        kept = part.limited(2, key)
        rows_of = Counter(whose[int(age)] for age in kept.columns[0])
        assert max(rows_of.values()) == 2
        assert kept.rows == round_down(kept.rows) > 0


def test_a_simulation_protects_people(parley, visits):
    done = parley("simulate", *WORDS, "--person", "patient", "--rows-per-person", "2", "--json")
    assert done.code == 0, done.err
    assert "rounded down" in done.err
    statement = pd.read_json("r/privacy.json", typ="series")
    assert statement["unit_of_privacy"] == "one person, with up to 2 rows of one party's table"
    assert list(pd.read_csv("r/synthetic.csv").columns) == ["age", "sex"]
    assert parley("verify", "r", "--unsigned").code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--person", "patient"], "give both"),
        (["--rows-per-person", "2"], "give both"),
        (["--person", "sex", "--rows-per-person", "2"], "is an attribute of the study"),
        (["--person", "nobody", "--rows-per-person", "2"], "there is no column 'nobody'"),
        (
            ["--person", "patient", "--rows-per-person", "2", "--owners-per-person", "4"],
            "from 1 to the number of owners, 3",
        ),
        (
            ["--person", "patient", "--rows-per-person", "2", "--transport", "grpc"],
            "leave out --transport grpc",
        ),
    ],
)
def test_mistakes_are_refused(parley, visits, words, told):
    done = parley("simulate", *WORDS, *words)
    assert done.code == ExitCode.INPUT
    assert told in done.err


@pytest.mark.parametrize(
    ("number", "rounded"), [(7, 7), (99, 99), (100, 100), (109, 100), (12_999, 12_000)]
)
def test_numbers_are_rounded_down(number, rounded):
    assert round_down(number) == rounded


def test_row_counts_that_were_not_agreed_are_not_called_private(parley, visits, tmp_path):
    done = parley("simulate", *WORDS, "--person", "patient", "--rows-per-person", 2)
    assert done.code == ExitCode.DONE, done.err
    privacy = json.loads((tmp_path / "r" / "privacy.json").read_text())
    assert privacy["private"] is False
    assert any("not agreed beforehand" in reason for reason in privacy["not_private_because"])
    assert "NOT PRIVATE" in done.err
    assert parley("verify", "r", "--unsigned").code == ExitCode.DONE
