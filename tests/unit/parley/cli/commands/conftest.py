"""Releases of every kind, made once."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from common.crypto.key_files import load_identity
from common.release.archive import add_signature, finish
from common.release.manifest import Manifest, Signer, SignerRole
from common.study.document import Study
from common.wire.pki.keyring import init_identity
from parley.cli.main import main
from parley.simulation.population import demo_schema_toml, make_population

SCHEMA = """
attribute = [
  { name = "sex", kind = "categorical", values = ["Female", "Male"] },
  { name = "smoker", kind = "boolean" },
  { name = "age", kind = "integer", min = 0, max = 79, bins = 8, missing = true },
]
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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Releases of several owners and of one, and the key they were signed with."""
    folder = tmp_path_factory.mktemp("made")
    people, attributes = make_population(300, seed=3), demo_schema_toml().split("[[attribute]]")
    people.iloc[:, :4].to_csv(folder / "data.csv", index=False)
    (folder / "schema.toml").write_text("[[attribute]]".join(attributes[:5]))
    people.iloc[:, :2].to_csv(folder / "narrow.csv", index=False)
    (folder / "narrow.toml").write_text("[[attribute]]".join(attributes[:3]))
    (folder / "keys").mkdir()
    init_identity(folder / "keys")

    def make(command, table, schema, out, *words):
        place = [str(folder / table), "--schema", str(folder / schema), "--out", str(folder / out)]
        assert main([command, *place, "--epsilon", "1", *words]) == 0

    signing = ["--sign-with", str(folder / "keys" / "identity.key")]
    signed = [*signing, "--sign-as", "hub", "--aggregation", "masked", "--parties", "2"]
    make("simulate", "data.csv", "schema.toml", "several", *signed)
    single = [*signing, "--format", "parquet", "--method", "privbayes"]
    make("synthesize", "data.csv", "schema.toml", "one", *single)
    make("synthesize", "narrow.csv", "narrow.toml", "ranges", "--method", "privelet")
    return folder


@pytest.fixture
def copies(made, tmp_path):
    """The same, to be spoilt."""
    for name in ("several", "one", "ranges"):
        shutil.copytree(made / name, tmp_path / name)
    return tmp_path


def finish_again(folder):
    """A forger's manifest for what is there now, without signatures."""
    shutil.rmtree(folder / "signatures", ignore_errors=True)
    manifest = Manifest.from_bytes((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").unlink()
    study = folder / "study.toml"
    finish(
        folder,
        study=Study.load(study).digest if study.exists() else None,
        method=manifest.method,
        date=manifest.date,  # the report has it, too
        signer=None,
    )


def append(path, text):
    path.write_bytes(path.read_bytes() + text.encode())


def sign_again(folder, made, *, version=None, method_version=None):
    """The maker itself forges: a fresh manifest, perhaps in the name of another version."""
    finish_again(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["versions"]["parley"] = version or manifest["versions"]["parley"]
    manifest["method"]["version"] = method_version or manifest["method"]["version"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    signer = Signer(
        role=SignerRole.CURATOR if manifest["study"] else SignerRole.OWNER,
        name="hub",
        identity=load_identity(made / "keys" / "identity.key"),
    )
    lists = ((folder / name).read_bytes() for name in ("manifest.json", "pages.json"))
    add_signature(folder, signer.sign(*lists))
