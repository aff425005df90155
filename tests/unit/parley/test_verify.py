"""`parley verify`, `bundle` and `party countersign` on releases as the commands make them."""

import json
import shutil
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from common.bundle.finishing import finish
from common.bundle.signatures import Signer, SignerRole
from common.crypto.identity import Identity
from common.crypto.identity_file import load_identity
from common.privacy.randomness import SeededRandomSource
from common.study import Study
from parley.cli import main
from parley.keyring import init_identity
from parley.population import demo_schema_toml, make_population
from parley.verification import missing_parties


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
    make("synthesize", "data.csv", "schema.toml", "one", *signing, "--format", "parquet")
    make("synthesize", "narrow.csv", "narrow.toml", "ranges", "--method", "privelet")
    return folder


@pytest.fixture
def copies(made, tmp_path):
    """The same, to be spoilt."""
    for name in ("several", "one", "ranges"):
        shutil.copytree(made / name, tmp_path / name)
    return tmp_path


def fingerprint(made):
    return load_identity(made / "keys" / "identity.key").public.fingerprint


@pytest.mark.parametrize("name", ["several", "one", "ranges"])
def test_every_release_verifies_as_a_folder_and_as_a_zip(parley, copies, name):
    assert parley("bundle", name, "--out", f"{name}.zip").code == 0
    for path in (name, f"{name}.zip"):
        done = parley("verify", path, "--json")
        assert (done.code, done.json["problems"], done.json["not_checked"]) == (0, [], [])
        assert done.json["verified"]


def test_who_signed_is_said_and_can_be_asked_for(parley, made, copies):
    told = parley("verify", "several", "--signer", fingerprint(made).lower())
    assert told.code == 0
    assert f"signed by curator 'hub' {fingerprint(made)}" in told.out
    assert "signed by owner 'owner'" in parley("verify", "one").out
    assert "nobody signed it" in parley("verify", "ranges").err
    stranger = Identity.generate(SeededRandomSource("s")).public.fingerprint
    refused = parley("verify", "several", "--signer", stranger)
    assert refused.code == 3
    assert f"signatures/{stranger}.json: is missing" in refused.err
    assert parley("verify", "several", "--signer", "nonsense").code == 3
    assert "countersignature of party 'party 2'" in parley("verify", "several", "--all-parties").err
    assert parley("verify", "several", "--all-parties", "--bytes-only").code == 3


def test_a_changed_table_is_named_in_words_and_for_scripts(parley, copies):
    table = copies / "several" / "synthetic.csv"
    table.write_text(table.read_text() + "1\n")
    done = parley("verify", "several")
    assert (done.code, done.out) == (3, "")
    assert "synthetic.csv: has changed" in done.err
    told = parley("verify", "several", "--json")
    assert told.code == 3
    assert [(each["file"], each["kind"]) for each in told.json["problems"]] == [
        ("synthetic.csv", "changed")
    ]
    refused = parley("bundle", "several", "--out", "x.zip")
    assert refused.code == 3
    assert not (copies / "x.zip").exists()


def finish_again(folder):
    """A forger's manifest for what is there now; without a signature that anybody knows."""
    shutil.rmtree(folder / "signatures", ignore_errors=True)
    (folder / "manifest.json").unlink()
    study = folder / "study.toml"
    finish(folder, study=Study.load(study).digest if study.exists() else None, signer=None)


def edit_json(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def state(folder, **changes):
    """Another privacy statement, in both files that have it."""
    edit_json(folder / "privacy.json", **changes)
    edit_json(folder / "model.json", privacy=json.loads((folder / "privacy.json").read_text()))


def lower_the_epsilon(folder):
    for name in ("privacy.json", "model.json"):
        document = json.loads((folder / name).read_text())
        statement = document if name == "privacy.json" else document["privacy"]
        statement["epsilon_delivered"] = 0.1
        statement["exact"]["epsilon_delivered"] = "1/10"
        (folder / name).write_text(json.dumps(document))


def raise_a_result(folder):
    data = bytearray((folder / "results.bin").read_bytes())
    data[25:33] = (300).to_bytes(8, "little")  # the first count: all rows; fewer may not matter
    (folder / "results.bin").write_bytes(bytes(data))


def rename_a_column(folder):
    text = (folder / "synthetic.csv").read_text()
    (folder / "synthetic.csv").write_text(text.replace("sex", "sax", 1))


def another_study(folder):
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace('epsilon = "1"', 'epsilon = "2"'))


