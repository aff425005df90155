"""Whose signatures `parley verify` counts: those of identities that the study's digest names."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.crypto.identities.identity import Identity
from common.crypto.key_files import load_identity
from common.methods.registry import method_of
from common.privacy.randomness import SeededRandomSource
from common.release.archive import add_signature
from common.release.manifest import Signer, SignerRole
from common.release.verify import missing_curator, verify
from common.report.writing import write_release
from common.schema import Schema
from common.study.accounting import account, statement_of
from common.study.document import Study
from common.tables import read_table
from parley import simulate
from tests.unit.parley.cli.commands.conftest import append, finish_again, sign_again


def fingerprint(made):
    return load_identity(made / "keys" / "identity.key").public.fingerprint


@pytest.mark.parametrize("name", ["several", "one"])
def test_a_release_whose_signatures_were_removed_is_not_verified(parley, copies, name):
    append(copies / name / "privacy.json", " ")
    finish_again(copies / name)
    done = parley("verify", name)
    assert (done.code, done.out) == (3, "")
    assert "signatures: are missing: the release is not signed" in done.err
    assert parley("verify", name, "--bytes-only").code == 3
    assert not parley("verify", name, "--json").json["verified"]
    allowed = parley("verify", name, "--unsigned")
    assert allowed.code == 0
    assert "it is not signed" in allowed.err


STRANGER = Identity.generate(SeededRandomSource("stranger"))


def replace_the_rows(folder):
    """Put one row into the place of all, as a stranger who signs study and release himself."""
    table, study = folder / "synthetic.csv", folder / "study.toml"
    names, row, *more = table.read_text().splitlines()
    table.write_text("\n".join([names, *[row] * (1 + len(more))]) + "\n")
    study.write_text(Study.load(study).signed_by(STRANGER).to_toml())
    sign_as(folder, STRANGER)


def sign_as(folder, identity):
    finish_again(folder)
    signer = Signer(role=SignerRole.CURATOR, name="hub", identity=identity)
    lists = ((folder / name).read_bytes() for name in ("manifest.json", "pages.json"))
    add_signature(folder, signer.sign(*lists))


def test_rows_that_a_stranger_signed_are_not_verified(parley, made, copies):
    replace_the_rows(copies / "several")
    assert verify(copies / "several", unsigned=True).problems == (), "the files agree"
    for words in ([], ["--bytes-only"]):
        done = parley("verify", "several", *words)
        assert (done.code, done.out) == (9, "")
        assert "NOT VERIFIED" in done.err
        assert f"pins curator {fingerprint(made)}, which did not sign it" in done.err
        assert STRANGER.public.fingerprint in done.err
        assert "--signer FINGERPRINT" in done.err
        told = parley("verify", "several", "--json", *words)
        assert (told.code, told.json["verified"], told.json["problems"]) == (9, False, [])
        assert STRANGER.public.fingerprint in told.json["unknown_signers"]
    assert parley("verify", "several", "--signer", fingerprint(made)).code == 3
    assert parley("verify", "several", "--all-parties").code == 3


def test_the_pinned_curator_is_part_of_the_digest(parley, made, copies):
    """So a stranger who pins himself makes another study, and the manifest's digest shows it."""
    study = Study.load(copies / "several" / "study.toml")
    assert study.curator == fingerprint(made)
    other = replace(study, curator=STRANGER.public.fingerprint, signature=None)
    assert other.digest != study.digest
    assert f"study {study.digest.hex()}" in parley("verify", "several").out


def test_a_study_of_an_earlier_version_pins_no_curator_and_its_key_is_to_be_compared(
    parley, made, small
):
    """Its release needs --signer; the identity that signed the study proves nothing."""
    small()
    words = ["simulate", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "r"]
    assert parley(*words, "--aggregation", "masked").code == 0
    study = Study.load(Path("r/study.toml"))
    assert study.curator == ""
    hub = load_identity(made / "keys" / "identity.key")
    for agreed in (study, study.signed_by(hub)):
        Path("r/study.toml").write_text(agreed.to_toml())
        sign_again(Path("r"), made)
        done = parley("verify", "r")
        assert (done.code, done.out) == (9, "")
        assert "digest pins no curator, and no party signed it" in done.err
        assert f"{fingerprint(made)} (curator 'hub')" in done.err
        assert parley("verify", "r", "--signer", fingerprint(made)).code == 0
        assert parley("verify", "r", "--unsigned").code == 0


def test_a_seeded_release_cannot_be_written_as_private(parley, small):
    """The study says that it is seeded, and its digest is in the manifest and the transcript."""
    small()
    schema = Schema.load(Path("schema.toml"))
    tables = [read_table(Path("data.csv"), schema)] * 2
    fitted = simulate(tables, schema, epsilon=5, method="floor", aggregation="masked", seed=1)
    assert not fitted.privacy["private"]
    honest = statement_of(
        fitted.study, method_of(fitted.study), account(fitted.study, fitted.steps),
        source_private=True, rows_agreed=True, criteria=[],
    )  # fmt: skip
    stated = honest.as_dict() | {"versions": fitted.privacy["versions"]}
    Path("r").mkdir()
    write_release(Path("r"), replace(fitted, privacy=stated, seed=None))
    done = parley("verify", "r", "--unsigned")
    assert done.code == 3
    assert "privacy.json: is not what study.toml and results.bin imply: " in done.err
    assert "private" in done.err


def test_what_no_reader_can_check_is_said(parley, copies):
    told = parley("verify", "several")
    assert "the makers' word: that the random numbers were random" in told.out
    assert "the makers' word: that each owner's number of rows was agreed" in told.out
    assert len(parley("verify", "several", "--json").json["on_trust"]) == 5


def test_whose_key_a_single_owners_is_has_to_be_compared(parley, copies):
    done = parley("verify", "one")
    assert done.code == 0
    assert "nothing in the release says whose key its maker's is" in done.err
    assert "--signer" in done.err


def test_a_release_of_one_owners_study_is_verified_by_the_key_that_the_study_pins(parley, small):
    small()
    key = parley("keys", "identity", "--folder", "mine").out.split()[-1]
    words = ["synthesize", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "r"]
    assert parley(*words, "--sign-with", "mine/identity.key", "--method", "subn+").code == 0
    assert Study.load(Path("r/study.toml")).curator == key
    assert parley("verify", "r").code == 0


def test_all_parties_includes_the_curator_that_signed_the_study():
    owners = [Identity.generate(SeededRandomSource(name)) for name in "ab"]
    hub, other = (Identity.generate(SeededRandomSource(name)) for name in ("hub", "other"))
    party = Signer(role=SignerRole.PARTY, name="a", identity=owners[0]).sign(b"m")
    curator = Signer(role=SignerRole.CURATOR, name="hub", identity=hub).sign(b"m")
    stranger = Signer(role=SignerRole.CURATOR, name="hub", identity=other).sign(b"m")
    expected = hub.public.fingerprint
    for pinned, signer in (("", expected), (expected, other.public.fingerprint)):
        agreed = SimpleNamespace(roster={"a": owners[0].public}, signer=signer, curator=pinned)
        assert missing_curator(agreed, [party, curator], []) == {}
        assert list(missing_curator(agreed, [party], [])) == [expected]
        assert list(missing_curator(agreed, [party, stranger], [])) == [expected]
        assert missing_curator(agreed, [party, stranger], [other.public.fingerprint]) == {}
    for no_curator in (None, owners[0].public.fingerprint):  # unsigned, or signed by a party
        agreed = SimpleNamespace(roster={"a": owners[0].public}, signer=no_curator, curator="")
        assert missing_curator(agreed, [party], []) == {}
