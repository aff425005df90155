"""Rules of a schema, from rows that break them to releases that do not, for every method."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

import parley as api
from common.errors import InputError
from common.methods.registry import methods
from common.release.contents import FolderContents
from common.release.synthetic_table import read_codes
from common.schema import Schema
from common.tables import read_table
from parley.cli.exit_codes import ExitCode
from party.sources.settings import SourceSettings
from tests.unit.schema.test_rules import ATTRIBUTES, EVERY, random_rules

RNG = np.random.default_rng(8)
ROWS = 400
WITH_ROWS = [name for name, method in methods().items() if method.publishes_rows]


def people():
    """Rows that break every rule now and then."""
    age = RNG.integers(0, 80, ROWS)
    start = RNG.integers(0, 40, ROWS)
    town = RNG.choice(["a", "b", "c"], ROWS)
    return pd.DataFrame(
        {
            "age": age,
            "job": np.where(age < 20, "none", RNG.choice(["none", "farm", "office"], ROWS)),
            "married": (age > 25) & (RNG.random(ROWS) < 0.5) | (RNG.random(ROWS) < 0.05),
            "start": start,
            "end": np.minimum(39, start + RNG.integers(-3, 20, ROWS)).clip(0),
            "town": town,
            "region": np.where(town == "c", "South", "North"),
        }
    )


PEOPLE = people()
SINGLE = ("privbayes", "privelet")


def fitted(method, schema, seed):
    if method == "privbayes":
        return api.PrivBayes(epsilon=1, seed=seed).fit(PEOPLE, schema)
    if method == "privelet":
        return api.Privelet(epsilon=1, seed=seed).fit(PEOPLE, schema)
    tables = [PEOPLE[:150], PEOPLE[150:]]
    return api.simulate(
        tables, schema, epsilon=1, method=method, aggregation="clear", seed=seed,
        settings={"target": schema.names[0]} if method == "distdiffgen" else None,
    )  # fmt: skip


def rules_of(seed):
    while True:
        try:
            return Schema.from_toml(ATTRIBUTES + random_rules(seed))
        except InputError:
            seed += 1000


@pytest.mark.parametrize("method", [*SINGLE, *WITH_ROWS])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_row_of_any_method_breaks_a_random_rule(method, seed):
    schema = rules_of(seed)
    made = fitted(method, schema, seed)
    table = made.sample(600)
    codes = schema.without_rules().encode(table)
    assert codes.rows == 600
    assert schema.possible.broken(codes) == [0] * len(schema.rules)
    given = schema.without_rules().encode(made.sample(100, where="age >= 40"))
    assert schema.possible.holds(given).all()
    assert (given.columns[0] >= 4).all()


@pytest.mark.parametrize("encoding", ["binary", "gray"])
def test_no_row_of_bits_breaks_a_rule(encoding):
    schema = Schema.from_toml(ATTRIBUTES + EVERY)
    made = api.PrivBayes(epsilon=1, encoding=encoding, seed=1).fit(PEOPLE, schema)
    assert schema.possible.holds(schema.without_rules().encode(made.sample(500))).all()


@pytest.fixture
def written(parley, tmp_path):
    PEOPLE.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "schema.toml").write_text(ATTRIBUTES + EVERY)
    words = ["data.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "r"]
    done = parley("simulate", *words, "--aggregation", "masked")
    assert done.code == ExitCode.DONE, done.err
    return tmp_path / "r"


def test_a_release_with_rules_verifies_and_one_with_a_broken_rule_does_not(parley, written):
    assert parley("verify", written, "--unsigned").code == ExitCode.DONE
    table = pd.read_csv(written / "synthetic.csv")
    table["region"] = table["region"].iloc[::-1].to_numpy()
    table.to_csv(written / "synthetic.csv", index=False)
    with pytest.raises(InputError, match="rows break a rule of the schema: determined region"):
        _read(written)


def _read(folder):
    return read_codes(FolderContents(folder), "synthetic.csv", Schema.load(folder / "schema.toml"))


def test_the_owner_alone_is_told_how_many_rows_break_a_rule(parley, written):
    done = parley("schema", "check", "schema.toml", "data.csv", "--json")
    schema = Schema.load("schema.toml")
    broken = schema.possible.broken(read_table("data.csv", schema).encode(schema.without_rules()))
    assert done.json["rows_that_break_each_rule"] == broken
    assert sum(broken) > 0
    words = parley("schema", "check", "schema.toml", "data.csv").out
    assert "broke rule 3, counted as the nearest possible row" in words
    told = "".join(file.read_text() for file in written.iterdir() if file.suffix == ".json")
    assert "break" not in told


@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite"])
def test_every_source_counts_the_nearest_possible_rows(tmp_path, kind):
    schema = Schema.from_toml(ATTRIBUTES + EVERY)
    expected = schema.encode(PEOPLE)
    path = tmp_path / f"people.{kind}"
    table = {"kind": kind, "path": path.name}
    if kind == "csv":
        PEOPLE.to_csv(path, index=False)
    elif kind == "parquet":
        PEOPLE.to_parquet(path, index=False)
    else:
        with sqlite3.connect(path) as base:
            PEOPLE.to_sql("people", base, index=False)
        table["table"] = "people"
    settings = SourceSettings.from_table(table, folder=tmp_path, environment={})
    sets = [(0, 1), (5, 6), (3, 4), (2,)]
    for held in (0, 1 << 20):
        source = settings.open(schema, held_bytes=held)
        for own, found in zip(sets, source.count(sets), strict=True):
            wanted = np.zeros([schema.sizes[a] for a in own], dtype=np.int64)
            np.add.at(wanted, tuple(expected.columns[a] for a in own), 1)
            np.testing.assert_array_equal(found, wanted)