@pytest.mark.parametrize(
    ("release", "spoil", "file"),
    [
        ("several", lower_the_epsilon, "privacy.json"),
        ("one", lower_the_epsilon, "privacy.json"),
        ("several", raise_a_result, "model.json"),
        ("several", rename_a_column, "synthetic.csv"),
        ("several", another_study, "transcript.json"),
        ("several", lambda f: edit_json(f / "transcript.json", study="0" * 64), "transcript.json"),
        ("several", lambda f: edit_json(f / "model.json", model={}), "model.json"),
        ("several", lambda f: edit_json(f / "model.json", noise_in_a_count={}), "model.json"),
        ("several", lambda f: edit_json(f / "privacy.json", delta=1), "model.json"),
        ("several", lambda f: (f / "results.bin").write_bytes(b"x"), "results.bin"),
        ("several", lambda f: (f / "report.html").unlink(), "report.html"),
        ("several", lambda f: (f / "synthetic.csv").unlink(), "synthetic.csv"),
        ("one", lambda f: (f / "synthetic.parquet").write_bytes(b"x"), "synthetic.parquet"),
        ("one", lambda f: (f / "schema.toml").write_text("x"), "schema.toml"),
        ("one", lambda f: (f / "privacy.json").write_text("{"), "privacy.json"),
        ("one", lambda f: state(f, exact={"epsilon_delivered": "1e999999999"}), "privacy.json"),
        ("one", lambda f: state(f, steps=[{"epsilon": 10**400}]), "privacy.json"),
        ("several", lambda f: state(f, not_private_because=5), "privacy.json"),
    ],
)
def test_a_forged_release_contradicts_itself(parley, copies, release, spoil, file):
    """Even with a fresh manifest: the files do not follow from the study and its results."""
    spoil(copies / release)
    finish_again(copies / release)
    done = parley("verify", release, "--json")
    assert done.code == 3
    assert file in {each["file"] for each in done.json["problems"]}
    assert parley("verify", release, "--bytes-only").code == 0


def test_a_countersignature_of_somebody_outside_the_study_is_refused(parley, copies):
    stranger = Signer(
        role=SignerRole.PARTY, name="party 1", identity=Identity.generate(SeededRandomSource("x"))
    )
    signature = stranger.sign((copies / "several" / "manifest.json").read_bytes())
    (copies / "several" / signature.file).write_bytes(signature.to_bytes())
    done = parley("verify", "several")
    assert done.code == 3
    assert "pins no such identity for a party 'party 1'" in done.err


def test_a_release_of_a_signed_study_follows_from_it_too(parley, copies):
    """Its signature is of the study as agreed, not of the variants that are derived of it."""
    study = Study.load(copies / "several" / "study.toml")
    signed = study.signed_by(Identity.generate(SeededRandomSource("proposer")))
    (copies / "several" / "study.toml").write_text(signed.to_toml())
    finish_again(copies / "several")
    done = parley("verify", "several", "--json")
    assert (done.code, done.json["problems"], done.json["not_checked"]) == (0, [], [])


def test_a_party_that_signs_as_something_else_has_not_countersigned(tmp_path):
    party = Identity.generate(SeededRandomSource("party"))
    agreed = SimpleNamespace(members=[SimpleNamespace(name="north", identity=party.public)])
    signature = Signer(role=SignerRole.CURATOR, name="hub", identity=party).sign(b"manifest")
    for role, missing in ((SignerRole.CURATOR, 1), (SignerRole.PARTY, 0)):
        signatures = (replace(signature, role=role),)
        assert len(missing_parties(agreed, signatures)) == missing


def test_a_release_without_a_study_does_not_pass_for_one_that_all_parties_vouch_for(parley, copies):
    done = parley("verify", "one", "--all-parties")
    assert done.code == 3
    assert "study.toml: is missing: without a study there are no parties" in done.err


def test_a_statement_of_another_version_may_look_different(parley, copies, monkeypatch):
    monkeypatch.setattr("parley.consistency.versions", lambda: {"parley": "99"})
    state(copies / "several", epsilon_delivered=None)
    finish_again(copies / "several")
    assert parley("verify", "several").code == 0


def test_a_release_of_another_version_is_checked_as_far_as_it_can_be(parley, copies, monkeypatch):
    monkeypatch.setattr("parley.consistency.versions", lambda: {"parley": "99"})
    done = parley("verify", "several")
    assert done.code == 0
    assert "not checked: whether statement and model follow" in done.err


def test_a_bundle_is_not_overwritten_unasked(parley, copies):
    assert parley("bundle", "one", "--out", "one.zip").code == 0
    before = (copies / "one.zip").read_bytes()
    assert parley("bundle", "one", "--out", "one.zip").code == 3
    assert parley("bundle", "one", "--out", "one.zip", "--overwrite", "--json").code == 0
    assert (copies / "one.zip").read_bytes() == before
    assert parley("bundle", "one.zip", "--out", "two.zip").code == 3
    assert parley("bundle", "nowhere", "--out", "two.zip").code == 3
    with zipfile.ZipFile(copies / "one.zip") as archive:
        archive.extractall(copies / "unpacked")
    assert parley("verify", "unpacked").code == 0


def test_signing_needs_a_key_before_any_budget_is_spent(parley, small):
    small()
    words = ["synthesize", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "r"]
    done = parley(*words, "--sign-with", "nowhere.key")
    assert done.code == 3
    assert "cannot read the identity file" in done.err
    made = parley("keys", "identity", "--folder", "mine")
    assert made.code == 0
    assert parley(*words, "--sign-with", "mine/identity.key", "--sign-as", "me").code == 0
    print_ = made.out.split()[-1]
    assert f"signed by owner 'me' {print_}" in parley("verify", "r", "--signer", print_).out
    assert parley("keys", "identity", "--folder", "mine").code == 3, "nothing is overwritten"
