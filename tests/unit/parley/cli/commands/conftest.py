"""Releases of every kind, made once."""

import shutil

import numpy as np
import pandas as pd
import pytest

from parley.cli.main import main

SCHEMA = """
[[attribute]]
name = "sex"
kind = "categorical"
values = ["Female", "Male"]

[[attribute]]
name = "smoker"
kind = "boolean"

[[attribute]]
name = "age"
kind = "integer"
min = 0
max = 79
bins = 8
missing = true
"""


@pytest.fixture(scope="session")
def made_releases(tmp_path_factory):
    """A study's release, one of PrivBayes and one of Privelet, and the study's as a .zip."""
    folder = tmp_path_factory.mktemp("releases")
    rng = np.random.default_rng(1)
    smoker = rng.random(1_500) < 0.3
    age = pd.Series(rng.integers(0, 60, 1_500) + 15 * smoker, dtype="Int64")
    people = pd.DataFrame(
        {"sex": rng.choice(["Female", "Male"], 1_500), "smoker": smoker, "age": age}
    )
    people.loc[:40, "age"] = pd.NA
    people.to_csv(folder / "data.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA)
    table = [str(folder / "data.csv"), "--schema", str(folder / "schema.toml"), "--epsilon", "2"]
    study = ["simulate", *table, "--parties", "2", "--method", "dp-subn", "--aggregation", "masked"]
    assert main([*study, "--out", str(folder / "study")]) == 0
    for method in ("privbayes", "privelet"):
        words = ["synthesize", *table, "--method", method, "--out", str(folder / method)]
        assert main(words) == 0
    assert main(["bundle", str(folder / "study"), "--out", str(folder / "study.zip")]) == 0
    return folder


@pytest.fixture
def releases(made_releases, tmp_path):
    """A copy, so that replicates are kept there."""
    shutil.copytree(made_releases, tmp_path, dirs_exist_ok=True)
    return tmp_path
