"""`parley verify`, `bundle` and `party countersign` on releases as the commands make them."""

import csv
import json
import shutil
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from common.crypto.identities.identity import Identity
from common.crypto.key_files import load_identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.release.contents import open_release
from common.release.folder import read_results, write_results
from common.study.document import Study
from tests.unit.parley.cli.commands.conftest import append, finish_again, sign_again


def fingerprint(made):
    return load_identity(made / "keys" / "identity.key").public.fingerprint


@pytest.mark.parametrize("name", ["several", "one", "ranges"])
def test_every_release_verifies_as_a_folder_and_as_a_zip(parley, copies, name):
    assert parley("bundle", name, "--out", f"{name}.zip").code == 0
    for path in (name, f"{name}.zip"):
        done = parley("verify", path, "--json", *([] if name != "ranges" else ["--unsigned"]))
        assert (done.code, done.json["problems"], done.json["not_checked"]) == (0, [], [])
        assert done.json["verified"]
        assert done.json["derived"] == (name == "several")
        assert done.json["signed"] == (name != "ranges")


def test_who_signed_is_said_and_can_be_asked_for(parley, made, copies):
    told = parley("verify", "several", "--signer", fingerprint(made).lower())
    assert told.code == 0
    assert f"signed by curator 'hub' {fingerprint(made)}" in told.out
    assert "epsilon 1 for one row of one owner, as it follows from the study" in told.out
    one = parley("verify", "one").out
    assert "signed by owner 'owner'" in one
    assert "epsilon 1 for one row of one owner, as its maker states" in one
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


def drop_a_result(folder):
    with open_release(folder) as contents:
        write_results(folder / "results.bin", read_results(contents)[:-1])


def rename_a_column(folder):
    text = (folder / "synthetic.csv").read_text()
    (folder / "synthetic.csv").write_text(text.replace("sex", "sax", 1))


def another_study(folder):
    agreed = replace(Study.load(folder / "study.toml"), epsilon=Fraction(2), signature=None)
    (folder / "study.toml").write_text(agreed.to_toml())


def add_to_the_ranges(folder):
    with zipfile.ZipFile(folder / "ranges.zip", "a") as archive:
        archive.writestr("more.txt", "x")


def drop_a_row(table):
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))


def another_cell(table):
    table.write_text(table.read_text().replace("Female", "=cmd()", 1))


@pytest.mark.parametrize(
    ("release", "spoil", "file"),
    [
        ("several", lower_the_epsilon, "privacy.json"),
        ("one", lower_the_epsilon, "privacy.json"),
        ("several", raise_a_result, "model.json"),
        ("several", rename_a_column, "synthetic.csv"),
        ("several", another_study, "privacy.json"),
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
        ("several", lambda f: edit_json(f / "transcript.json", note="x"), "transcript.json"),
        ("several", lambda f: edit_json(f / "transcript.json", phases={}), "transcript.json"),
        ("several", lambda f: append(f / "transcript.json", " "), "transcript.json"),
        ("several", lambda f: append(f / "study.toml", "# epsilon is 0.1"), "study.toml"),
        ("one", lambda f: append(f / "schema.toml", "# a note"), "schema.toml"),
        ("several", lambda f: edit_json(f / "model.json", note="x"), "model.json"),
        ("one", lambda f: edit_json(f / "model.json", note="x"), "model.json"),
        ("ranges", lambda f: edit_json(f / "model.json", rows=1), "model.json"),
        ("several", lambda f: edit_json(f / "model.json", columns={"a": "b"}), "model.json"),
        ("several", lambda f: state(f, versions={"parley": "x"}), "privacy.json"),
        ("ranges", add_to_the_ranges, "ranges.zip"),
        ("several", lambda f: drop_a_row(f / "synthetic.csv"), "synthetic.csv"),
        ("several", lambda f: another_cell(f / "synthetic.csv"), "synthetic.csv"),
    ],
)
def test_a_forged_release_contradicts_itself(parley, copies, release, spoil, file):
    """Even with a fresh manifest: the files do not follow from the study and its results."""
    spoil(copies / release)
    finish_again(copies / release)
    done = parley("verify", release, "--json", "--unsigned")
    assert done.code == 3
    assert file in {each["file"] for each in done.json["problems"]}
    assert not done.json["derived"]
    bytes_only = parley("verify", release, "--bytes-only", "--unsigned").code
    assert bytes_only == (3 if "missing" in {p["kind"] for p in done.json["problems"]} else 0)


