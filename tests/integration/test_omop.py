"""The example of docs/linked-tables.md, on a small database of the OMOP common data model."""

import re
import tomllib
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from common.schema import Schema
from common.schema.linked import encode_linked
from party.sources.settings import owners_table
from tests.harness.linked_runs import fitted
from tests.harness.postgresql import running_server, server_programs

PAGE = (Path(__file__).parents[2] / "docs" / "linked-tables.md").read_text()
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
(SOURCE,) = (block for block in BLOCKS if "[source.events]" in block)
(SCHEMA,) = (Schema.from_toml(block) for block in BLOCKS if "bins = 13" in block)
PEOPLE = 300
# The tables as the model has them, with columns that no study asks for.
TABLES = f"""
CREATE TABLE person (
    person_id integer NOT NULL, gender_concept_id integer NOT NULL, year_of_birth integer NOT NULL,
    month_of_birth integer, race_concept_id integer NOT NULL, person_source_value varchar(50));
INSERT INTO person SELECT i, CASE i % 2 WHEN 0 THEN 8507 ELSE 8532 END, 1930 + i % 90, 1 + i % 12,
    8527, 'MRN' || i FROM generate_series(1, {PEOPLE}) AS t(i);
CREATE TABLE condition_occurrence (
    condition_occurrence_id bigint NOT NULL, person_id integer NOT NULL,
    condition_concept_id integer NOT NULL, condition_start_date date NOT NULL,
    condition_start_datetime timestamp, condition_type_concept_id integer NOT NULL);
INSERT INTO condition_occurrence SELECT j, 1 + j * 7 % {PEOPLE + 20},
    CASE j % 5 WHEN 0 THEN 320128 WHEN 1 THEN 201826 WHEN 2 THEN 317009 WHEN 3 THEN 4329847
        ELSE 999 END,
    CAST('2019-11-01' AS date) + CAST(j * 31 % 900 AS integer), NULL, 32020
    FROM generate_series(1, {PEOPLE * 5}) AS t(j) WHERE j % 11 > 2
"""  # noqa: S608  # our own numbers


def expected():
    """The same tables, made and joined in pandas."""
    i, j = np.arange(1, PEOPLE + 1), np.arange(1, PEOPLE * 5 + 1)
    j = j[j % 11 > 2]
    people = pd.DataFrame({"id": i, "gender": np.where(i % 2, "Female", "Male")})
    people["year_of_birth"] = 1930 + i % 90
    codes = np.array([320128, 201826, 317009, 4329847, 999])
    events = pd.DataFrame({"id": 1 + j * 7 % (PEOPLE + 20), "diagnosis": codes[j % 5]})
    events["day"] = pd.Timestamp("2019-11-01") + pd.to_timedelta(j * 31 % 900, unit="D")
    return encode_linked(SCHEMA, people, events[events.day >= "2020-01-01"], person="id")


def check(table, folder, environment):
    source = owners_table(table, folder=folder, environment=environment)
    source.check_readable()
    opened = source.open(SCHEMA, secret=b"s")
    found, known = opened.codes(), expected()
    # A database gives people in any order; events of one day are in the order of a hash.
    assert opened.rows == PEOPLE
    for one, other in ((found.with_number, known.with_number), (found.events, known.events)):
        for column, same in zip(one.columns, other.columns, strict=True):
            assert np.array_equal(np.bincount(column), np.bincount(same))
    assert known.numbers.max() > 3
    assert "are of people who are not in our table" in opened.snapshot.note
    return opened


def in_duckdb(folder):
    with duckdb.connect(str(folder / "cdm.duckdb")) as database:
        database.execute(TABLES)
    table = tomllib.loads(SOURCE)["source"]
    for each in (table, table["events"]):
        del each["uri_env"]
        each |= {"kind": "duckdb", "path": "cdm.duckdb"}
    return check(table, folder, {})


def test_people_and_their_conditions_are_read_from_duckdb_and_modelled(tmp_path):
    outcome = fitted(in_duckdb(tmp_path).codes(), schema=SCHEMA, epsilon=5)
    assert outcome.model is not None


@pytest.mark.slow
def test_a_server_of_postgresql_gives_the_same_people_and_conditions(tmp_path):
    programs = server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server here: install the package postgresql")
    with running_server(programs, "correct-horse") as server:
        server.execute(*TABLES.split(";"))
        environment = {"DATABASE": server.uri()}
        opened = check(tomllib.loads(SOURCE)["source"], tmp_path, environment)
    assert opened.digest == in_duckdb(tmp_path).digest
