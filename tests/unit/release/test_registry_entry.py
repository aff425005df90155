"""Entries for registries: what the release says, and nothing else."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import parley
from common.errors import InputError
from common.release.registry_entry import registry_entry
from common.report.writing import write_release
from common.schema import Schema
from parley.cli.main import main

SCHEMA = Schema.from_toml(
    "".join(f'[[attribute]]\nname = "{name}"\nkind = "boolean"\n' for name in "ab")
)


def table(seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.random(60) < 0.4 for name in "ab"})


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_an_entry_says_what_the_statement_says(tmp_path, capsys, delta):
    fitted = parley.simulate(
        {"north": table(1), "south": table(2)}, SCHEMA, epsilon="0.5", delta=delta, method="floor",
        aggregation="masked",
    )  # fmt: skip
    folder = tmp_path / "release"
    fitted.save(folder)
    assert main(["describe", str(folder), "--registry"]) == 0
    entry = json.loads(capsys.readouterr().out)
    statement = json.loads((folder / "privacy.json").read_text())
    definition = entry["definition"]
    assert Fraction(definition["epsilon_exact"]) == Fraction(1, 2)
    assert definition["epsilon"] == statement["epsilon_delivered"]
    assert definition["delta"] == float(delta)
    assert definition["model"] == ("pure epsilon" if delta == "0" else "(epsilon, delta)")
    assert definition["neighbouring_relation"] == statement["neighbours"]
    assert [own["mechanism"] for own in entry["mechanisms"]] == statement["mechanisms"]
    assert entry["deployment"]["data_custodians"] == ["north", "south"]
    assert entry["deployment"]["digest"] == fitted.study.digest.hex()
    assert entry["deployment"]["private"] is True
    archive = shutil.make_archive(str(tmp_path / "release"), "zip", folder)
    assert registry_entry(tmp_path / archive) == entry


def test_a_release_of_one_owner_has_an_entry_and_a_folder_without_one_is_refused(tmp_path):
    folder = tmp_path / "release"
    folder.mkdir()
    write_release(folder, parley.PrivBayes(epsilon=1, seed=3).fit(table(1), SCHEMA))
    entry = registry_entry(folder)
    assert entry["deployment"]["private"] is False
    assert entry["deployment"]["digest"] is None
    (folder / "privacy.json").unlink()
    with pytest.raises(InputError, match=r"privacy\.json"):
        registry_entry(folder)