def test_a_release_of_a_signed_study_follows_from_it_too(parley, copies):
    """Its signature is of the study as agreed, not of the variants that are derived of it."""
    study = Study.load(copies / "several" / "study.toml")
    signed = study.signed_by(Identity.generate(SeededRandomSource("proposer")))
    (copies / "several" / "study.toml").write_text(signed.to_toml())
    finish_again(copies / "several")
    done = parley("verify", "several", "--json", "--unsigned")
    assert (done.code, done.json["problems"], done.json["not_checked"]) == (0, [], [])


def test_a_release_without_a_study_does_not_pass_for_one_that_all_parties_vouch_for(parley, copies):
    done = parley("verify", "one", "--all-parties")
    assert done.code == 3
    assert "study.toml: is missing: without a study there are no parties" in done.err


@pytest.mark.parametrize("name", ["several", "one"])
@pytest.mark.parametrize("version", ["0.2.0", "99.0"])
def test_another_version_of_parley_is_no_other_method(parley, made, copies, name, version):
    """The method's version decides what follows; the statement's words may be another version's."""
    privacy = json.loads((copies / name / "privacy.json").read_text())
    privacy["versions"]["parley"] = version
    state(copies / name, **privacy)
    sign_again(copies / name, made, version=version)
    told = parley("verify", name, "--json")
    assert (told.code, told.json["problems"], told.json["not_checked"]) == (0, [], [])
    assert (told.json["verified"], told.json["derived"]) == (True, name == "several")
    privacy["versions"]["parley"] = "1.0"
    state(copies / name, **privacy)
    sign_again(copies / name, made, version=version)
    assert "names other versions than the manifest" in parley("verify", name).err


@pytest.mark.parametrize("version", [1, 99])
def test_a_model_of_another_version_of_its_method_is_checked_and_not_derived(
    parley, made, copies, version
):
    sign_again(copies / "several", made, method_version=version)
    done = parley("verify", "several")
    assert done.code == 0
    assert done.out.startswith("checked several: ")
    assert "verified" not in done.out
    assert (
        f"not checked: whether the model follows from the sums: version {version} of subn+ made it"
        in done.err
    )
    assert "epsilon 1 for one row of one owner, as its maker states" in done.out
    told = parley("verify", "several", "--json")
    assert (told.code, told.json["verified"], told.json["derived"]) == (0, False, False)
    assert told.json["problems"] == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: edit_json(f / "model.json", privacy={}), "has another privacy statement"),
        (lambda f: edit_json(f / "model.json", columns={"a": "b"}), "columns are not those"),
        (drop_a_result, "another number of results than privacy.json"),
        (lower_the_epsilon, "states another epsilon than study.toml"),
        (lambda f: drop_a_row(f / "synthetic.csv"), "is not what study.toml says"),
        (another_study, "states another epsilon"),
    ],
)
def test_a_version_of_the_method_switches_off_nothing_else(parley, made, copies, spoil, words):
    spoil(copies / "several")
    sign_again(copies / "several", made, method_version=99)
    done = parley("verify", "several", "--unsigned")
    assert done.code == 3
    assert words in done.err


def test_a_study_that_this_version_does_not_run_is_checked_and_not_derived(
    parley, made, copies, monkeypatch
):
    def refuse(study, prior=None):
        raise InputError("criterion: measured by versions up to 0.2 only")

    monkeypatch.setattr("common.release.derive.run_of", refuse)
    assert parley("verify", "several").out.startswith("verified"), "a release of this version"
    monkeypatch.setattr("common.release.derive.versions", lambda: {"parley": "7.1.0.dev0"})
    done = parley("verify", "several")
    assert (done.code, done.out.split()[0]) == (0, "checked")
    assert "does not run the study (criterion: measured by versions up to 0.2 only)" in done.err


def test_another_method_than_the_studys_is_refused(parley, made, copies):
    sign_again(copies / "several", made)
    edit_json(copies / "several" / "manifest.json", method={"name": "floor", "version": 9})
    shutil.rmtree(copies / "several" / "signatures")
    done = parley("verify", "several", "--unsigned")
    assert done.code == 3
    assert "manifest.json: names another method than study.toml" in done.err


