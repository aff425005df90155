"""Commands and linked schemas: tables, draws and estimates; other commands refuse by name."""

import json
from pathlib import Path

import pandas as pd
import pytest

import parley as api
from parley.cli.exit_codes import ExitCode


@pytest.fixture
def tables(parley):
    parley("demo", "--tables", "play", "--linked", "--rows", "60")


@pytest.fixture
def release(tables):
    owner = (pd.read_csv("play/north-patients.csv"), pd.read_csv("play/north-visits.csv"))
    study = api.simulate([owner], "play/schema.toml", epsilon=1, person="patient")
    study.save("release")


def test_the_demonstration_writes_patients_and_their_visits(tables):
    owners = [pd.read_csv(f"play/{name}-patients.csv") for name in ("north", "east", "south")]
    visits = pd.read_csv("play/north-visits.csv")
    assert sum(map(len, owners)) == 60
    assert set(visits.patient) <= set(owners[0].patient)
    assert api.Schema.load("play/schema.toml").events.name == "visits"


def test_the_demonstration_runs_no_linked_study(parley):
    outcome = parley("demo", "--linked")
    assert outcome.code == ExitCode.INPUT
    assert "--tables" in outcome.err


@pytest.mark.parametrize(
    "words",
    [
        "simulate play/north-patients.csv --schema play/schema.toml --epsilon 1 --out out",
        "synthesize play/north-patients.csv --schema play/schema.toml --epsilon 1 --out out",
        "schema check play/schema.toml play/north-patients.csv",
        "replicate release --out out",
        "evaluate play/north-patients.csv release --schema play/schema.toml",
        "verify release --unsigned --safe-for-spreadsheets copy.csv",
    ],
)
def test_commands_for_one_table_refuse_linked_schemas_by_name(parley, release, words):
    outcome = parley(*words.split())
    assert outcome.code == ExitCode.INPUT
    assert "events" in outcome.err or "two tables" in outcome.err


def test_a_linked_release_is_verified_and_described(parley, release):
    assert parley("verify", "release", "--unsigned").code == 0
    assert parley("describe", "release").code == 0


def test_people_and_events_are_drawn_into_two_files(parley, release):
    assert "--out" in parley("draw", "release", "--rows", "5").err
    department = pd.read_csv("release/synthetic-visits.csv").department.mode()[0]
    words = f"age >= 0 and any department = {department}"
    outcome = parley("draw", "release", "--rows", "40", "--where", words, "--out", "people.csv")
    assert outcome.code == 0
    people, visits = pd.read_csv("people.csv"), pd.read_csv("people-visits.csv")
    assert len(people) == 40
    assert set(visits.person[visits.department == department]) == set(people.person)
    again = parley("draw", "release", "--rows", "40", "--out", "people.csv")
    assert again.code == ExitCode.INPUT  # neither file is written over
    parquet = parley("draw", "release", "--rows", "9", "--out", "drawn.parquet")
    assert parquet.code == 0
    assert len(pd.read_parquet("drawn-visits.parquet"))


def test_people_events_and_numbers_of_events_are_estimated(parley, release):
    def estimates(*words):
        outcome = parley("estimate", "release", *words, "--tables", "5", "--json")
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    (visits,) = estimates("--mean", "visits")
    assert visits["low"] <= visits["estimate"] <= visits["high"]
    (emergencies,) = estimates("--share", "emergency = true", "--of", "visits")
    assert 0 <= emergencies["low"] <= emergencies["high"] <= 1
    by_sex = estimates("--mean", "nights", "--by", "sex", "--of", "visits")
    assert [each["flagged"] for each in by_sex] == [True, True]  # too few people for pairs
    curves = estimates("--survival", "age", "chronic_illness", "--by", "sex",
                       "--picture", "curves.svg")  # fmt: skip
    assert {each["group"] for each in curves} == {"Female", "Male"}
    assert Path("curves.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--mean nights --of stays", "stays"),
        ("--mean nights", "nights"),
        ("--mean age --picture curves.svg", "--survival"),
        ("--mean age --survival age smoker", "--survival"),
        ("--survival day emergency", "order of visits"),
    ],
)
def test_estimates_that_a_release_does_not_tell_are_refused(parley, release, words, said):
    outcome = parley("estimate", "release", *words.split())
    assert outcome.code == ExitCode.INPUT
    assert said in outcome.err
