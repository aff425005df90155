"""Commands and linked schemas: the demonstration writes tables, and the others refuse by name."""

import contextlib
import shutil

import pandas as pd
import pytest

import parley as api
from parley.cli.exit_codes import ExitCode
from parley.cli.main import main


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Write tables in `play` and their release."""
    folder = tmp_path_factory.mktemp("linked")
    with contextlib.chdir(folder):
        assert main(["demo", "--tables", "play", "--linked", "--rows", "60"]) == ExitCode.DONE
        owner = (pd.read_csv("play/north-patients.csv"), pd.read_csv("play/north-visits.csv"))
        study = api.simulate([owner], "play/schema.toml", epsilon=1, person="patient")
        study.save("release")
    return folder


@pytest.fixture
def release(made, parley, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def test_the_demonstration_writes_patients_and_their_visits(release):
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
        "draw release --rows 5",
        "replicate release --out out",
        "estimate release --mean income",
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