def test_a_release_in_a_later_format_names_the_version_to_use(parley, copies):
    edit_json(copies / "one" / "manifest.json", version=3)
    done = parley("verify", "one")
    assert (done.code, done.out) == (6, "")
    assert "version 3 of the format" in done.err


def test_a_page_is_its_makers_word(parley, made, copies):
    """Who changes it needs the maker's key; what it says is not compared with the other files."""
    append(copies / "several" / "report.html", "<p>epsilon 0.001</p>")
    assert "report.html: has changed" in parley("verify", "several").err
    signatures = copies / "several" / "signatures"
    shutil.copytree(signatures, copies / "signatures")
    finish_again(copies / "several")
    shutil.copytree(copies / "signatures", signatures)
    refused = parley("verify", "several")
    assert refused.code == 3
    assert "pages.json: is not what curator 'hub' signed" in refused.err
    sign_again(copies / "several", made)
    done = parley("verify", "several")
    assert done.code == 0
    assert "the makers' word: what report.html, usage.json and network.svg say" in done.out


@pytest.fixture
def a_later_version(monkeypatch):
    """Be a later version than the one that makes the releases here."""
    monkeypatch.setattr("common.release.derive.versions", lambda: {"parley": "7.1.0.dev0"})


@pytest.mark.parametrize("name", ["several", "one"])
def test_a_release_of_an_earlier_version_is_derived_and_verified(
    parley, copies, a_later_version, name
):
    done = parley("verify", name, "--json")
    assert (done.code, done.json["problems"], done.json["not_checked"]) == (0, [], [])
    assert (done.json["verified"], done.json["derived"]) == (True, name == "several")


def test_a_later_version_may_use_other_words_and_says_which_were_not_compared(
    parley, made, copies, a_later_version
):
    privacy = json.loads((copies / "several" / "privacy.json").read_text())
    privacy["notes"] = ["as an earlier version put it"]
    state(copies / "several", **privacy)
    sign_again(copies / "several", made)
    done = parley("verify", "several")
    assert done.code == 0
    assert done.out.startswith("verified several")
    assert "the words of privacy.json were not compared: parley " in done.err
    told = parley("verify", "several", "--json")
    assert (told.code, told.json["verified"], told.json["derived"]) == (0, True, True)
    assert len(told.json["remarks"]) == 1


@pytest.mark.parametrize(
    ("file", "key"),
    [("privacy.json", "mechanisms"), ("privacy.json", "extra"), ("model.json", "x")],
)
def test_numbers_that_do_not_follow_are_refused_in_a_later_version(
    parley, made, copies, a_later_version, file, key
):
    change = (
        state if file == "privacy.json" else lambda folder, **new: edit_json(folder / file, **new)
    )
    change(copies / "several", **{key: ["nothing"]})
    sign_again(copies / "several", made)
    done = parley("verify", "several")
    assert (done.code, done.out) == (3, "")
    assert f"imply: {key}" in done.err


@pytest.mark.parametrize("version", [None, "0.0.9", "99.0"])
def test_steps_that_do_not_add_up_are_refused_in_every_version(parley, made, copies, version):
    privacy = json.loads((copies / "several" / "privacy.json").read_text())
    privacy["steps"][0]["parties"]["party 1"] /= 2
    state(copies / "several", **privacy)
    sign_again(copies / "several", made, version=version)
    done = parley("verify", "several")
    assert done.code == 3
    assert "privacy.json: its steps do not add up to the epsilon it states" in done.err


def forge_the_budget(folder):
    for name in ("privacy.json", "model.json"):
        document = json.loads((folder / name).read_text())
        statement = document if name == "privacy.json" else document["privacy"]
        for key in ("epsilon_requested", "epsilon_delivered"):
            statement[key], statement["exact"][key] = 0.01, "1/100"
        statement["parties"] = dict.fromkeys(statement["parties"], 0.01)
        statement["exact"]["parties"] = dict.fromkeys(statement["parties"], "1/100")
        (folder / name).write_text(json.dumps(document))


@pytest.mark.parametrize("forge", [forge_the_budget, lower_the_epsilon])
def test_a_version_in_the_manifest_does_not_switch_off_what_the_study_says(
    parley, made, copies, forge
):
    forge(copies / "several")
    sign_again(copies / "several", made, version="0.0.9")
    done = parley("verify", "several")
    assert (done.code, done.out) == (3, "")
    assert "privacy.json: states another epsilon than study.toml" in done.err


