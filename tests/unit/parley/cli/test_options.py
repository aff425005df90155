"""Options that commands share: what is typed, what is meant, and what is warned of."""

import pytest

from common.errors import InputError
from common.schema import Schema
from parley.cli.options import Reading, load_schema, signer_of
from tests.harness.deployed_folder import NORTH


@pytest.mark.parametrize(
    ("written", "meant"), [(None, None), (";", ";"), ("tab", "\t"), ("TAB", "\t"), ("\\t", "\t")]
)
def test_a_delimiter_is_one_character_or_a_tab(written, meant):
    assert Reading(delimiter=written).character == meant


def test_a_delimiter_of_two_characters_is_refused():
    with pytest.raises(InputError, match="'::': it is not one character"):
        _ = Reading(delimiter="::").character


def test_a_schema_that_was_read_off_the_data_is_warned_of(tmp_path, capsys):
    path = tmp_path / "schema.toml"
    text = '[[attribute]]\nname = "a"\nkind = "boolean"\n'
    path.write_text(text)
    assert load_schema(path) == Schema.from_toml(text)
    assert capsys.readouterr().err == ""
    path.write_text(f"# NOT PRIVATE YET: read off the data\n{text}")
    load_schema(path)
    assert "still says NOT PRIVATE YET" in capsys.readouterr().err


def test_without_a_key_a_release_has_no_signer():
    assert signer_of(None, "", None) is None


def test_keys_under_a_passphrase_need_it_where_they_are_used(parley, small, monkeypatch):
    folder = small()
    secret = folder / "secret.txt"
    secret.write_text("correct horse\n")
    secret.chmod(0o600)
    words = ("keys", "init", "curator", "hub", "--host", "localhost", "--folder", "k")
    assert parley(*words, "--passphrase-file", "secret.txt").code == 0
    assert b"ENCRYPTED" in (folder / "k" / "authority.key").read_bytes()
    assert parley("keys", "init", "party", "north", "--folder", "n").code == 0
    told = parley("keys", "request", "--folder", "n").out.split()[1]
    approve = ("keys", "approve", "n/party.csr", "--folder", "k", "--fingerprint", told)
    done = parley(*approve)
    assert done.code == 3
    assert "authority.key: it is under a passphrase" in done.err
    monkeypatch.setenv("PARLEY_PASSPHRASE", "battery staple")
    assert "passphrase is wrong" in parley(*approve).err
    monkeypatch.setenv("PARLEY_PASSPHRASE", "correct horse")
    assert parley(*approve).code == 0
    assert "identity" in parley("keys", "show", "--folder", "k").out


def test_a_passphrase_is_changed_and_removed(parley, place, monkeypatch):
    for name, words in (("old", "correct horse"), ("new", "battery staple")):
        (place.folder / name).write_text(words)
        (place.folder / name).chmod(0o600)
    change = ("keys", "passphrase", "--folder", "north/keys")
    assert parley(*change, "--new-passphrase-file", "old").code == 0
    done = parley("party", "review", "study.toml", *NORTH)
    assert "identity.key: it is under a passphrase" in done.err
    assert parley(*place.words()).code == 0
    monkeypatch.setenv("PARLEY_PARTY_PASSPHRASE_FILE", "old")
    assert parley("party", "review", "study.toml", *NORTH).code == 0
    (place.folder / "old").chmod(0o604)
    assert "open to every user" in parley("party", "review", "study.toml", *NORTH).err
    (place.folder / "old").chmod(0o600)
    wrong = parley(*change, "--passphrase-file", "new", "--remove")
    assert "passphrase is wrong" in wrong.err
    assert parley(*change, "--passphrase-file", "old", "--new-passphrase-file", "new").code == 0
    assert parley(*change, "--passphrase-file", "new", "--remove").code == 0
    assert "mode 0600 only" in parley(*change, "--remove").out
