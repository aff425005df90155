"""An earlier release as a prior: what is kept of it, what is refused, and that releases verify."""

import hashlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest

import parley
from common.errors import InputError
from common.release.prior import Priors, read_prior
from common.release.verify import verify
from common.schema import Schema
from parley.simulation.study import simulate

SCHEMA = """
attribute = [
  { name = "age", kind = "integer", min = 0, max = 89, bins = 9 },
  { name = "ill", kind = "boolean" },
  { name = "ward", kind = "categorical", values = ["a", "b", "c", "d"] },
]
"""
NAMES = ("north", "east", "south", "west")


def year(seed, rows=200):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, rows)
    return pd.DataFrame(
        {"age": age, "ill": rng.random(rows) < age / 120, "ward": rng.choice([*"abcd"], rows)}
    )


def study(seed, **changes):
    tables = {name: year(f) for f, name in enumerate(NAMES, start=10 * seed)}
    schema = Schema.from_toml(changes.pop("schema", SCHEMA))
    options = {"epsilon": 1, "aggregation": "masked", "seed": seed, **changes}
    return simulate(tables, schema, **options)


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Last year's release, and this year's, which builds on it and misses a party."""
    folder = tmp_path_factory.mktemp("releases")
    study(1).save(folder / "last")
    this = study(2, prior=folder / "last", may_miss=1, drop={"east": 0})
    this.save(folder / "this")
    return folder


def verified(path):
    return verify(path, unsigned=True)


def test_a_release_says_what_it_builds_on_and_verifies_by_itself(releases, tmp_path):
    moved = shutil.move(shutil.copytree(releases / "this", tmp_path / "copy"), tmp_path / "alone")
    assert verified(moved).verified
    manifest = (releases / "last" / "manifest.json").read_bytes()
    privacy = json.loads((moved / "privacy.json").read_text("utf-8"))
    assert privacy["prior"] == hashlib.sha256(manifest).hexdigest()
    assert any(note.startswith("Prior: noisy sums") for note in privacy["notes"])
    assert privacy["missing"] == {"east": 0}
    assert "Prior: noisy sums" in (moved / "report.html").read_text("utf-8")
    assert privacy["prior"] in (moved / "study.toml").read_text("utf-8")


def test_a_release_without_a_prior_says_so(releases):
    privacy = json.loads((releases / "last" / "privacy.json").read_text("utf-8"))
    assert privacy["prior"] is None
    assert verified(releases / "last").verified


def test_the_model_is_another_one_and_costs_the_same(releases):
    with_it, without = study(2, prior=releases / "last"), study(2)
    assert with_it.results[0] == without.results[0]  # what left is the same, bit for bit
    assert with_it.model.as_json() != without.model.as_json()
    assert with_it.privacy["parties"] == without.privacy["parties"]


def test_a_loaded_release_derives_its_model_again(releases):
    loaded = parley.load(releases / "this")
    assert loaded.prior.digest == loaded.study.prior
    assert (
        loaded.model.as_json()
        == study(2, prior=releases / "last", may_miss=1, drop={"east": 0}).model.as_json()
    )


def test_the_prior_of_another_study_is_not_taken_for_it(releases, tmp_path):
    """Its files and its manifest agree, and it is still not what study.toml names."""
    study(3).save(tmp_path / "other")
    forged = shutil.copytree(releases / "this", tmp_path / "forged")
    data = read_prior(tmp_path / "other").data
    (forged / "prior.zip").write_bytes(data)
    manifest = json.loads((forged / "manifest.json").read_text("utf-8"))
    manifest["files"]["prior.zip"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    (forged / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    (problem,) = verified(forged).problems
    assert problem.file == "prior.zip"
    assert "names" in problem.detail


def test_a_release_that_lost_its_prior_does_not_verify(releases, tmp_path):
    lost = shutil.copytree(releases / "this", tmp_path / "lost")
    (lost / "prior.zip").unlink()
    manifest = json.loads((lost / "manifest.json").read_text("utf-8"))
    del manifest["files"]["prior.zip"]
    (lost / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    assert "prior.zip" in {problem.file for problem in verified(lost).problems}


def test_a_changed_table_is_no_prior(releases, tmp_path):
    changed = shutil.copytree(releases / "last", tmp_path / "changed")
    table = changed / "synthetic.csv"
    table.write_text(table.read_text("utf-8").replace(",a\n", ",b\n", 1), "utf-8")
    with pytest.raises(InputError, match=r"synthetic\.csv: has changed"):
        read_prior(changed)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [('"d"]', '"e"]', "ward"), ("bins = 9", "bins = 3", "age"), ('"ill"', '"sick"', "ill, sick")],
)
def test_another_schema_is_refused_by_name(releases, old, new, named):
    schema = Schema.from_toml(SCHEMA.replace(old, new))
    table = year(1).rename(columns={"ill": "sick"} if "sick" in new else {}).replace("d", "a")
    with pytest.raises(InputError, match=rf"another schema than the study \({named}\)"):
        simulate([table], schema, epsilon=1, aggregation="clear", prior=releases / "last")


def test_a_folder_of_priors_keeps_what_a_study_names_and_nothing_else(releases, tmp_path):
    study_of_this = parley.load(releases / "this").study
    priors = Priors(tmp_path / "priors")
    assert not priors.has(study_of_this)
    with pytest.raises(InputError, match="is not here"):
        priors.begin(study_of_this)
    data = read_prior(releases / "last").data
    with pytest.raises(InputError, match="more than 10 bytes"):
        priors.keep([data], study_of_this, most=10)
    with pytest.raises(InputError, match=r"cannot be read as a folder or a \.zip"):
        priors.keep([data[:-30]], study_of_this, most=1 << 30)
    with pytest.raises(InputError, match="names"):
        priors.keep([read_prior(releases / "this").data], study_of_this, most=1 << 30)
    assert not priors.has(study_of_this)
    priors.keep([data[:99], data[99:]], study_of_this, most=1 << 30)
    assert [file.name for file in (tmp_path / "priors").iterdir()] == [f"{study_of_this.prior}.zip"]
    assert Priors(tmp_path / "priors").begin(study_of_this).step() is not None