@pytest.mark.parametrize("name", ["several", "one", "ranges"])
def test_a_file_that_no_release_has_is_refused_though_the_manifest_lists_it(parley, copies, name):
    (copies / name / "README.html").write_text("<script>")
    finish_again(copies / name)
    for words in ([], ["--bytes-only"]):
        done = parley("verify", name, "--unsigned", "--json", *words)
        assert done.code == 3
        assert {"file": "README.html", "kind": "extra"}.items() <= done.json["problems"][0].items()
    assert parley("bundle", name, "--out", "x.zip").code == 3


def test_a_release_has_one_table_and_the_files_of_its_kind(parley, copies):
    shutil.copy(copies / "one" / "synthetic.parquet", copies / "several")
    shutil.copy(copies / "one" / "network.svg", copies / "ranges")
    for name, file in (("several", "synthetic.csv"), ("ranges", "network.svg")):
        finish_again(copies / name)
        done = parley("verify", name, "--unsigned")
        assert done.code == 3
        assert f"- {file}: " in done.err


def test_a_model_that_is_longer_than_the_derived_one_is_not_read(parley, copies):
    text = (copies / "several" / "model.json").read_text()
    (copies / "several" / "model.json").write_text(text + " " * 2 * len(text))
    finish_again(copies / "several")
    done = parley("verify", "several", "--unsigned")
    assert done.code == 3
    assert "- model.json: has" in done.err


def test_formulas_are_warned_of_and_are_text_in_the_copy_for_spreadsheets(parley, tmp_path):
    values = ["=HYPERLINK(1)", "-1", "plain, quoted"]
    schema = (
        f'[[attribute]]\nname = "@x"\nkind = "categorical"\nvalues = {json.dumps(values)}\n'
        '[[attribute]]\nname = "y"\nkind = "integer"\nmin = -9\nmax = -1\n'
    )
    Path("schema.toml").write_text(schema)
    rows = [[value, -number] for value in values for number in range(1, 10)] * 3
    pd.DataFrame(rows, columns=["@x", "y"]).to_csv("data.csv", index=False)
    words = ["synthesize", "data.csv", "--schema", "schema.toml", "--epsilon", "9", "--seed", "1"]
    made = parley(*words, "--out", "r")
    assert "Formulas: a spreadsheet would run 2 of the names and values" in made.err
    assert "Formulas: a spreadsheet would run 2" in Path("r/report.html").read_text()
    verify = ["verify", "r", "--unsigned", "--safe-for-spreadsheets"]
    assert parley(*verify, "r/safe.csv").code == 3, "a release has its own files only"
    assert parley(*verify, "safe.csv").code == 0
    assert parley(*verify, "safe.csv").code == 3, "nothing is overwritten"
    whole, safe = (
        list(csv.reader(Path(name).read_text().splitlines()))
        for name in ("r/synthetic.csv", "safe.csv")
    )
    assert set(values) == {cell for cell, _ in whole[1:]}
    for before, after in zip(whole, safe, strict=True):
        escaped = {"=HYPERLINK(1)": "'=HYPERLINK(1)", "@x": "'@x"}
        assert after == [escaped.get(cell, cell) for cell in before]
    append(Path("r/synthetic.csv"), "-1,-1\n")
    assert parley(*verify, "other.csv").code == 3
    assert not Path("other.csv").exists()
    assert parley(*words, "--out", "p", "--format", "parquet").code == 0
    assert "needs no copy" in parley("verify", "p", *verify[2:], "other.csv").err


def test_signing_needs_a_key_before_any_budget_is_spent(parley, small):
    small()
    words = ["synthesize", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "r"]
    done = parley(*words, "--sign-with", "nowhere.key")
    assert done.code == 3
    assert "nowhere.key: cannot be read" in done.err
    made = parley("keys", "identity", "--folder", "mine")
    assert made.code == 0
    assert parley(*words, "--sign-with", "mine/identity.key", "--sign-as", "me").code == 0
    print_ = made.out.split()[-1]
    assert f"signed by owner 'me' {print_}" in parley("verify", "r", "--signer", print_).out
    assert parley("keys", "identity", "--folder", "mine").code == 3, "nothing is overwritten"


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
    assert parley("verify", "unpacked/release").code == 0
